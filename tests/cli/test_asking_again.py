"""The same command, repeated: an answer depends on what is there now, never on an earlier run.

The console script itself is run, twice or more, with one cache.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from envsolve.matrix import find_matrix
from tests.conftest import Result
from tests.index.packages import wheel
from tests.index.server import IndexServer

pytestmark = pytest.mark.thorough

PROJECT = """\
[tool.envsolve]
requirements = ["alpha"]
python = "3.12.4"
gpus = ["none"]
platforms = ["linux-64"]
index-url = "{url}"
outputs = ["pylock.toml"]
"""
NVIDIA_SMI = """\
#!/bin/sh
case "$*" in
    *query-gpu*) echo "NVIDIA GeForce RTX 3090, 8.6, 24576, [N/A]" ;;
    *) echo "| NVIDIA-SMI 550.54.14   Driver Version: 550.54.14   CUDA Version: 12.4 |" ;;
esac
"""
WITHDRAWN = "bad \x1b[31mRED\x1b]0;title\x07\nhint: mend it at once\n  http://u:s3cr3t@host/"


class Console:
    """The console script in a directory, with its own home and cache."""

    def __init__(self, directory: Path, server: IndexServer) -> None:
        self.directory, self.server = directory, server
        self.variables: dict[str, str] = {}

    def __call__(self, *words: str, cwd: str = ".") -> Result:
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("ENVSOLVE_", "PIP_", "UV_"))
        }
        done = subprocess.run(
            [sys.executable, "-m", "envsolve", *words],
            cwd=self.directory / cwd,
            env={
                **inherited,
                "PIP_CONFIG_FILE": os.devnull,
                "HOME": str(self.directory),
                "XDG_CACHE_HOME": str(self.directory / "cache"),
                **self.variables,
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def solve(self, *words: str) -> Result:
        arguments = ("-r", "requirements.in", "--format", "requirements", "--index-url", self.server.index_url)
        return self(*arguments, "--gpu", "none", "--python", "3.12.4", "--platform", "linux-64", *words)

    def write(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def write_project(self, directory: str = ".", replaced: tuple[str, str] = ("", "")) -> Path:
        text = PROJECT.format(url=self.server.index_url).replace(*replaced)
        return self.write(f"{directory}/pyproject.toml", text)


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with IndexServer(recorded=False) as server:
        for name in ("alpha", "gamma"):
            server.add(name, [wheel(name, "1.0"), wheel(name, "2.0")])
        found = Console(tmp_path, server)
        found.write("requirements.in", "alpha\n")
        yield found


def settle(console: Console, *words: str) -> None:
    """Lock until the lock exists and a second run has reported up to date."""
    for _ in range(2):
        done = console("lock", *words)
        assert done.code == 0, done.err


def write_with_the_same_time(path: Path, old: str, new: str) -> None:
    """Replace a text in a file by one of the same length, and restore the file's modification time."""
    assert len(old) == len(new)
    text, stat = path.read_text(encoding="utf-8"), path.stat()
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_json_is_printed_every_time(console: Console) -> None:
    console.write_project()
    settle(console)
    console.variables["ENVSOLVE_JSON"] = "1"
    first, again = console("lock"), console("lock")
    assert json.loads(first.out) == json.loads(again.out)


def test_quiet_by_variable_applies_every_time(console: Console) -> None:
    console.write_project()
    console.variables["ENVSOLVE_QUIET"] = "1"
    assert [console("lock").err for _ in range(3)] == ["", "", ""]


def test_a_nested_project_checks_its_own_lock(console: Console) -> None:
    console.write_project()
    console.write_project("b")
    console.write_project("b/b")
    settle(console, "--project=b")
    done = console("lock", "--project=b", "--check", cwd="b")
    assert (done.code, "missing" in done.err) == (1, True), done.err
    console.variables["ENVSOLVE_PROJECT"] = "b"
    assert console("lock", "--check").code == 0
    assert console("lock", "--check", cwd="b").code == 1


def test_a_missing_matrix_is_an_error_in_any_directory(console: Console) -> None:
    console.write_project()
    console.write("below/file", "")
    shutil.copytree(find_matrix(), console.directory / "m")
    settle(console, "--matrix", "m")
    done = console("lock", "--matrix", "m", "--check", cwd="below")
    assert (done.code, done.err.splitlines()[0]) == (2, "error: matrix-unreadable")


def test_an_altered_digest_is_noticed_despite_an_unchanged_modification_time(console: Console) -> None:
    console.write_project()
    settle(console)
    lock = console.directory / "pylock.toml"
    digest = lock.read_text(encoding="utf-8").partition('sha256 = "')[2][:8]
    write_with_the_same_time(lock, digest, "0" * len(digest))
    assert console("lock", "--check").code == 1


def test_another_request_of_the_same_length_is_noticed(console: Console) -> None:
    project = console.write_project()
    settle(console)
    write_with_the_same_time(project, '["alpha"]', '["gamma"]')
    assert console("lock", "--check").code == 1


@pytest.mark.parametrize("when", ["first", "again"])
def test_an_output_that_is_a_link_is_written_through(console: Console, when: str) -> None:
    (console.directory / "out").mkdir()
    link = console.directory / "lock.txt"
    link.symlink_to("out/real.txt")
    for _ in range(1 if when == "first" else 2):
        (console.directory / "out" / "real.txt").unlink(missing_ok=True)
        assert console.solve("-o", "lock.txt").code == 0
    assert link.is_symlink()
    assert "alpha==2.0" in link.read_text(encoding="utf-8")


def test_a_new_driver_is_noticed(console: Console) -> None:
    console.write("pyproject.toml", '[tool.envsolve]\nframeworks = ["pytorch"]\noutputs = ["environment.yml"]\n')
    settle(console)
    assert console("lock", "--check").code == 0
    program = console.write("bin/nvidia-smi", NVIDIA_SMI)
    program.chmod(0o755)
    console.variables["PATH"] = f"{program.parent}:{os.environ['PATH']}"
    assert console("lock", "--check").code == 1


def test_a_changed_requirement_constraint_or_variable_is_noticed(console: Console) -> None:
    assert "alpha==2.0" in console.solve("-o", "lock.txt").out + console.solve().out
    console.write("requirements.in", "alpha<2\n")
    assert "alpha==1.0" in console.solve().out
    console.write("requirements.in", "alpha==${ALPHA}\n")
    for version in ("2.0", "1.0"):
        console.variables["ALPHA"] = version
        assert f"alpha=={version}" in console.solve().out
    console.write("requirements.in", "alpha\n")
    console.write("limits.txt", "alpha<2\n")
    console.variables["ENVSOLVE_CONSTRAINT"] = "limits.txt"
    assert "alpha==1.0" in console.solve().out


def test_pins_are_preserved_while_their_lock_exists(console: Console) -> None:
    lock = console.write("lock.txt", "alpha==1.0\n")
    for _ in range(2):
        assert console.solve("-o", "lock.txt", "--force").code == 0
        assert "alpha==1.0" in lock.read_text(encoding="utf-8")
    lock.unlink()
    assert console.solve("-o", "lock.txt").code == 0
    assert "alpha==2.0" in lock.read_text(encoding="utf-8")


def test_the_reason_for_a_yanked_version_is_one_clean_line_every_time(console: Console) -> None:
    console.server.add("alpha", [wheel("alpha", "1.0", yanked=WITHDRAWN)])
    console.write("requirements.in", "alpha==1.0\n")
    console.write_project(replaced=('"alpha"', '"alpha==1.0"'))
    outputs = [console.solve().err, console.solve().err, console("lock").err, console("lock", "-U").err]
    for text in outputs:
        assert "alpha 1.0 was withdrawn (yanked): bad" in text
        assert all(line.isprintable() and line.startswith("note: ") for line in text.splitlines()), text
        assert "s3cr3t" not in text
