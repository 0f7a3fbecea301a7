"""``envsolve create`` when it is interrupted, killed or run twice at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.creating import Creating, creating_in, tree
from tests.conda.packages import MINOR
from tests.conftest import Envsolve

pytestmark = [
    pytest.mark.thorough,  # each makes whole environments
    pytest.mark.skipif(sys.platform == "win32", reason="signals are other ones there"),
]
_PATIENCE = 90.0
_FOR_EVER = 600.0


@pytest.fixture
def create(envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Creating]:
    with creating_in(envsolve, tmp_path, monkeypatch) as creating:
        creating.lock("pylock.toml", "alpha", "--python", MINOR)
        yield creating


def midway(create: Creating) -> subprocess.Popen[str]:
    """A command that has downloaded alpha, and waits for beta, which the index does not send."""
    create.index.fault("/files/beta/*.whl", stall=_FOR_EVER, cut=True)
    process = create.start("env", "--lock", "pylock.toml")
    wait_until(lambda: create.index.count("/files/beta/*.whl") > 0 and create.index.count("/files/alpha/*.whl") > 0)
    return process


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + _PATIENCE
    while not holds():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda it: signal.Signals(it).name)
def test_an_interrupt_leaves_nothing_behind(number: int, create: Creating) -> None:
    process = midway(create)
    wait_until((create.prefix / "bin" / "python").exists)
    os.kill(process.pid, number)
    out, err = process.communicate(timeout=_PATIENCE)
    assert (process.returncode, out, err.strip()) == (130, "", "interrupted")
    assert tree(create.prefix) is None


def test_a_second_command_on_the_same_prefix_is_refused(create: Creating) -> None:
    process = midway(create)
    refused = create("env", "--lock", "pylock.toml")
    assert (refused.code, refused.err.partition("\n")[0]) == (3, "error: prefix-busy")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=_PATIENCE)


def test_after_a_kill_the_next_command_resumes_from_downloaded_packages(create: Creating) -> None:
    process = midway(create)
    process.kill()
    process.communicate(timeout=_PATIENCE)
    assert create.record()["state"] == "unfinished"
    assert "prefix-busy" in create("env", "--lock", "pylock.toml").err, "uv is still at work on it"
    fetched = create.index.count("/files/alpha/*.whl")
    create.index.heal()
    create.index._server.hang_up()
    wait_until(lambda: "prefix-busy" not in create("env", "--lock", "pylock.toml").err)
    assert create.record()["state"] == "finished"
    assert create.installed() == {"alpha": "1.0", "beta": "2.0"}
    assert create.index.count("/files/alpha/*.whl") == fetched


def test_after_a_kill_another_lock_starts_from_scratch(create: Creating) -> None:
    create.lock("other.txt", "beta<2", "--python", MINOR)
    process = midway(create)
    process.kill()
    process.communicate(timeout=_PATIENCE)
    create.index.heal()
    create.index._server.hang_up()
    wait_until(lambda: "prefix-busy" not in create("env", "--lock", "other.txt").err)
    assert (create.record()["state"], create.installed()) == ("finished", {"beta": "1.0"})


def test_a_file_added_after_a_kill_is_preserved(create: Creating) -> None:
    process = midway(create)
    process.kill()
    process.communicate(timeout=_PATIENCE)
    create.index.heal()
    create.index._server.hang_up()
    own = create.prefix / "lib" / "own.txt"
    own.write_text("mine")
    [claim] = (create.directory / "state").rglob("*.json")
    os.utime(claim, (0, time.time() - 60))
    wait_until(lambda: "prefix-busy" not in create("env", "--lock", "pylock.toml").err)
    done = create("env", "--lock", "pylock.toml")
    assert (done.code, done.err.partition("\n")[0]) == (2, "error: prefix-not-ours")
    assert "was added later" in done.err
    assert own.read_text() == "mine"


def test_a_conda_prefix_is_also_cleared_and_resumed(create: Creating) -> None:
    Path("environment.yml").write_text("dependencies: [python, gamma, delta]\n")
    create.lock("conda-lock.yml", "-r", "environment.yml")
    create.channel.fault("*/delta-1.0-0.conda", stall=_FOR_EVER)
    process = create.start("env", "--lock", "conda-lock.yml")
    wait_until((create.prefix / "conda-meta" / "gamma-1.0-0.json").exists)
    assert "prefix-busy" in create("env", "--lock", "conda-lock.yml").err
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=_PATIENCE)
    assert (process.returncode, out, err.strip()) == (130, "", "interrupted")
    assert tree(create.prefix) is None
    process = create.start("env", "--lock", "conda-lock.yml")
    wait_until((create.prefix / "conda-meta" / "gamma-1.0-0.json").exists)
    process.kill()
    process.communicate(timeout=_PATIENCE)
    create.channel.heal()
    wait_until(lambda: "prefix-busy" not in create("env", "--lock", "conda-lock.yml").err)  # rattler ends with us
    assert create.record()["state"] == "finished"
    assert (create.prefix / "bin" / "delta").exists()
    assert create.channel.count("*/gamma-1.0-0.conda") == 1


def test_credentials_of_a_killed_command_are_removed_by_the_next_one(
    create: Creating, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = create.directory / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setenv("PIP_INDEX_URL", create.index.index_url.replace("://", "://me:hunter2@"))
    process = midway(create)
    process.kill()
    process.communicate(timeout=_PATIENCE)
    assert [name for name, content in (tree(temporary) or {}).items() if b"hunter2" in (content or b"")] == []
    (netrc,) = (create.prefix / ".envsolve").glob("*/netrc")
    assert (netrc.parent.stat().st_mode & 0o777, netrc.stat().st_mode & 0o777) == (0o700, 0o600)
    create.index.heal()
    create.index._server.hang_up()
    wait_until(lambda: "prefix-busy" not in create("env", "--lock", "pylock.toml").err)
    assert create.record()["state"] == "finished"
    assert [name for name, content in (tree(create.prefix) or {}).items() if b"hunter2" in (content or b"")] == []
    assert sorted(it.name for it in (create.prefix / ".envsolve").iterdir()) == ["files.list", "pylock.toml"]
