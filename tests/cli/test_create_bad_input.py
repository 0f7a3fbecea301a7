"""Requests that ``envsolve create`` cannot fulfil are refused before any work, in three parts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from envsolve.host.machine import this_platform
from tests.cli.creating import Creating, creating_in
from tests.conda.packages import MINOR
from tests.conftest import Envsolve

MD5_ALONE = """\
version: 1
metadata:
  content_hash: {{{platform}: "0"}}
  channels: []
  platforms: [{platform}]
  sources: []
package:
  - name: zlib
    version: "1.3"
    manager: conda
    platform: {platform}
    dependencies: {{}}
    url: https://h/c/{platform}/zlib-1.3-h0_0.conda
    hash: {{md5: "00000000000000000000000000000000"}}
    category: main
    optional: false
"""
EXACT = "dependencies:\n  - gamma=1.0=0\n"


@pytest.fixture
def create(envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Creating]:
    with creating_in(envsolve, tmp_path, monkeypatch) as creating:
        yield creating


PROJECT = (
    'version = 1\nrequires-python = ">=3.9"\n[[package]]\nname = "demo"\nversion = "0"\nsource = { virtual = "." }\n'
)
"""The beginning of a uv.lock, up to the dependencies of its project."""
REFUSED = {
    "no place": ((), "usage", 2),
    "nothing to make": (("env",), "no-framework", 2),
    "a lock that is not there": (("env", "--lock", "no.lock"), "lock-unreadable", 2),
    "a lock and a request": (("env", "alpha", "--lock", "no.lock"), "contradictory-options", 2),
    "a lock and a framework": (("env", "--lock", "no.lock", "-f", "jax"), "contradictory-options", 2),
    "a format that is no lock": (("env", "alpha", "--format", "environment"), "unknown-format", 2),
    "a channel for a venv": (("env", "alpha", "--format", "pylock", "-c", "own"), "contradictory-options", 2),
    "an environment of others": ((".", "alpha"), "prefix-not-ours", 2),
    "a machine of another kind": (("env", "-f", "jax", "--host", "other.json"), "contradictory-options", 2),
    "a file that has to be solved": (("env", "--lock", "open.yml"), "lock-not-exact", 2),
    "builds that are nowhere": (("env", "--lock", "gone.yml"), "builds-not-found", 1),
    "builds that are not all there are": (("env", "--lock", "partial.yml"), "lock-not-exact", 2),
    "an exact file with a bare wheel": (("env", "--lock", "bare.yml"), "lock-not-exact", 2),
    "another Python than the lock's": (("env", "--lock", "c.lock", "--python", "3.11"), "contradictory-options", 2),
    "a variable of the machine": (("env", "--lock", "variable.txt", "--allow-builds"), "lock-not-exact", 2),
    "a pylock.toml with md5 alone": (("env", "--lock", "md5.toml"), "lock-without-hashes", 2),
    "a lock of a project with a folder": (("env", "--lock", "uv.lock"), "lock-not-exact", 2),
    "requirements with md5 alone": (("env", "--lock", "md5.txt"), "lock-without-hashes", 2),
    "conda packages with md5 alone": (("env", "--lock", "md5.yml"), "lock-without-hashes", 2),
    "a link to nothing": (("link", "--lock", "c.lock"), "prefix-not-usable", 2),
    "wheels without a Python": (("env", "--lock", "wheels.yml"), "lock-not-exact", 2),
}


@pytest.mark.parametrize(("words", "code", "exit_code"), REFUSED.values(), ids=REFUSED)
def test_impossible_requests_are_refused_before_any_work(
    words: tuple[str, ...], code: str, exit_code: int, create: Creating
) -> None:
    pip = "  - pip:\n    - alpha==1.0"
    Path("open.yml").write_text("dependencies:\n  - python=3.11\n")
    Path("gone.yml").write_text("dependencies:\n  - gone=1.0=0\n")
    Path("partial.yml").write_text(EXACT)
    Path("bare.yml").write_text(f"{EXACT}{pip}\n")
    Path("wheels.yml").write_text(f"dependencies:\n{pip} --hash=sha256:{'0' * 64}\n")
    Path("c.lock").write_text(f"@EXPLICIT\nhttps://h/c/linux-64/zlib-1.3-h0_0.conda#{'0' * 32}\n")
    Path("variable.txt").write_text(f"--index-url http://h/${{HOME}}/\nalpha==1.0 --hash=sha256:{'0' * 64}\n")
    file = f'{{ url = "https://h/alpha-1.0-py3-none-any.whl", hashes = {{ md5 = "{"0" * 32}" }} }}'
    package = f'[[packages]]\nname = "alpha"\nversion = "1.0"\nwheels = [{file}]\n'
    Path("md5.toml").write_text(f'lock-version = "1.0"\ncreated-by = "own"\n{package}')
    Path("md5.txt").write_text(f"alpha==1.0 --hash=md5:{'0' * 32}\n")
    Path("md5.yml").write_text(MD5_ALONE.format(platform=this_platform()))
    folder = '[[package]]\nname = "beta"\nversion = "1.0"\nsource = { directory = "../beta" }\n'
    Path("uv.lock").write_text(f"{PROJECT}dependencies = [{{ name = 'beta' }}]\n{folder}")
    Path("link").symlink_to("nothing")
    Path("other.json").write_text('{"schema_version": 1, "platform": "win-64", "gpus": [], "origin": {}}')
    create.refused(code, *words, exit_code=exit_code)


@pytest.mark.thorough
def test_a_variable_for_another_format_applies_to_other_commands(
    create: Creating, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENVSOLVE_FORMAT", "json")
    assert create.request().code == 0


@pytest.mark.thorough
def test_progress_on_a_terminal_is_cleared_at_the_end(create: Creating) -> None:
    pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")
    create.lock("pylock.toml", "alpha", "--python", MINOR)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "envsolve", "create", "env", "--lock", "pylock.toml", "--no-validate"]
    subprocess.run([*command, "--cache-dir", "cache"], stdout=subprocess.DEVNULL, stderr=theirs, check=True)
    os.write(theirs, b"end")
    os.close(theirs)
    text = b""
    while not text.endswith(b"end"):
        text += os.read(ours, 4096)
    os.close(ours)
    lines = [line.strip() for line in re.split(r"\r", text.decode()) if line.strip()]
    assert lines[0] == "creating: looking for a Python"
    assert lines[1].startswith("creating: a venv of Python 3")
    assert any(line.startswith("creating: Installed 2 packages") for line in lines)
    assert "creating" not in lines[-1]


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="pipes have no names here")
def test_a_lock_that_can_only_be_read_once_is_one_clear_error(create: Creating) -> None:
    reads, writes = os.pipe()
    os.write(writes, Path(create.lock("pylock.toml", "alpha", "--python", MINOR)).read_bytes())
    os.close(writes)
    refused = create.refused("lock-unreadable", "env", "--lock", f"/dev/fd/{reads}", exit_code=2)
    os.close(reads)
    assert "it is a pipe or a device, not a file" in refused.err


def test_without_a_request_the_locks_of_the_project_are_named(
    envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")

    def hinted() -> list[str]:
        errors = envsolve("create", ".venv").err
        assert errors.startswith("error: no-framework\n")
        return [line.strip() for line in errors.splitlines() if line.startswith("  envsolve ")]

    framework = "envsolve create .venv --framework pytorch"
    assert hinted() == [framework]
    outputs = ["environment.yml", "locks/pylock.toml", "conda-lock.yml"]
    (tmp_path / "envsolve.toml").write_text(f'frameworks = ["pytorch"]\noutputs = {outputs}\n')
    assert hinted() == ["envsolve lock", framework]
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "pylock.toml").touch()
    (tmp_path / "environment.yml").touch()
    assert hinted() == ["envsolve create .venv --lock ../locks/pylock.toml", framework]
    (tmp_path / "envsolve.toml").write_text('frameworks = "pytorch')
    assert hinted() == [framework]


def test_a_suggestion_creates_the_environment_too(envsolve: Envsolve) -> None:
    refused = envsolve("create", "env", "--dry-run", "-f", "pytorch==2.15.0", "--gpu", "K80")
    command = f"envsolve create {Path('env').absolute()} --framework pytorch==2.3.1 --gpu K80"
    assert f"hint: the newest pytorch that fits is 2.3.1 (pytorch, CUDA 11.8)\n  {command}\n" in refused.err
