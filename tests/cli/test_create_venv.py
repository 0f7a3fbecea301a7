"""``envsolve create`` creates a venv from a request or a Python lock: exactly the locked packages, or nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from uv import find_uv_bin

from tests.cli.creating import WHEELS, Creating, creating_in, tree
from tests.conda.packages import MINOR
from tests.conftest import Envsolve
from tests.index.packages import sdist, wheel

pytestmark = [
    pytest.mark.thorough,  # each makes whole environments
    pytest.mark.skipif(sys.platform == "win32", reason="the interpreter of a venv lies elsewhere there"),
]


@pytest.fixture
def create(envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Creating]:
    with creating_in(envsolve, tmp_path, monkeypatch) as creating:
        yield creating


@pytest.fixture
def without_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine where envsolve does not find uv."""
    monkeypatch.setattr("envsolve.create.tools._candidates", lambda: iter(()))


def test_a_request_for_python_packages_creates_a_venv(create: Creating) -> None:
    done = create.request()
    assert done.code == 0, done.err
    assert done.out == f"{create.prefix}\n"
    assert done.err == f"note: to activate it: source {create.prefix}/bin/activate\n"
    assert create.installed() == {"alpha": "1.0", "beta": "2.0"}
    assert create.python("import sys; print(sys.prefix)") == str(create.prefix)


def test_the_record_describes_the_environment_and_the_lock_recreates_it(create: Creating) -> None:
    assert create.request().code == 0
    record = create.record()
    lock = create.prefix / record["lock"]["file"]
    assert (record["schema_version"], record["state"], record["kind"]) == (1, "finished", "venv")
    assert record["request"] == (
        f"envsolve create {create.prefix} --python {MINOR} --gpu none --index-url {create.index.index_url}"
        " --format pylock alpha"
    )
    assert record["host"]["platform"] in ("linux-64", "linux-aarch64", "osx-64", "osx-arm64")
    assert create("again", "--lock", str(lock)).code == 0
    again = create.directory / "again"
    assert (again / ".envsolve" / "pylock.toml").read_bytes() == lock.read_bytes()
    first, second = ((it / ".envsolve.json").read_text() for it in (create.prefix, again))
    request = f"envsolve create {again} --lock {lock}"
    first = first.replace(record["request"], request)
    assert second == first.replace(f'"prefix": "{create.prefix}"', f'"prefix": "{again}"')


@pytest.mark.parametrize("name", ["pylock.toml", "requirements.txt"])
def test_a_lock_is_installed_as_it_is(name: str, create: Creating) -> None:
    create.lock(name, "alpha", "beta<2", "--python", MINOR)
    done = create("env", "--lock", name)
    assert done.code == 0, done.err
    assert create.installed() == {"alpha": "1.0", "beta": "1.0"}


@pytest.mark.parametrize("uv", [True, False], ids=["uv", "pip"])
def test_a_uv_lock_is_installed_as_it_is(uv: bool, create: Creating, request: pytest.FixtureRequest) -> None:
    create.index.add("gamma", [wheel("gamma", "1.0")])
    Path("pyproject.toml").write_text(
        '[project]\nname = "demo"\nversion = "0"\nrequires-python = ">=3.9"\n'
        """dependencies = ["alpha", "beta<2", "gamma ; sys_platform == 'win32'"]\n"""
        f'[[tool.uv.index]]\nurl = "{create.index.index_url}"\ndefault = true\n'
    )
    subprocess.run([find_uv_bin(), "lock", "--quiet", "--cache-dir", "uv-cache"], check=True)
    if not uv:
        request.getfixturevalue("without_uv")
    done = create("env", "--lock", "uv.lock")
    assert done.code == 0, done.err
    assert "only the main dependencies of uv.lock are installed" in done.err
    names = ("alpha", "beta", "gamma", "demo")
    found = {name: version for name, version in create.installed().items() if name in names}
    assert found == {"alpha": "1.0", "beta": "1.0"}
    assert "is up to date" in create("env", "--lock", "uv.lock").err


def test_without_uv_venv_and_pip_give_the_same_result(create: Creating, without_uv: None) -> None:
    create.lock("pylock.toml", "alpha", "--python", MINOR)
    done = create("env", "--lock", "pylock.toml")
    assert done.code == 0, done.err
    assert {name: version for name, version in create.installed().items() if name in ("alpha", "beta")} == {
        "alpha": "1.0",
        "beta": "2.0",
    }
    assert "\nuv = " not in (create.prefix / "pyvenv.cfg").read_text()


def test_a_dry_run_prints_the_plan(create: Creating) -> None:
    lock = create.lock("pylock.toml", "alpha", "--python", MINOR)
    done = create("env", "--lock", lock, "--dry-run")
    assert (done.code, done.out) == (0, f"{create.prefix}\n")
    assert done.err == f"note: {create.prefix} would be new\n  + alpha 1.0\n  + beta 2.0\n"
    assert not create.prefix.exists()
    assert json.loads(create("env", "--lock", lock, "--dry-run", "--json").out)["outcome"] == "would-change"
    assert create("env", "--lock", lock).code == 0
    before = tree(create.prefix)
    other = create.lock("requirements.txt", "beta<2", "--python", MINOR)
    create.refused("prefix-in-use", "env", "--lock", other, "--dry-run", exit_code=2)
    done = create("env", "--lock", other, "--dry-run", "--force")
    assert done.err == f"note: {create.prefix} would be changed\n  - alpha 1.0\n  ~ beta 2.0 -> 1.0\n"
    assert tree(create.prefix) == before


def test_an_environment_of_the_same_lock_is_up_to_date(create: Creating) -> None:
    assert create.request().code == 0
    before = tree(create.prefix)
    done = create.request()
    assert (done.code, done.out) == (0, f"{create.prefix}\n")
    assert done.err == f"note: {create.prefix} is up to date: it was made from this lock\n"
    assert tree(create.prefix) == before


def test_a_module_file_is_written_next_to_it(create: Creating) -> None:
    Path("modules").mkdir()
    file = Path("modules", "1.0")
    file.write_text("#%Module1.0\nsetenv MINE yes\n")
    create.refused("output-not-ours", *create.words("--modulefile", str(file)), exit_code=2)
    file.unlink()
    done = create.request("--modulefile", str(file))
    assert (done.code, done.err.splitlines()[-1]) == (0, f"note: {file}: written")
    assert f"setenv VIRTUAL_ENV {create.prefix}\n" in file.read_text()
    file.unlink()
    assert create.request("--modulefile", str(file)).err == (
        f"note: {create.prefix} is up to date: it was made from this lock\nnote: {file}: written\n"
    )


def test_an_environment_of_another_lock_is_replaced_only_with_force(create: Creating) -> None:
    assert create.request().code == 0
    create.lock("pylock.toml", "beta<2", "--python", MINOR)
    refused = create.refused("prefix-in-use", "env", "--lock", "pylock.toml", exit_code=2)
    assert "--force" in refused.err
    assert create("env", "--lock", "pylock.toml", "--force").code == 0
    assert create.installed() == {"beta": "1.0"}
    assert not (create.prefix / ".envsolve-old").exists()


def test_a_lock_that_changed_since_is_reported_with_its_earlier_state(create: Creating) -> None:
    create.lock("pylock.toml", "beta<2", "--python", MINOR)
    assert create("env", "--lock", "pylock.toml").code == 0
    refused = create.refused("prefix-in-use", "env", "--lock", "pylock.toml", "--python", ">=3.9", exit_code=2)
    assert f"{create.prefix} is an environment made from pylock.toml for another Python\n" in refused.err
    create.lock("pylock.toml", "beta", "--python", MINOR, "-U")
    refused = create.refused("prefix-in-use", "env", "--lock", "pylock.toml", exit_code=2)
    assert f"{create.prefix} is an environment made from an earlier version of pylock.toml\n" in refused.err
    create.lock("pylock.other.toml", "beta", "--python", MINOR)
    refused = create.refused("prefix-in-use", "env", "--lock", "pylock.other.toml", exit_code=2)
    assert f"{create.prefix} is an environment made from another lock\n" in refused.err


def test_a_failed_replacement_leaves_the_environment_unchanged(create: Creating) -> None:
    assert create.request().code == 0
    create.lock("pylock.toml", "beta<2", "--python", MINOR)
    create.index.fault("/files/beta/*", status=404)
    create.refused("wheels-failed", "env", "--lock", "pylock.toml", "--force", exit_code=3)
    assert create.installed() == {"alpha": "1.0", "beta": "2.0"}


def test_a_failed_replacement_can_be_repeated(create: Creating) -> None:
    assert create.request().code == 0
    create.lock("pylock.toml", "beta<2", "--python", MINOR)
    create.index.fault("/files/beta/*", status=404, times=1)
    assert create("env", "--lock", "pylock.toml", "--force").code == 3
    done = create("env", "--lock", "pylock.toml", "--force")
    assert done.code == 0, done.err
    assert create.installed() == {"beta": "1.0"}


@pytest.mark.parametrize("lock", ["pylock.toml", "requirements.txt"])
def test_an_altered_wheel_is_refused(lock: str, create: Creating) -> None:
    create.lock(lock, "alpha", "--python", MINOR)
    other = wheel("beta", "2.0", members={"evil.py": b""}).content
    assert other is not None
    create.index.fault("/files/beta/*.whl", alter=lambda _: other)
    refused = create.refused("checksum-mismatch", "env", "--lock", lock, exit_code=3)
    assert "beta" in refused.err


def test_an_altered_wheel_is_refused_without_uv(
    create: Creating, without_uv: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    create.lock("requirements.txt", "alpha", "--python", MINOR)
    create.index.fault("/files/beta/*.whl", alter=lambda content: content + b" ")
    create.refused("checksum-mismatch", "env", "--lock", "requirements.txt", exit_code=3)


def test_a_failure_midway_leaves_nothing_behind(create: Creating) -> None:
    create.lock("pylock.toml", "alpha", "--python", MINOR)
    create.index.fault("/files/beta/*", cut=True)
    create.refused("wheels-failed", "far/below/env", "--lock", "pylock.toml", exit_code=3)
    assert not (create.directory / "far").exists()
    create.prefix.mkdir()
    create.refused("wheels-failed", "env", "--lock", "pylock.toml", exit_code=3)
    assert tree(create.prefix) == {}


def test_an_unfinished_environment_is_preserved_on_request_and_does_not_block_the_next_command(
    create: Creating,
) -> None:
    create.lock("pylock.toml", "alpha", "--python", MINOR)
    create.index.fault("/files/beta/*", status=404, times=1)
    assert create("env", "--lock", "pylock.toml", "--keep").code == 3
    assert create.record()["state"] == "unfinished"
    assert (create.prefix / "bin" / "python").exists()
    assert create("env", "--lock", "pylock.toml").code == 0
    assert create.record()["state"] == "finished"


@pytest.mark.parametrize("name", ["with space/ünï 環境", "d" * 120 + "/" + "e" * 120])
def test_any_valid_path_works(name: str, create: Creating) -> None:
    scripts = {
        "alpha_tool.py": b"import sys\ndef main():\n    print(sys.prefix)\n",
        "alpha_tool-1.0.dist-info/entry_points.txt": b"[console_scripts]\nalpha-tool = alpha_tool:main\n",
    }
    create.index.add("alpha-tool", [wheel("alpha-tool", "1.0", members=scripts)])
    done = create(name, "alpha-tool", *WHEELS, "--index-url", create.index.index_url)
    assert done.code == 0, done.err
    create.prefix = create.directory / name
    assert done.out == f"{create.prefix}\n"
    ran = subprocess.run([create.prefix / "bin" / "alpha-tool"], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == str(create.prefix)


def test_a_link_is_followed_to_its_directory(create: Creating) -> None:
    (create.directory / "real").mkdir()
    create.prefix.symlink_to("real")
    done = create.request()
    assert (done.code, done.out) == (0, f"{create.directory / 'real'}\n")
    assert create.prefix.is_symlink()


def test_a_missing_python_is_one_clear_error(create: Creating) -> None:
    Path("pylock.toml").write_text(
        'lock-version = "1.0"\ncreated-by = "x"\nrequires-python = ">=3.98.0,==3.98.*"\npackages = []\n'
    )
    refused = create.refused("python-not-found", "env", "--lock", "pylock.toml", exit_code=3)
    assert "the lock is for Python 3.98, but this machine has no such CPython" in refused.err
    assert "uv python install 3.98" in refused.err
    create.lock("pylock.toml", "alpha", "--python", MINOR, "--force")
    create.refused("python-not-found", "env", "--lock", "pylock.toml", "--python", "<3.9", exit_code=3)


def test_offline_uses_downloaded_packages(create: Creating) -> None:
    create.lock("pylock.toml", "alpha", "--python", MINOR)
    create.refused("offline", "env", "--lock", "pylock.toml", "--offline", exit_code=3)
    assert create("first", "--lock", "pylock.toml").code == 0
    create.index.fault("*", status=503)
    assert create("env", "--lock", "pylock.toml", "--offline").code == 0
    assert create.installed() == {"alpha": "1.0", "beta": "2.0"}


@pytest.mark.parametrize(("where", "format_name"), [("in the address", "requirements"), ("in the settings", "pylock")])
def test_a_login_opens_the_index_and_is_stored_nowhere(
    where: str, format_name: str, create: Creating, monkeypatch: pytest.MonkeyPatch
) -> None:
    create.index.require("me", "hunter2")
    address = create.index.index_url.replace("://", "://me:hunter2@")
    named = ("--index-url", address) if where == "in the address" else ()
    if not named:
        monkeypatch.setenv("PIP_INDEX_URL", address)
    done = create("env", "alpha", *WHEELS, *named, "--format", format_name)
    assert done.code == 0, done.err
    assert create.installed() == {"alpha": "1.0", "beta": "2.0"}
    assert "hunter2" not in done.out + done.err
    assert [name for name, content in (tree(create.prefix) or {}).items() if b"hunter2" in (content or b"")] == []


def test_settings_of_other_projects_are_ignored(create: Creating, monkeypatch: pytest.MonkeyPatch) -> None:
    create.lock("requirements.txt", "alpha", "--python", MINOR)
    Path("pyproject.toml").write_text('[tool.uv]\nconstraint-dependencies = ["beta<2"]\n')
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX", "PIP_INDEX_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/simple/")
    monkeypatch.setenv("VIRTUAL_ENV", str(create.directory / "other"))
    assert create("env", "--lock", "requirements.txt").code == 0
    assert create.installed() == {"alpha": "1.0", "beta": "2.0"}


def test_an_interrupt_during_replacement_leaves_the_old_environment_whole(
    create: Creating, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert create.request().code == 0
    create.lock("pylock.toml", "beta<2", "--python", MINOR)
    replace = Path.replace

    def refused(path: Path, target: Path) -> Path:
        if path.name == "lib":
            raise PermissionError(13, "Permission denied")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", refused)
    create.refused("prefix-not-usable", "env", "--lock", "pylock.toml", "--force", exit_code=2)


def test_a_broken_environment_is_not_up_to_date_and_force_repairs_it(create: Creating) -> None:
    assert create.request().code == 0
    (create.prefix / "bin" / "python").unlink()
    refused = create.refused("environment-broken", *create.words(), exit_code=2)
    assert "--force" in refused.err
    assert create.request("--force").code == 0
    assert create.installed() == {"alpha": "1.0", "beta": "2.0"}


def test_force_recreates_an_environment_of_the_same_lock(create: Creating) -> None:
    assert create.request().code == 0
    (next(create.prefix.rglob("site-packages")) / "stray.py").touch()
    assert create.request("--force").code == 0
    assert not list(create.prefix.rglob("stray.py"))


def test_a_copy_is_neither_up_to_date_nor_replaced(create: Creating) -> None:
    assert create.request().code == 0
    create.prefix.rename(create.directory / "moved")
    moved = tree(create.directory / "moved")
    for words in ((), ("--force",)):
        refused = create("moved", *create.words(*words)[1:])
        assert (refused.code, refused.err.partition("\n")[0]) == (2, "error: prefix-not-ours")
        assert f"it was made in {create.prefix}" in refused.err
    assert tree(create.directory / "moved") == moved


def test_a_mirror_with_a_directory_t_is_preserved_in_the_lock(create: Creating) -> None:
    create.lock("requirements.txt", "alpha", "--python", MINOR)
    text = (
        Path("requirements.txt").read_text() + "# from https://mirror/source/t/tqdm by me@host\n" + "# @" * 2000 + "\n"
    )
    Path("requirements.txt").write_text(text)
    assert create("env", "--lock", "requirements.txt").code == 0
    assert (create.prefix / ".envsolve" / "requirements.txt").read_text() == text


def test_an_index_option_applies_to_a_lock_that_names_none(create: Creating, monkeypatch: pytest.MonkeyPatch) -> None:
    create.lock("requirements.txt", "alpha", "--python", MINOR)
    lines = Path("requirements.txt").read_text().splitlines(keepends=True)
    Path("bare.txt").write_text("".join(line for line in lines if "index-url" not in line))
    empty = create.index.index("/empty/simple/").index_url
    monkeypatch.setenv("PIP_INDEX_URL", empty)
    assert create("env", "--lock", "bare.txt").code == 3
    done = create("env", "--lock", "bare.txt", "--extra-index-url", create.index.index_url)
    assert done.code == 0, done.err


@pytest.mark.parametrize("password", ["two words", 'a"b\\c', "#hash"])
def test_a_password_with_any_characters_works(password: str, create: Creating) -> None:
    create.index.require("me", password)
    address = create.index.index_url.replace("://", f"://me:{quote(password, safe='')}@")
    done = create("env", "alpha", *WHEELS, "--index-url", address)
    assert done.code == 0, done.err


BACKEND = b"""
import pkg_resources, zipfile
def get_requires_for_build_wheel(config_settings=None):
    return []
def build_wheel(directory, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(f"{directory}/own-1.0-py3-none-any.whl", "w") as file:
        file.writestr("own.py", "")
        file.writestr("own-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: own\\nVersion: 1.0\\n")
        file.writestr("own-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        file.writestr("own-1.0.dist-info/RECORD", "")
    return "own-1.0-py3-none-any.whl"
"""
PYPROJECT = b'[build-system]\nrequires = ["setuptools"]\nbuild-backend = "backend"\nbackend-path = ["."]\n'


@pytest.fixture
def needy(create: Creating) -> None:
    """A source distribution that only builds with the older setuptools of the index."""
    create.index.add("own", [sdist("own", "1.0", members={"pyproject.toml": PYPROJECT, "backend.py": BACKEND})])
    old = wheel("setuptools", "81.0.0", members={"pkg_resources.py": b""})
    create.index.add("setuptools", [old, wheel("setuptools", "82.0.0")])


@pytest.mark.parametrize("uv", [True, False], ids=["uv", "pip"])
def test_a_build_that_needs_older_tools_gets_them(
    uv: bool, create: Creating, needy: None, request: pytest.FixtureRequest
) -> None:
    if not uv:
        request.getfixturevalue("without_uv")
    done = create("env", "own", *WHEELS, "--index-url", create.index.index_url, "--allow-builds")
    assert done.code == 0, done.err
    assert create.installed()["own"] == "1.0"
    bound = "setuptools<82 (setuptools 82 removed pkg_resources)"
    assert f"note: a package failed to build, and everything was built with {bound}\n" in done.err


@pytest.mark.parametrize("uv", [True, False], ids=["uv", "pip"])
@pytest.mark.parametrize("recorded", [True, False], ids=["of the lock", "given"])
def test_build_constraints_are_passed_on(
    uv: bool, recorded: bool, create: Creating, needy: None, request: pytest.FixtureRequest
) -> None:
    if not uv:
        request.getfixturevalue("without_uv")
    Path("limits.txt").write_text("setuptools<=81\n")
    limits = ("--build-constraint", "limits.txt")
    create.lock("pylock.toml", "own", "--python", MINOR, *(limits if recorded else ()))
    where = ("--index-url", create.index.index_url)
    done = create("env", "--lock", "pylock.toml", "--allow-builds", *where, *(() if recorded else limits))
    assert done.code == 0, done.err
    assert create.installed()["own"] == "1.0"
    assert "failed to build" not in done.err


@pytest.mark.parametrize("uv", [True, False], ids=["uv", "pip"])
def test_builds_need_permission(uv: bool, create: Creating, request: pytest.FixtureRequest) -> None:
    if not uv:
        request.getfixturevalue("without_uv")
    own = sdist("own", "1.0")
    create.index.add("own", [own])
    address = f"{create.index.url}/files/own/{own.name}"
    Path("requirements.txt").write_text(f"own @ {address} --hash=sha256:{own.sha256}\n")
    refused = create.refused("build-refused", "env", "--lock", "requirements.txt", exit_code=2)
    assert "--allow-builds" in refused.err
    assert create.index.count("/files/own/*") == 0


@pytest.mark.parametrize("uv", [True, False], ids=["uv", "pip"])
def test_an_altered_wheel_is_reported_with_any_number_of_hashes(
    uv: bool, create: Creating, request: pytest.FixtureRequest
) -> None:
    if not uv:
        request.getfixturevalue("without_uv")
    many = " ".join(f"--hash=sha256:{number:064x}" for number in range(60))
    Path("requirements.txt").write_text(f"--index-url {create.index.index_url}\nbeta==2.0 {many}\n")
    create.refused("checksum-mismatch", "env", "--lock", "requirements.txt", exit_code=3)


def test_reuse_of_downloads_is_promised_only_with_a_cache(create: Creating) -> None:
    create.lock("pylock.toml", "alpha", "--python", MINOR)
    create.index.fault("/files/beta/*", status=404)
    errors = create("env", "--lock", "pylock.toml").err
    gone = create.envsolve("create", "env", "--lock", "pylock.toml", "--no-cache", "--no-validate").err
    assert "try again; completed downloads are reused." in errors
    assert "try again." in gone


def test_json_reports_the_creation_and_the_validation(create: Creating) -> None:
    done = create.envsolve("create", *create.words("--cache-dir", "cache", "--json", "-q"))
    assert (done.code, done.err) == (0, "")
    answer = json.loads(done.out)
    assert (answer["prefix"], answer["kind"], answer["outcome"]) == (str(create.prefix), "venv", "made")
    assert answer["python"] == answer["validation"]["python"] == str(create.prefix / "bin/python")
    assert {probe["name"]: probe["status"] for probe in answer["validation"]["probes"]}["driver"] == "skip"


def test_json_without_a_validation_says_so(create: Creating) -> None:
    answer = json.loads(create.request("--json").out)
    assert (answer["outcome"], answer["validation"]) == ("made", None)
    assert json.loads(create.request("--json").out)["outcome"] == "up-to-date"


def test_validation_is_reported_on_stderr(create: Creating) -> None:
    done = create.envsolve("create", *create.words("--cache-dir", "cache"))
    assert (done.code, done.out) == (0, f"{create.prefix}\n")
    assert "skip  driver" in done.err
    assert "has no framework that envsolve knows" in done.err


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_a_script_of_a_wheel_does_not_replace_the_interpreter(
    installer: str, create: Creating, request: pytest.FixtureRequest
) -> None:
    if installer == "pip":
        request.getfixturevalue("without_uv")
    entry = b"[console_scripts]\npython = beta:main\n"
    create.index.add("beta", [wheel("beta", "2.0", members={"beta-2.0.dist-info/entry_points.txt": entry})])
    create.lock("requirements.txt", "alpha", "--python", MINOR)
    done = create("env", "--lock", "requirements.txt")
    assert done.code in (2, 3), done.err
    assert done.err.startswith(("error: interpreter-replaced\n", "error: wheels-failed\n")), done.err
    assert tree(create.prefix) is None


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_a_forged_record_removes_nothing(installer: str, create: Creating, request: pytest.FixtureRequest) -> None:
    if installer == "pip":
        request.getfixturevalue("without_uv")
    create.lock("requirements.txt", "alpha", "--python", MINOR)
    assert create("env", "--lock", "requirements.txt").code == 0
    record = (create.prefix / ".envsolve.json").read_text(encoding="utf-8")
    forged = create.directory / "other"
    forged.mkdir()
    (forged / "own.txt").write_text("mine")
    text = record.replace(f'"prefix": "{create.prefix}"', f'"prefix": "{forged}"')
    for state, words in (("unfinished", ()), ("unfinished", ("--force",)), ("finished", ("--force",))):
        (forged / ".envsolve.json").write_text(text.replace('"finished"', f'"{state}"'), encoding="utf-8")
        create.lock("another.txt", "beta<2", "--python", MINOR, "--force")
        before = tree(forged)
        done = create("other", "--lock", "another.txt", *words)
        assert (done.code, done.err.partition("\n")[0]) == (2, "error: prefix-not-ours"), done.err
        assert tree(forged) == before
    (forged / ".envsolve.json").unlink()
    (forged / ".envsolve.json").symlink_to(create.prefix / ".envsolve.json")
    assert create("other", "--lock", "another.txt").err.startswith("error: record-unreadable\n")
    assert (forged / "own.txt").exists()


def test_an_environment_of_envsolve_is_replaced_with_force(create: Creating) -> None:
    assert create.request().code == 0
    create.lock("another.txt", "beta<2", "--python", MINOR)
    assert create("env", "--lock", "another.txt").err.startswith("error: prefix-in-use\n")
    assert create("env", "--lock", "another.txt", "--force").code == 0
    assert create.installed() == {"beta": "1.0"}


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_a_user_file_is_not_deleted_by_force(installer: str, create: Creating, request: pytest.FixtureRequest) -> None:
    if installer == "pip":
        request.getfixturevalue("without_uv")
    assert create.request().code == 0
    own = create.prefix / "notes.txt"
    own.write_text("mine")
    refused = create.refused("prefix-not-ours", *create.words("--force"), exit_code=2)
    assert f"{create.prefix} contains notes.txt, which envsolve did not write" in refused.err
    assert own.read_text() == "mine"
    own.unlink()
    assert create.python("import gc, json; print('it runs, and compiles')") == "it runs, and compiles"
    assert create.request("--force").code == 0
