"""An unsuitable lock is refused with the reason; the plan of a suitable one has all its packages."""

from __future__ import annotations

from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from envsolve.create.plan import Kind, Plan
from envsolve.create.reading import plan_of
from envsolve.create.wheels import wheel_file
from envsolve.errors import UsageError
from envsolve.model.host import Platform

PROJECT_LOCKS = Path(__file__).parents[1] / "lockfile" / "project_locks"
BRANCH = 'vcs = { type = "git", url = "https://example.org/own", commit-id = "main" }'
DIGEST = "0" * 64
URL = "https://conda.anaconda.org/conda-forge/linux-64/zlib-1.3-h0_0.conda"
WHEEL = "https://files.example/zlib-1.3-py3-none-any.whl"
HASHED = f"alpha==1.0 --hash=sha256:{DIGEST}\n"
FACTS = '# [tool.envsolve]\n# envsolve_version = "1"\n# platform = "{platform}"\n# python = "{python}"\n'


def plan(name: str, text: str, directory: Path, python: str | None = None) -> Plan:
    path = directory / name
    path.write_text(text)
    return plan_of(path, Platform.LINUX_64, None if python is None else SpecifierSet(python))


def conda_lock(*packages: str, platforms: str = "linux-64") -> str:
    return f"version: 1\nmetadata:\n  platforms: [{platforms}]\npackage:\n{''.join(packages)}"


def entry(manager: str, hashes: str, *, url: str = URL, name: str = "zlib") -> str:
    fields = f"name: {name}, version: '1.3', manager: {manager}, platform: linux-64, url: '{url}', hash: {{{hashes}}}"
    return f"- {{{fields}}}\n"


REFUSED = {
    "a range": ("requirements.txt", "alpha>=1\n", "lock-not-exact"),
    "pins without hashes": ("requirements.txt", "alpha==1.0\n", "lock-not-exact"),
    "a file that names another": ("requirements.txt", f"-r other.txt\n{HASHED}", "lock-not-exact"),
    "an editable project": ("requirements.txt", f"{HASHED}-e .\n", "lock-not-exact"),
    "requirements for Windows": (
        "requirements.txt",
        FACTS.format(platform="win-64", python="3.11.0") + HASHED,
        "lock-for-other-platform",
    ),
    "requirements for no Python": (
        "requirements.txt",
        FACTS.format(platform="linux-64", python="x") + HASHED,
        "lock-unreadable",
    ),
    "a manifest": ("pyproject.toml", "[project]\n", "lock-unreadable"),
    "broken TOML": ("pylock.toml", "lock-version = \n", "lock-unreadable"),
    "a pylock of no Python": ("pylock.toml", 'lock-version = "1.0"\nrequires-python = "x"\n', "lock-unreadable"),
    "a conda lock of nobody here": ("c.yml", conda_lock(platforms="win-64"), "lock-for-other-platform"),
    "a conda package without digest": ("c.yml", conda_lock(entry("conda", "")), "lock-without-hashes"),
    "a wheel without digest": ("c.yml", conda_lock(entry("pip", "", url=WHEEL)), "lock-without-hashes"),
    "a package of a repository": (
        "c.yml",
        conda_lock(entry("pip", "", url="git+https://i/a")),
        "lock-not-exact",
    ),
    "a manifest of pixi": ("pixi.toml", "[workspace]\nplatforms = ['linux-64']\n", "lock-not-exact"),
    "a package of a pylock from a branch of a repository": (
        "pylock.toml",
        f'lock-version = "1.0"\ncreated-by = "x"\n[[packages]]\nname = "own"\n{BRANCH}\n',
        "lock-not-exact",
    ),
    "an explicit file without digest": ("c.lock", f"@EXPLICIT\n{URL}\n", "lock-without-hashes"),
    "an explicit file for Windows": (
        "c.lock",
        f"# platform: win-64\n@EXPLICIT\n{URL}#{DIGEST}\n",
        "lock-for-other-platform",
    ),
    "an explicit file with a stray line": ("c.lock", f"@EXPLICIT\n{URL}#{DIGEST}\nzlib\n", "lock-unreadable"),
    "an explicit file with a bare pin": (
        "c.lock",
        f"@EXPLICIT\n{URL}#{DIGEST}\n# pip alpha==1.0 --hash=sha256:{DIGEST}\n",
        "lock-not-exact",
    ),
    "a pixi.lock of nobody here": (
        "pixi.lock",
        "version: 6\nenvironments:\n  default:\n    channels: []\n    packages: {win-64: []}\npackages: []\n",
        "lock-for-other-platform",
    ),
    "an environment that has to be solved": ("environment.yml", "dependencies: [python=3.11]\n", "lock-not-exact"),
}


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "text", "code"), REFUSED.values(), ids=REFUSED)
def test_an_unsuitable_lock_is_refused(name: str, text: str, code: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        plan(name, text, tmp_path)
    assert raised.value.code == code
    assert raised.value.hints


def test_a_missing_lock_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file"):
        plan_of(tmp_path / "no.lock", Platform.LINUX_64)


def test_a_python_lock_states_its_pythons(tmp_path: Path) -> None:
    recorded = FACTS.format(platform="linux-64", python="3.11.4") + HASHED
    assert plan("requirements.txt", recorded, tmp_path).python == SpecifierSet(">=3.11.4,==3.11.*")
    assert plan("requirements.txt", recorded, tmp_path, "<3.11.9").python == SpecifierSet(">=3.11.4,==3.11.*,<3.11.9")
    assert plan("requirements.txt", HASHED, tmp_path).python is None
    text = 'lock-version = "1.0"\ncreated-by = "own"\npackages = []\nrequires-python = ">=3.12"\n'
    assert plan("pylock.toml", text, tmp_path).python == SpecifierSet(">=3.12")


@pytest.mark.parametrize("tool", ["uv", "poetry", "pdm"])
def test_packages_of_a_project_lock_for_this_platform_are_installed(tool: str) -> None:
    path = PROJECT_LOCKS / tool / f"{tool}.lock"
    found = plan_of(path, Platform.LINUX_64)
    assert (found.kind, found.lock_name) == (Kind.VENV, path.name)
    elsewhere = {it.name for it in plan_of(path, Platform.WIN_64).lock.pins}
    assert {it.name for it in found.lock.pins} - elsewhere >= {"rich", "mdurl", "markdown-it-py"}
    assert [it.text for it in found.notes] == [
        f"only the main dependencies of {path.name} are installed: no extras, no groups, not the project"
    ]


def test_conda_packages_and_wheels_have_their_digests(tmp_path: Path) -> None:
    wheel = "https://files.example/alpha-1.3-py3-none-any.whl"
    text = conda_lock(
        entry("conda", f"sha256: '{DIGEST}'"), entry("pip", f"sha256: '{DIGEST}'", url=wheel, name="alpha")
    )
    found = plan("conda-lock.yml", text, tmp_path)
    assert found.kind is Kind.CONDA
    assert [(it.url, it.sha256) for it in found.lock.conda] == [(URL, DIGEST)]
    written = wheel_file(found.lock, reads_pylock=True)
    assert (written.name, written.text) == ("requirements.txt", f"alpha @ {wheel} --hash=sha256:{DIGEST}\n")


def test_packages_for_other_platforms_are_left_out_and_named(tmp_path: Path) -> None:
    packages = [
        entry("conda", f"sha256: '{DIGEST}'", name=name).replace("}}", f"}}, category: {category}}}")
        for name, category in (("zlib", "main"), ("xz", "dev"), ("tk", "docs"))
    ]
    found = plan("conda-lock.yml", conda_lock(*packages), tmp_path)
    assert [it.name for it in found.lock.conda] == ["xz", "zlib"]
    assert [it.text for it in found.notes] == [
        "packages that only docs requires are left out, as conda-lock does",
    ]


@pytest.mark.parametrize(("groups", "installed"), [("[]", ["alpha"]), ('["main"]', ["alpha", "beta"])])
def test_default_groups_of_a_pylock_are_included(groups: str, installed: list[str], tmp_path: Path) -> None:
    wheels = (
        '[[packages]]\nname = "{0}"\nversion = "1.0"\n{1}\nwheels = [{{ url = "https://i/{0}-1.0-py3-none-any.whl", '
    )
    wheels += f'hashes = {{{{ sha256 = "{DIGEST}" }}}} }}}}]\n'
    text = f'lock-version = "1.0"\ncreated-by = "own"\ndefault-groups = {groups}\n' + "".join(
        wheels.format(name, marker)
        for name, marker in (
            ("alpha", ""),
            ("beta", "marker = \"'main' in dependency_groups and python_version > '3'\""),
            ("gamma", "marker = \"'gpu' in extras\""),
        )
    )
    found = plan("pylock.toml", text, tmp_path)
    assert [it.name for it in found.lock.pins] == installed
    assert {it.marker for it in found.lock.pins} <= {"", "python_version > '3'"}


def test_credentials_in_a_lock_are_not_stored(tmp_path: Path) -> None:
    text = f"--index-url https://me:hunter2@host/simple\n{HASHED}"
    found = plan("requirements.txt", text, tmp_path)
    assert found.text == f"--index-url https://host/simple\n{HASHED}"
    written = wheel_file(found.lock, reads_pylock=True)
    assert (written.text, written.names_index) == (found.text, True)
    assert found.logins == (("https://host/simple", "https://me:hunter2@host/simple"),)
