"""``envsolve sync`` and ``run``: the environment of a project matches its lock, and a command runs in it."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from tests.cli.creating import Creating, creating_in, tree
from tests.cli.locking import assert_in_three_parts
from tests.cli.test_lock import Project, project
from tests.conda.packages import MINOR, package, python_package
from tests.conftest import Envsolve, Result
from tests.index.packages import wheel

__all__ = ["project"]

pytestmark = [
    pytest.mark.thorough,  # each makes whole environments
    pytest.mark.skipif(sys.platform == "win32", reason="the interpreter of a venv lies elsewhere there"),
]
PROJECT = """\
[tool.envsolve]
requirements = {requirements}
python = "{python}"
gpus = ["none"]
index-url = "{index}"
outputs = ["{lock}"]
"""


class Syncing:
    """A project whose environment is at ``env``."""

    def __init__(self, create: Creating) -> None:
        self.create = create
        self.lock_file = "pylock.toml"

    def require(self, *requirements: str) -> None:
        """The project as if it had been written with these, locked."""
        text = PROJECT.format(
            requirements=json.dumps(requirements),
            python=MINOR,
            index=self.create.index.index_url,
            lock=self.lock_file,
        )
        Path("pyproject.toml").write_text(text)
        done = self("lock", "-U")
        assert done.code == 0, done.err

    def __call__(self, command: str, *words: str) -> Result:
        return self.create.envsolve(command, "--cache-dir", "cache", *words)

    def sync(self, *words: str) -> Result:
        return self("sync", "--prefix", "env", "--no-validate", *words)

    def pip(self, *words: str) -> None:
        """Manual changes of a user in the environment."""
        command = [sys.executable, "-m", "pip", "--python", str(self.create.prefix / "bin" / "python"), *words]
        subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def syncing(envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Syncing]:
    with creating_in(envsolve, tmp_path, monkeypatch) as creating:
        yield Syncing(creating)


def test_a_missing_python_suggests_another_one_for_the_project(syncing: Syncing) -> None:
    syncing.require("alpha")
    Path("pylock.toml").write_text(
        'lock-version = "1.0"\ncreated-by = "x"\nrequires-python = "==3.98.*"\npackages = []\n'
    )
    done = syncing.sync("--offline")
    assert done.code == 3
    assert f'Python: python = "{MINOR}" in pyproject.toml\n  envsolve lock\n' in done.err


@pytest.mark.usefixtures("installer")
def test_only_differences_are_installed_and_removed(syncing: Syncing) -> None:
    syncing.require("alpha", "beta<2")
    assert syncing.sync().code == 0
    made = (syncing.create.prefix / "pyvenv.cfg").stat().st_ino
    syncing.create.index.add("gamma", [wheel("gamma", "3.0")])
    syncing.require("beta", "gamma")
    before = tree(syncing.create.prefix)
    would = syncing.sync("--dry-run")
    assert would.err.partition("\n")[0] == f"note: {syncing.create.prefix} would be changed"
    assert tree(syncing.create.prefix) == before
    done = syncing.sync()
    assert done.code == 0, done.err
    assert done.err == would.err.partition("\n")[2]
    assert done.out == f"{syncing.create.prefix}\n"
    assert done.err == "  - alpha 1.0\n  ~ beta 1.0 -> 2.0\n  + gamma 3.0\n"
    assert syncing.create.installed() == {"beta": "2.0", "gamma": "3.0"}
    assert (syncing.create.prefix / "pyvenv.cfg").stat().st_ino == made
    assert syncing.create.record()["state"] == "finished"
    for words in ((), ("--dry-run",)):
        again = syncing.sync(*words)
        up_to_date = f"note: {syncing.create.prefix} is up to date: it was made from this lock\n"
        assert (again.code, again.err) == (0, up_to_date)


@pytest.mark.usefixtures("installer")
def test_foreign_packages_are_removed_and_foreign_files_stay(syncing: Syncing) -> None:
    syncing.require("alpha")
    syncing.sync()
    (syncing.create.prefix / "notes.txt").write_text("mine")
    syncing.pip("install", "--index-url", syncing.create.index.index_url, "beta==1.0")
    syncing.pip("uninstall", "--yes", "alpha")
    done = syncing.sync()
    assert done.code == 0, done.err
    assert "  + alpha 1.0\n  ~ beta 1.0 -> 2.0\n" in done.err
    assert syncing.create.installed() == {"alpha": "1.0", "beta": "2.0"}
    assert (syncing.create.prefix / "notes.txt").read_text() == "mine"
    syncing.require("beta")
    refused = syncing.create("env", "--lock", "pylock.toml", "--force")
    assert refused.code == 2
    assert "notes.txt" in refused.err


def test_a_failed_installation_leaves_an_environment_that_the_next_sync_completes(syncing: Syncing) -> None:
    syncing.require("alpha")
    syncing.sync()
    (syncing.create.prefix / "notes.txt").write_text("mine")
    syncing.create.index.add("gamma", [wheel("gamma", "3.0")])
    syncing.require("gamma")
    syncing.create.index.fault("/files/gamma/*", status=404, times=1)
    failed = syncing.sync()
    assert failed.code == 3
    assert_in_three_parts(failed.err)
    assert syncing.create.record()["state"] == "changing"
    refused = syncing.create("env", "--lock", "pylock.toml")
    assert refused.code == 2
    assert "is between two locks" in refused.err
    assert syncing.sync().code == 0
    assert syncing.create.installed() == {"gamma": "3.0"}
    assert syncing.create.record()["state"] == "finished"
    syncing.require("alpha")
    refused = syncing.create("env", "--lock", "pylock.toml", "--force")
    assert refused.code == 2
    assert "notes.txt" in refused.err
    (syncing.create.prefix / "notes.txt").unlink()
    assert syncing.create("env", "--lock", "pylock.toml", "--force").code == 0


def test_an_environment_that_envsolve_did_not_create_is_not_changed(syncing: Syncing) -> None:
    syncing.require("alpha")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "env"], check=True)
    done = syncing.sync()
    assert done.code == 2
    assert done.err.startswith("error: prefix-not-ours\n")


def test_conda_packages_and_wheels_change_in_place(syncing: Syncing) -> None:
    syncing.lock_file = "conda-lock.yml"
    syncing.require("alpha", "gamma")
    first = syncing.sync()
    assert first.code == 0, first.err
    python = (syncing.create.prefix / "bin" / "python").stat().st_ino
    syncing.require("beta<2", "delta")
    done = syncing.sync()
    assert done.code == 0, done.err
    assert [it.split()[:2] for it in done.err.splitlines()] == [
        ["-", "alpha"],
        ["~", "beta"],
        ["+", "delta"],
        ["-", "gamma"],
    ]
    assert syncing.create.installed() == {"beta": "1.0"}
    assert (syncing.create.prefix / "bin" / "python").stat().st_ino == python
    assert syncing.sync().err.endswith("is up to date: it was made from this lock\n")


@pytest.mark.usefixtures("installer")
def test_a_damaged_package_is_reinstalled(syncing: Syncing) -> None:
    members = {"delta/__init__.py": b"NAME = 'delta'", "delta/lib.so": b"\x7fELF"}
    syncing.create.index.add("delta", [wheel("delta", "1.0", members=members)])
    syncing.require("alpha", "delta")
    assert syncing.sync().code == 0
    modules = next(syncing.create.prefix.glob("lib/python*/site-packages"))

    def is_mended(name: str = "delta") -> None:
        done = syncing.sync()
        version = syncing.create.installed()[name]
        again = (
            f"note: files of {name} were missing or changed: installed again\n  ~ {name} {version} (installed again)\n"
        )
        assert (done.code, done.err) == (0, again)
        assert (modules / "delta" / "__init__.py").read_bytes() == members["delta/__init__.py"]
        assert (modules / "delta" / "lib.so").read_bytes() == members["delta/lib.so"]
        assert "is up to date" in syncing.sync().err

    (modules / "delta" / "__init__.py").unlink()
    is_mended()
    with (modules / "delta" / "lib.so").open("r+b") as library:  # and in the cache, if that is a hard link
        library.write(b"\x7fELG")
    is_mended()
    (modules / "delta" / "__init__.py").write_bytes(b"")
    is_mended()
    (modules / "delta" / "__init__.py").unlink()
    (modules / "delta" / "__init__.py").symlink_to("nothing.py")
    is_mended()
    syncing.pip("install", "--force-reinstall", "--no-deps", "--index-url", syncing.create.index.index_url, "beta")
    is_mended("beta")
    assert syncing.create("env", "--lock", "pylock.toml", "--force").code == 0


@pytest.mark.usefixtures("installer")
def test_files_removed_with_a_foreign_package_are_reinstalled(syncing: Syncing) -> None:
    syncing.create.index.add("stranger", [wheel("stranger", "1.0", members={"beta.py": b"STRANGE = True"})])
    syncing.require("beta")
    syncing.sync()
    syncing.pip("install", "--index-url", syncing.create.index.index_url, "stranger")
    assert syncing.create.python("import beta; print(beta.STRANGE)") == "True"
    done = syncing.sync()
    assert "  ~ beta 2.0 (installed again)\n  - stranger 1.0\n" in done.err
    assert syncing.create.python("import beta; print(hasattr(beta, 'STRANGE'))") == "False"


@pytest.mark.parametrize("command", ["doctor", "validate"])
def test_differences_from_the_lock_are_noted_with_the_command_that_fixes_them(syncing: Syncing, command: str) -> None:
    syncing.create.index.add("gamma", [wheel("gamma", "1.0")])
    syncing.require("alpha", "gamma")
    assert syncing("sync", "--no-validate").code == 0
    prefix = Path(".venv").absolute()

    def noted(*words: str) -> str:
        return syncing.create.envsolve(command, "--prefix", str(prefix), *words).err

    assert "is not what its lock has" not in noted()
    pip = (sys.executable, "-m", "pip", "--python", str(prefix / "bin" / "python"))
    index = ("--index-url", syncing.create.index.index_url)
    subprocess.run([*pip, "install", "--no-deps", *index, "beta==1.0"], check=True, capture_output=True)
    subprocess.run([*pip, "uninstall", "--yes", "alpha"], check=True, capture_output=True)
    next(prefix.glob("lib/python*/site-packages/gamma.py")).unlink()
    differences = "alpha is missing, beta 1.0 instead of 2.0, files of gamma are missing or changed"
    note = f"note: {prefix} is not what its lock has: {differences}\n  envsolve sync"
    assert f"{note}\n" in noted()
    with chdir(prefix.parent.parent):
        assert f"{note} --project {prefix.parent}\n" in noted()
    assert syncing("sync", "--no-validate").code == 0
    assert "is not what its lock has" not in noted()
    (prefix / "bin" / "python").unlink()
    if command == "doctor":
        assert "is not what its lock has: its Python does not run\n  envsolve sync\n" in noted()
    assert syncing("sync", "--no-validate").code == 0
    assert "is not what its lock has" not in noted()


def test_an_environment_without_a_project_can_be_recreated(syncing: Syncing) -> None:
    assert syncing.create.request().code == 0
    next(syncing.create.prefix.glob("lib/python*/site-packages/beta.py")).unlink()
    errors = syncing.create.envsolve("doctor", "--prefix", "env").err
    (command,) = (it.strip() for it in errors.splitlines() if it.startswith("  envsolve create"))
    assert syncing.create.envsolve(*shlex.split(command)[1:], "--no-validate", "--cache-dir", "cache").code == 0
    assert "is not what its lock has" not in syncing.create.envsolve("doctor", "--prefix", "env").err


def test_an_edited_module_is_preserved_as_the_users(syncing: Syncing) -> None:
    syncing.require("beta")
    syncing.sync()
    module = next(syncing.create.prefix.glob("lib/python*/site-packages/beta.py"))
    module.write_text("EDITED = True")
    assert "is up to date" in syncing.sync().err
    assert module.read_text() == "EDITED = True"
    assert "beta.py" in syncing.create("env", "--lock", "pylock.toml", "--force").err


def test_a_damaged_conda_package_is_reinstalled(syncing: Syncing) -> None:
    syncing.lock_file = "conda-lock.yml"
    syncing.require("delta", "gamma")
    syncing.sync()
    (syncing.create.prefix / "bin" / "delta").unlink()
    next(syncing.create.prefix.glob("lib/python*/site-packages/gamma.py")).unlink()
    done = syncing.sync()
    assert done.code == 0, done.err
    assert "note: files of delta and gamma were missing or changed: installed again\n" in done.err
    assert syncing.create.python("import gamma; print(gamma.NAME)") == "gamma"
    assert (syncing.create.prefix / "bin" / "delta").is_file()
    assert "is up to date" in syncing.sync().err


def test_conda_packages_missing_from_the_cache_are_not_an_error(syncing: Syncing) -> None:
    syncing.lock_file = "conda-lock.yml"
    syncing.require("delta")
    assert syncing.sync("--no-cache").code == 0
    syncing.require("delta", "gamma")
    done = syncing.sync()
    assert done.code == 0, done.err


def test_an_environment_is_validated_until_it_passes(syncing: Syncing) -> None:
    data = Path("data").absolute()
    syncing.create.index.add("needy", [wheel("needy", "1.0", members={"needy.py": f"open({str(data)!r})".encode()})])
    syncing.require("needy")
    assert syncing.sync().code == 0
    assert syncing.create.record()["validation_passed"] is None
    assert run("python", "-c", "pass").stderr == ""
    for _ in range(2):
        done = syncing("sync", "--prefix", "env")
        assert done.code == 1
        assert "needy cannot be imported" in done.err
        assert syncing.create.record()["validation_passed"] is False
    failed = f"note: {syncing.create.prefix} is not proven: its last validation failed\n  envsolve sync --prefix env\n"
    assert run("python", "-c", "pass").stderr == failed
    done = syncing.sync()
    current = f"note: {syncing.create.prefix} is up to date: it was made from this lock\n"
    assert (done.code, done.err) == (0, current + failed)
    data.touch()
    done = syncing("sync", "--prefix", "env")
    assert done.code == 0, done.err
    assert syncing.create.record()["validation_passed"] is True
    assert run("python", "-c", "pass").stderr == ""
    data.unlink()
    assert syncing("sync", "--prefix", "env").code == 0
    syncing.require("needy", "alpha")
    assert syncing("sync", "--prefix", "env").code == 1


def test_a_failed_validation_is_recorded_and_repeated_by_sync(syncing: Syncing) -> None:
    data = Path("data").absolute()
    data.touch()
    syncing.create.index.add("needy", [wheel("needy", "1.0", members={"needy.py": f"open({str(data)!r})".encode()})])
    syncing.require("needy")
    assert syncing("sync", "--prefix", "env").code == 0
    data.unlink()
    assert syncing.create.envsolve("validate", "--prefix", "env").code == 1
    assert syncing.create.record()["validation_passed"] is False
    assert syncing("sync", "--prefix", "env").code == 1
    data.touch()
    syncing.create.envsolve("validate", "--prefix", "env")
    assert syncing.create.record()["validation_passed"] is True


def test_a_validation_writes_nothing_into_a_foreign_environment(syncing: Syncing) -> None:
    syncing.require("alpha")
    syncing.sync()
    shutil.rmtree("state")
    before = (syncing.create.prefix / ".envsolve.json").read_bytes()
    syncing.create.envsolve("validate", "--prefix", "env")
    assert (syncing.create.prefix / ".envsolve.json").read_bytes() == before


@pytest.mark.usefixtures("installer")
def test_an_edited_module_that_fails_is_reinstalled(syncing: Syncing) -> None:
    members = {"toolbox/__init__.py": b"from toolbox.tools import saw", "toolbox/tools.py": b"saw = 1"}
    syncing.create.index.add("toolbox", [wheel("toolbox", "2.0", members=members)])
    syncing.require("toolbox", "alpha")
    assert syncing("sync").code == 0
    prefix = Path(".venv").absolute()
    modules = next(prefix.glob("lib/python*/site-packages"))
    for name, text in (("__init__", "x=("), ("tools", "hammer = 1")):
        file = modules / "toolbox" / f"{name}.py"
        file.unlink()  # it may be a hard link to the cache
        file.write_text(text)
        (modules / "beta.py").write_text("EDITED = True")
        failed = syncing.create.envsolve("validate", "--prefix", ".venv")
        assert failed.code == 1
        assert f"toolbox/{name}.py differs from the wheel of toolbox" in failed.out
        assert "  envsolve sync\n" in failed.out, failed.out
        done = syncing("sync", "--json")
        assert done.code == 0, done.err
        assert json.loads(done.out)["changes"] == [{"name": "toolbox", "before": "2.0", "after": "2.0"}]
        assert json.loads(done.out)["outcome"] == "changed"
        assert "files of toolbox were missing or changed: installed again\n" in done.err
        assert (modules / "beta.py").read_text() == "EDITED = True"
    assert syncing("sync").err == f"note: {prefix} is up to date: it was made from this lock\n"


def test_a_framework_that_cannot_be_imported_is_reinstalled(syncing: Syncing) -> None:
    members = {"onnxruntime/__init__.py": b"from onnxruntime.capi import x", "onnxruntime/capi/__init__.py": b""}
    syncing.create.index.add("onnxruntime", [wheel("onnxruntime", "1.20.0", members=members)])
    syncing.require("alpha")
    syncing.sync()
    syncing.pip("install", "--no-deps", "--index-url", syncing.create.index.index_url, "onnxruntime")
    done = syncing.create.envsolve("validate", "--prefix", "env", "--device", "cpu", "--json")
    (finding,) = (it for it in json.loads(done.out)["findings"] if it["id"] == "import-failed")
    assert finding["commands"] == ["envsolve sync --prefix env"]


def test_an_older_record_is_completed_by_a_validation(syncing: Syncing) -> None:
    syncing.require("alpha")
    syncing.sync()
    record = syncing.create.record()
    del record["validation_passed"]
    (syncing.create.prefix / ".envsolve.json").write_text(json.dumps(record))
    assert run("python", "-c", "pass").stderr == ""
    assert syncing("sync", "--prefix", "env").code == 0
    assert syncing.create.record() == {**record, "validation_passed": True}


def test_an_outdated_lock_is_installed_with_a_note(syncing: Syncing) -> None:
    syncing.require("alpha")
    Path("pyproject.toml").write_text(Path("pyproject.toml").read_text().replace('"alpha"', '"alpha", "gamma"'))
    done = syncing.sync()
    assert done.code == 0, done.err
    assert "note: pylock.toml is out of date (gamma is new and not in the lock file)\n  envsolve lock\n" in done.err
    assert syncing.create.installed() == {"alpha": "1.0", "beta": "2.0"}
    assert "is out of date" in run("python", "-c", "pass").stderr


def test_without_a_lock_the_error_suggests_one(syncing: Syncing) -> None:
    syncing.require("alpha")
    Path("pylock.toml").unlink()
    done = syncing.sync()
    assert done.code == 2
    assert "hint: write it\n  envsolve lock\n" in done.err


def test_one_command_adds_and_syncs(syncing: Syncing) -> None:
    syncing.require("alpha")
    done = syncing("add", "beta<2", "--sync", "--prefix", "env")
    assert done.code == 0, done.err
    assert syncing.create.installed() == {"alpha": "1.0", "beta": "1.0"}
    done = syncing("remove", "alpha", "--sync", "--prefix", "env", "--json")
    document, went = json.loads(done.out), {"name": "alpha", "before": "1.0", "after": None}
    assert (done.code, document["files"][0]["changes"]) == (0, [went]), done.err
    environment = document["environment"]
    assert (environment["outcome"], environment["changes"]) == ("changed", [went])
    assert environment["validation"]["findings"] == []


def test_creating_a_gpu_environment_without_a_gpu_is_reported_first(
    project: Project, envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert project("lock").code == 0
    done = envsolve("create", "env", "--lock", "locks/pylock.toml", "--no-validate", "--cache-dir", "cache")
    assert done.code == 0, done.err
    note = "the environment is for NVIDIA GPUs and cannot be proven on this machine, which has none"
    assert done.err.startswith(f"note: {note}\n")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "envsolve", "run", "--cache-dir", "cache", "--prefix", "env", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_command_runs_in_the_environment_and_creates_it_first(syncing: Syncing) -> None:
    syncing.require("alpha")
    program = "import alpha, os, sys; print(sys.prefix, os.environ['VIRTUAL_ENV']); sys.exit(7)"
    done = run("--", "python", "-c", program)
    assert (done.returncode, done.stdout) == (7, f"{syncing.create.prefix} {syncing.create.prefix}\n"), done.stderr
    assert done.stderr == f"note: {syncing.create.prefix} was made\n"
    assert run("python", "-c", "pass").stderr == ""


def test_a_command_runs_with_the_current_lock_unless_sync_is_off(syncing: Syncing) -> None:
    syncing.require("alpha")
    syncing.sync()
    syncing.require("beta")
    left = run("--no-sync", "python", "-c", "import alpha")
    assert (left.returncode, left.stderr) == (0, "")
    done = run("python", "-c", "import alpha")
    assert done.returncode == 1
    assert done.stderr.startswith(f"note: {syncing.create.prefix} was changed: - alpha 1.0\n")


def test_a_conda_environment_is_activated_for_the_command(syncing: Syncing) -> None:
    syncing.lock_file = "conda-lock.yml"
    script = "export GREETING=hello\n"
    syncing.create.channel.channel("conda-forge").add(
        python_package(), package("hello", "1.0", {"etc/conda/activate.d/hello.sh": script.encode()})
    )
    syncing.require("hello")
    done = run("python", "-c", "import os; print(os.environ['GREETING'], os.environ['CONDA_PREFIX'])")
    assert done.stdout == f"hello {syncing.create.prefix}\n", done.stderr


def test_a_missing_program_is_reported(syncing: Syncing) -> None:
    syncing.require("alpha")
    done = run("no-such-program")
    assert done.returncode == 3
    assert_in_three_parts(done.stderr[done.stderr.index("error:") :])
    assert "no-such-program cannot be run" in done.stderr


def test_an_unknown_option_of_run_is_not_a_program(syncing: Syncing) -> None:
    syncing.require("alpha")
    done = run("--json", "--", "true")
    assert done.returncode == 2
    assert "No such option: --json" in done.stderr or "No such option '--json'" in done.stderr
    assert run("python", "-c", "import sys; print(sys.argv[1:])", "--json", "-q").stdout == "['--json', '-q']\n"


def test_locks_of_several_targets_are_named_as_arguments(syncing: Syncing) -> None:
    syncing.require("alpha")
    text = Path("pyproject.toml").read_text().replace('outputs = ["pylock.toml"]\n', "")
    targets = "".join(f'[tool.envsolve.targets.{it}]\noutputs = ["{it}/pylock.toml"]\n' for it in ("one", "two"))
    Path("pyproject.toml").write_text(text + targets)
    assert syncing("lock").code == 0
    refused = syncing.sync()
    assert refused.code == 2
    assert "locks of their own: one/pylock.toml, two/pylock.toml\n" in refused.err
    assert "hint: name one: --lock one/pylock.toml\n" in refused.err
    assert syncing.sync("--lock", "two/pylock.toml").code == 0
