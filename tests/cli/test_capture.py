"""``envsolve capture`` writes a lock of the installed packages, and names those that no lock can represent."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomli
from packaging.pylock import Pylock

from envsolve import __version__
from tests.cli.creating import WHEELS, Creating, creating_in
from tests.cli.locked import pins_in
from tests.cli.locking import assert_in_three_parts
from tests.conda.packages import MINOR, PATCH
from tests.conftest import Envsolve, Result
from tests.index.packages import core_metadata, sdist, wheel
from tests.lockfile.judges import conda_lock_renders

pytestmark = [
    pytest.mark.thorough,  # each makes whole environments
    pytest.mark.skipif(sys.platform != "linux", reason="the packages of the tests are for Linux"),
]
SNAPSHOTS = Path(__file__).parents[1] / "snapshots"
ENVIRONMENT = "dependencies:\n  - python\n  - gamma\n  - delta\n  - pip:\n    - alpha\n"
MACHINE = re.compile(r"glibc(?: = \"|: '| |=)[0-9.]+|, __cuda=[0-9.]+|\"__cuda=[0-9.]+\", ")
"""What differs from machine to machine: the C library, and the CUDA of a driver."""


class Capturing:
    """Runs ``envsolve capture`` on the environment that :class:`Creating` creates."""

    def __init__(self, create: Creating) -> None:
        self.create, self.prefix = create, create.prefix
        self.index = create.index

    def __call__(self, *words: str) -> Result:
        where = ("--index-url", self.index.index_url, "--cache-dir", "cache")
        return self.create.envsolve("capture", "--prefix", "env", *words, *where)

    def captured(self, *words: str) -> str:
        """The text of the lock; the command must succeed."""
        done = self(*words)
        assert done.code == 0, done.err
        return done.out

    def refused(self, code: str, *words: str, exit_code: int = 1) -> Result:
        """The result where a capture is refused."""
        done = self(*words)
        assert (done.code, done.out) == (exit_code, ""), done.err
        assert done.err.startswith(f"error: {code}\n"), done.err
        assert_in_three_parts(done.err)
        return done

    def write_metadata(self, package: str, name: str, text: str) -> None:
        """Write a file next to the metadata of an installed package."""
        (folder,) = self.prefix.glob(f"lib/python*/site-packages/{package}-*.dist-info")
        (folder / name).write_text(text)

    def add(self, name: str, version: str, *requires: str) -> None:
        """List a package in the environment as installed, without any of its files."""
        (site,) = self.prefix.glob("lib/python*/site-packages")
        folder = site / f"{name}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_bytes(core_metadata(name, version, requires=requires))
        (folder / "RECORD").write_text(f"{name}/__init__.py,,\n{folder.name}/METADATA,,\n")

    def from_elsewhere(self, package: str, origin: object) -> None:
        """Record that a package was installed from a place other than an index."""
        self.write_metadata(package, "direct_url.json", json.dumps(origin))


@pytest.fixture
def create(envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Creating]:
    with creating_in(envsolve, tmp_path, monkeypatch) as creating:
        monkeypatch.delenv("PYTHONPATH", raising=False)
        yield creating


@pytest.fixture
def venv(create: Creating) -> Capturing:
    """A venv with alpha and beta."""
    assert create.request().code == 0
    return Capturing(create)


@pytest.fixture
def conda(create: Creating) -> Capturing:
    """A conda prefix with gamma and delta, and alpha and beta as wheels."""
    Path("environment.yml").write_text(ENVIRONMENT)
    create.lock("made.conda-lock.yml", "-r", "environment.yml")
    assert create("env", "--lock", "made.conda-lock.yml").code == 0
    return Capturing(create)


def test_a_venv_becomes_requirements_that_make_the_same_venv(venv: Capturing) -> None:
    done = venv("-o", "requirements.txt")
    assert (done.code, done.err) == (0, "")
    text = Path("requirements.txt").read_text()
    assert pins_in(text) == {"alpha": "1.0", "beta": "2.0"}
    assert f"\n# Resolved for: Python {PATCH}, glibc " in text
    assert "\n    # via alpha\n" in text
    assert venv.create("again", "--lock", "requirements.txt").code == 0
    again = venv.create.directory / "again"
    assert len(list(again.glob("lib/python*/site-packages/*.dist-info"))) == 2


def test_pip_installs_what_was_captured_with_its_hashes(venv: Capturing) -> None:
    assert venv("-o", "requirements.txt").code == 0
    target = venv.create.directory / "target"
    command = [sys.executable, "-m", "pip", "install", "--require-hashes", "--no-cache-dir", "--target", str(target)]
    done = subprocess.run(
        [*command, "-r", "requirements.txt"],
        env={**os.environ, "PIP_CONFIG_FILE": os.devnull, "NO_PROXY": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert {it.name for it in target.glob("*.dist-info")} == {"alpha-1.0.dist-info", "beta-2.0.dist-info"}


def test_a_captured_lock_equals_the_one_that_created_the_environment(venv: Capturing) -> None:
    made = tomli.loads((venv.prefix / ".envsolve" / "pylock.toml").read_text())
    captured = tomli.loads(venv.captured("--format", "pylock"))
    Pylock.from_dict(captured).validate()
    for lock in (made, captured):
        for package in lock["packages"]:
            package.pop("tool", None)  # it is no longer known who required alpha
    assert captured["packages"] == made["packages"]
    assert captured["requires-python"].startswith(f">={PATCH},")


def test_the_lock_records_that_it_was_captured(venv: Capturing) -> None:
    text = venv.captured()
    facts = tomli.loads("\n".join(line[2:] for line in text.splitlines() if line.startswith("# ") and " = " in line))
    command = f"envsolve capture --prefix env --format requirements --index-url {venv.index.index_url}"
    assert facts["command"] == command
    assert facts["envsolve_version"] == __version__
    assert "minimum_driver" not in facts


def test_explicit_installations_become_the_request(venv: Capturing) -> None:
    next(venv.prefix.glob("lib/python*/site-packages/beta-*.dist-info/REQUESTED")).unlink()
    assert '# request = ["alpha==1.0"]\n' in venv.captured()


def test_tools_of_the_environment_are_left_out_unless_required(venv: Capturing) -> None:
    venv.index.add("setuptools", [wheel("setuptools", "80.0")])
    venv.add("pip", "26.0")
    venv.add("setuptools", "80.0")
    assert set(pins_in(venv.captured())) == {"alpha", "beta"}
    venv.add("delta", "1.0", "setuptools")
    venv.index.add("delta", [wheel("delta", "1.0", ["setuptools"])])
    assert set(pins_in(venv.captured())) == {"alpha", "beta", "delta", "setuptools"}


FILE = "file:///home/user/beta-2.0-py3-none-any.whl"
ELSEWHERE = {
    "editable": ({"url": "file:///home/user/beta", "dir_info": {"editable": True}}, "it is an editable install"),
    "a folder": ({"url": "file:///home/user/beta", "dir_info": {}}, "it was installed from a folder"),
    "a repository": (
        {"url": "https://user:secret@example.org/beta.git", "vcs_info": {"vcs": "git", "commit_id": "0" * 40}},
        "it was installed from a repository (https://example.org/beta.git)",
    ),
    "a file without digest": (
        {"url": FILE, "archive_info": {}},
        "it was installed from a file without a recorded digest",
    ),
    "another file": (
        {"url": FILE, "archive_info": {"hashes": {"sha256": "0" * 64}}},
        "no index has a file with its digest",
    ),
    "an address without digest": (
        {"url": "https://example.org/beta-2.0-py3-none-any.whl", "archive_info": {}},
        (
            "it was installed from https://example.org/beta-2.0-py3-none-any.whl without a recorded digest, "
            "and no index has it"
        ),
    ),
    "source by its address": (
        {"url": "https://example.org/beta-2.0.tar.gz", "archive_info": {"hash": f"sha256={'0' * 64}"}},
        "it was built from https://example.org/beta-2.0.tar.gz",
    ),
    "nothing that can be read": (
        {"url": FILE},
        "Exactly one of vcs_info, archive_info, dir_info must be present",
    ),
}


@pytest.mark.parametrize(("direct_url", "reason"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_packages_that_no_lock_can_represent_are_named_or_left_out(
    direct_url: object, reason: str, venv: Capturing
) -> None:
    venv.from_elsewhere("beta", direct_url)
    done = venv.refused("packages-not-captured")
    assert f"cause: beta 2.0: {reason}" in done.err or reason in done.err
    assert "secret" not in done.err
    left = venv("--allow-missing")
    assert (left.code, pins_in(left.out)) == (0, {"alpha": "1.0"})
    assert "note: left out: beta 2.0: " in left.err
    assert "left-out packages are required by alpha: install the lock with pip's --no-deps" in left.err


def test_packages_outside_of_the_prefix_are_included_and_named(
    venv: Capturing, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = venv.create.directory / "outside"
    folder = outside / "gamma-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_bytes(core_metadata("gamma", "1.0"))
    monkeypatch.setenv("PYTHONPATH", str(outside))
    venv.index.add("gamma", [wheel("gamma", "1.0")])
    done = venv("--force")
    assert pins_in(done.out) == {"alpha": "1.0", "beta": "2.0", "gamma": "1.0"}
    assert f"note: included from outside {venv.prefix}: gamma\n" in done.err


def test_a_wheel_from_a_url_keeps_its_url(venv: Capturing) -> None:
    digest = "0" * 64
    url = "https://user:secret@example.org/beta-2.0-py3-none-any.whl"
    venv.from_elsewhere("beta", {"url": url, "archive_info": {"hashes": {"sha256": digest}}})
    text = venv.captured()
    assert f"\nbeta @ https://example.org/beta-2.0-py3-none-any.whl \\\n    --hash=sha256:{digest}\n" in text


def test_a_local_file_that_the_index_also_has_gets_the_url_of_the_index(venv: Capturing) -> None:
    digest = re.search(r"beta==2.0 \\\n    --hash=sha256:(\w+)", venv.captured())
    assert digest is not None
    venv.from_elsewhere("beta", {"url": FILE, "archive_info": {"hash": f"sha256={digest[1]}"}})
    assert f"beta==2.0 \\\n    --hash=sha256:{digest[1]}\n" in venv.captured()


def test_a_different_package_of_the_same_name_and_version_is_not_confused_with_the_installed_one(
    venv: Capturing,
) -> None:
    venv.index.withdraw("beta")
    venv.index.add("beta", [wheel("beta", "2.0", ["evil"])])
    done = venv.refused("packages-not-captured", "--no-cache")
    assert "beta 2.0: the package on the index with this name and version has different metadata" in done.err


def test_a_version_that_no_index_has_is_named(venv: Capturing) -> None:
    venv.index.withdraw("beta")
    venv.index.add("beta", [wheel("beta", "3.0")])
    done = venv.refused("packages-not-captured", "--refresh")
    assert "beta 2.0: no index has this version" in done.err
    assert "--extra-index-url" in done.err


def test_a_build_of_pytorch_is_looked_up_on_its_own_index(venv: Capturing) -> None:
    venv.add("torch", "2.14.1+cu126")
    venv.index.add("torch", [wheel("torch", "2.14.1")])
    build = wheel("torch", "2.14.1+cu126")
    venv.index.index("/whl/cu126/", "pytorch").add("torch", [build])
    words = ("--force", "--pytorch-index-url", f"{venv.index.url}/whl")
    text = venv.captured(*words)
    assert f"\n--extra-index-url {venv.index.url}/whl/cu126\n" in text
    assert (
        f"\ntorch==2.14.1+cu126 \\\n    --hash=sha256:{build.sha256}\n    # from {venv.index.url}/whl/cu126\n" in text
    )
    assert venv.refused("packages-not-captured", "--force").err.count("no index has this version") == 1


def test_a_captured_lock_can_be_checked_for_this_machine(venv: Capturing) -> None:
    venv.add("torch", "2.8.0")
    venv.index.add("torch", [wheel("torch", "2.8.0")])
    assert venv("--force", "-o", "requirements.txt").code == 0
    done = venv.create.envsolve("status", "requirements.txt", "--gpu", "8.6", "--driver", "580.65.06")
    assert (done.code, "runs here" in done.out) == (0, True), done.out + done.err


def test_an_explicit_file_lacks_strong_digests_for_a_conda_lock(conda: Capturing) -> None:
    for made, name in (("made.conda-lock.yml", "conda.lock"), ("conda.lock", "conda-lock.yml")):
        assert conda.create.envsolve("export", made, "-o", name).code == 0
    assert "error: lock-without-hashes" in conda.create("again", "--lock", "conda-lock.yml").err


@pytest.mark.parametrize("format_name", ["explicit", "pylock"])
def test_an_exported_environment_can_be_recreated(format_name: str, conda: Capturing) -> None:
    made = {"explicit": "made.conda-lock.yml", "pylock": "requirements.txt"}[format_name]
    if format_name == "pylock":
        assert conda("-o", made).code == 0
    name = {"explicit": "conda-linux-64.lock", "pylock": "pylock.toml"}[format_name]
    done = conda.create.envsolve("export", made, "-o", name, "--cache-dir", "cache")
    assert done.code == 0, done.err
    again = conda.create("again", "--lock", name)
    assert again.code == 0, again.err
    modules = {it.name for it in (conda.create.directory / "again").glob("lib/python*/site-packages/*.py")}
    assert {"alpha.py", "beta.py"} <= modules
    assert ("gamma.py" in modules) is (format_name != "pylock")


def test_a_version_without_a_wheel_needs_permission_to_be_built(venv: Capturing) -> None:
    venv.index.withdraw("beta")
    venv.index.add("beta", [sdist("beta", "2.0"), wheel("beta", "2.0", tags="cp27-none-win_amd64")])
    venv.refused("packages-not-captured", "--no-cache")
    assert pins_in(venv.captured("--no-cache", "--allow-builds")) == {"alpha": "1.0", "beta": "2.0"}


def test_only_compatible_files_are_in_the_lock(venv: Capturing) -> None:
    suits, other = wheel("beta", "2.0"), wheel("beta", "2.0", tags="cp27-none-win_amd64")
    venv.index.withdraw("beta")
    venv.index.add("beta", [other, suits])
    text = venv.captured("--no-cache")
    assert f"sha256:{suits.sha256}" in text
    assert f"sha256:{other.sha256}" not in text


def test_offline_uses_the_cache(venv: Capturing) -> None:
    text = venv.captured()
    venv.index.fault("*", status=503)
    assert venv.captured("--offline") == text
    done = venv("--offline", "--no-cache")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith("error: not-cached\n")


def test_an_environment_with_errors_is_captured_only_with_force(venv: Capturing) -> None:
    venv.add("torch", "2.8.0")  # without a file of it
    venv.index.add("torch", [wheel("torch", "2.8.0")])
    done = venv.refused("environment-unsound")
    assert "envsolve doctor --prefix env" in done.err
    forced = venv("--force")
    assert (forced.code, pins_in(forced.out)) == (0, {"alpha": "1.0", "beta": "2.0", "torch": "2.8.0"})
    assert forced.err.startswith("note: the environment has errors")


def test_validate_checks_the_environment_first(venv: Capturing) -> None:
    done = venv("--validate")
    assert (done.code, pins_in(done.out)) == (0, {"alpha": "1.0", "beta": "2.0"})


@pytest.mark.parametrize("name", ["conda-lock", "explicit"])
def test_a_venv_holds_no_conda_packages(name: str, venv: Capturing) -> None:
    venv.refused("nothing-to-capture", "--format", name, exit_code=2)


def test_a_directory_that_is_no_environment_is_refused(create: Creating) -> None:
    Path("env").mkdir()
    Capturing(create).refused("python-not-found", exit_code=2)


def test_a_conda_prefix_becomes_the_lock_that_created_it(conda: Capturing) -> None:
    text = conda.captured()
    made = Path("made.conda-lock.yml").read_text()
    assert entries(text) == entries(made)
    assert "  channels:\n  - url: conda-forge\n" in text
    folder = conda.create.directory / "rendered"
    folder.mkdir()
    rendered = conda_lock_renders(text, folder, ("linux-64",))["linux-64"]
    assert len([line for line in rendered.splitlines() if line.startswith("http")]) == 4


def test_a_captured_conda_prefix_can_be_recreated(conda: Capturing) -> None:
    for name in ("conda-lock.yml", "conda-linux-64.lock"):
        assert conda("-o", name).code == 0
        done = conda.create(f"again-{name}", "--lock", name)
        assert done.code == 0, done.err
    for again in conda.create.directory.glob("again-*"):
        assert sorted(it.name for it in (again / "conda-meta").glob("*.json")) == sorted(
            it.name for it in (conda.prefix / "conda-meta").glob("*.json")
        )


def test_a_conda_prefix_exports_only_its_wheels_as_requirements(conda: Capturing) -> None:
    done = conda("--format", "requirements")
    assert (done.code, pins_in(done.out)) == (0, {"alpha": "1.0", "beta": "2.0"})
    assert "only the wheels are captured" in done.err


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"url": "file:///home/user/channel/noarch/gamma-1.0-0.conda"}, "it is from a local folder"),
        ({"url": ""}, "its record has no URL"),
        ({"md5": None, "sha256": None}, "its record has no digest"),
        ({"version": "1.0\nevil"}, "is not a valid conda package"),
    ],
    ids=["local", "no address", "no digest", "unsound"],
)
def test_a_conda_package_without_a_channel_is_named(change: dict[str, object], reason: str, conda: Capturing) -> None:
    (path,) = (conda.prefix / "conda-meta").glob("gamma-*.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    done = conda.refused("packages-not-captured", "--force")
    assert reason in done.err
    left = conda("--allow-missing", "--force")
    assert left.code == 0, left.err
    assert "gamma" not in left.out
    assert "left out: gamma" in left.err


def test_tokens_of_channels_are_left_out(conda: Capturing) -> None:
    (path,) = (conda.prefix / "conda-meta").glob("gamma-*.json")
    url = "https://user:pass@example.org/t/tk-secret/own/noarch/gamma-1.0-0.conda"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"url": url}))
    text = conda.captured("--format", "explicit")
    assert "https://example.org/own/noarch/gamma-1.0-0.conda#" in text
    assert "secret" not in text
    assert "user:" not in text


def test_the_complete_captured_lock(conda: Capturing) -> None:
    """Byte for byte except for the facts of this machine: its Python, its kernel and its C library."""
    for format_name, name in (("conda-lock", "capture.conda-lock.yml"), ("requirements", "capture.requirements.txt")):
        text = conda.captured("--format", format_name).replace(__version__, "VERSION").replace(PATCH, "PYTHON")
        text = MACHINE.sub(_without_machine, text.replace(conda.index.url, "http://127.0.0.1"))
        text = re.sub(r"\b(?=[0-9a-f]*[a-f])[0-9a-f]{32,}\b|'[0-9]{32,}'", "DIGEST", text)  # of this Python's package
        path = SNAPSHOTS / name
        if os.environ.get("ENVSOLVE_UPDATE_SNAPSHOTS"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")


def _without_machine(found: re.Match[str]) -> str:
    return "glibc" if found[0].startswith("glibc") else ""


def test_minor_versions_are_those_of_the_environment(venv: Capturing) -> None:
    assert f'requires-python = ">={PATCH},=={MINOR}.*"' in venv.captured("--format", "pylock")
    assert WHEELS[1] == MINOR


def entries(text: str) -> list[str]:
    """The packages of a conda-lock.yml, each with all its fields."""
    return sorted(text.partition("\npackage:\n")[2].split("\n- "))


def test_constraints_keep_vendor_builds_that_no_index_has(venv: Capturing) -> None:
    venv.add("torch", "2.8.0a0+5228986c39.nv25.6")
    venv.index.add("torch", [wheel("torch", "2.9.0")])
    venv.index.add("needs-torch", [wheel("needs_torch", "1.0", ["torch>=2", "beta"]), wheel("needs_torch", "0.9")])
    before = len(venv.index.requests)
    text = venv.captured("--format", "constraints")
    assert len(venv.index.requests) == before
    assert text.splitlines()[-3:] == ["alpha==1.0", "beta==2.0", "torch==2.8.0a0+5228986c39.nv25.6"]
    Path("constraints.txt").write_text(text)
    command = [sys.executable, "-m", "pip", "--python", str(venv.prefix / "bin" / "python"), "install"]
    command += ["--index-url", venv.index.index_url, "-c", "constraints.txt", "needs-torch==1.0"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert venv.create.installed()["torch"] == "2.8.0a0+5228986c39.nv25.6"
