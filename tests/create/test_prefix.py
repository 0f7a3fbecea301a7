"""A directory becomes an environment only if nothing foreign is lost, and is left unchanged after a failure."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path

import pytest

from envsolve.create.claims import claiming, release
from envsolve.create.plan import Kind, Plan
from envsolve.create.prefix import claimed, clear, clear_remains, place_of
from envsolve.create.record import State, record_of, write_record
from envsolve.errors import EnvsolveError, OutsideError, UsageError
from envsolve.lockfile.lock import Lock
from tests.cli.creating import tree

PLAN = Plan(Kind.VENV, "pylock.toml", 'lock-version = "1.0"\n', Lock(()))


def refusal(name: str | Path) -> str:
    with pytest.raises(UsageError) as raised:
        place_of(str(name))
    return raised.value.code


def test_a_missing_or_empty_directory_is_free(tmp_path: Path) -> None:
    assert place_of(str(tmp_path)).path == tmp_path
    assert place_of(str(tmp_path / "new" / "env")).record is None


def test_a_relative_path_is_relative_to_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert place_of("./a/../env").path == tmp_path / "env"


def test_a_directory_with_content_is_foreign(tmp_path: Path) -> None:
    (tmp_path / ".hidden").touch()
    assert refusal(tmp_path) == "prefix-not-ours"
    (tmp_path / "pyvenv.cfg").touch()
    assert refusal(tmp_path) == "prefix-not-ours"


def test_a_file_is_not_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert refusal(tmp_path / "file") == "prefix-not-usable"
    assert refusal(tmp_path / "file" / "below") == "prefix-not-usable"


@pytest.mark.parametrize("path", [sys.prefix, sys.base_prefix, "/"])
def test_shared_directories_are_protected(path: str) -> None:
    assert refusal(path) == "prefix-protected"


def test_the_home_directory_is_protected_under_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "link").symlink_to(home)
    monkeypatch.setenv("HOME", str(home))
    assert (refusal(home), refusal(tmp_path / "link")) == ("prefix-protected", "prefix-protected")


def test_a_link_is_followed_and_a_dangling_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("real")
    assert refusal(tmp_path / "link") == "prefix-not-usable"
    (tmp_path / "real").mkdir()
    assert place_of(str(tmp_path / "link")).path == tmp_path / "real"
    (tmp_path / "loop").symlink_to("loop")
    assert refusal(tmp_path / "loop") == "prefix-not-usable"


def test_a_name_too_long_for_the_system_is_one_clear_error(tmp_path: Path) -> None:
    assert refusal(tmp_path / ("x" * 300)) == "prefix-too-long"


def test_a_record_of_another_envsolve_version_is_not_interpreted(tmp_path: Path) -> None:
    for content in ('{"schema_version": 99}', "[]", "{", '{"schema_version": 1, "state": "odd"}'):
        (tmp_path / ".envsolve.json").write_text(content)
        assert refusal(tmp_path) == "record-unreadable"


def test_created_directories_are_removed_again_and_others_stay(tmp_path: Path) -> None:
    with claimed(tmp_path / "a" / "b"):
        assert (tmp_path / "a" / "b").is_dir()
    assert tree(tmp_path) == {}
    (tmp_path / "a").mkdir()
    with claimed(tmp_path / "a"):
        pass
    assert tree(tmp_path) == {"a": None}


def test_only_one_command_works_on_a_prefix(tmp_path: Path) -> None:
    with claimed(tmp_path), pytest.raises(OutsideError, match="another command is creating"), claimed(tmp_path):
        pass
    with claimed(tmp_path):
        pass
    assert tree(tmp_path) == {}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_directory_is_one_clear_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert refusal(tmp_path / "env") == "prefix-not-usable"
    with pytest.raises(UsageError, match="cannot be made or written: Permission denied"), claimed(tmp_path / "env"):
        pass


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="there is no file system here that takes no directories")
def test_a_full_file_system_is_one_clear_error() -> None:
    with pytest.raises(EnvsolveError, match="cannot be made or written"), claimed(Path("/proc/env")):
        pass


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device here that is full")
def test_a_full_disk_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(OutsideError, match="No space left") as raised, claimed(tmp_path):
        Path("/dev/full").write_text("x")
    assert raised.value.code == "disk-failed"


def test_the_record_is_removed_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_record(tmp_path, record_of(PLAN, "envsolve create", State.UNFINISHED, tmp_path))
    (tmp_path / "lib" / "python").mkdir(parents=True)
    (tmp_path / "outside").symlink_to(tmp_path.parent)
    seen: list[bool] = []
    unlink = Path.unlink

    def watched(path: Path, missing_ok: bool = False) -> None:
        seen.append((tmp_path / ".envsolve.json").exists())
        unlink(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", watched)
    clear(tmp_path)
    assert seen == [True, True]
    assert tree(tmp_path) == {}
    assert tmp_path.parent.exists()


def finished(prefix: Path, *, names: Path | None = None, state: State = State.FINISHED) -> Path:
    """A directory with the record of an environment at ``names``, by default its own path."""
    prefix.mkdir(parents=True, exist_ok=True)
    with claiming(prefix):
        pass
    write_record(prefix, record_of(PLAN, "envsolve create", state, names or prefix))
    return prefix


@pytest.mark.parametrize("state", State)
def test_a_copied_or_moved_environment_has_no_owner(state: State, tmp_path: Path) -> None:
    copied = finished(tmp_path / "copy", names=tmp_path / "env", state=state)
    assert refusal(copied) == "prefix-not-ours"
    assert place_of(str(finished(tmp_path / "env", state=state))).record is not None


def test_an_environment_is_the_same_by_another_path(tmp_path: Path) -> None:
    finished(tmp_path / "real" / "env")
    (tmp_path / "link").symlink_to("real")
    assert place_of(str(tmp_path / "link" / "env")).record is not None


def test_a_directory_that_only_resembles_a_replaced_environment_is_foreign(tmp_path: Path) -> None:
    (tmp_path / "own.txt").touch()
    old = tmp_path / ".envsolve-old"
    old.mkdir()
    assert refusal(tmp_path) == "prefix-not-ours"
    finished(old, names=tmp_path / "elsewhere")
    assert refusal(tmp_path) == "prefix-not-ours"
    finished(old, names=tmp_path, state=State.UNFINISHED)
    assert refusal(tmp_path) == "prefix-not-ours"
    finished(old, names=tmp_path)
    assert refusal(tmp_path) == "prefix-not-ours"
    with claiming(tmp_path):
        pass
    assert place_of(str(tmp_path)).record is None
    old.rename(tmp_path / "moved")
    old.symlink_to("moved")
    assert refusal(tmp_path) == "prefix-not-ours"


def test_an_environment_cannot_be_inside_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = finished(tmp_path / "env")
    assert refusal(env / "lib" / "inner") == "prefix-protected"
    assert refusal(Path(sys.prefix) / "inner") == "prefix-protected"
    conda = tmp_path / "conda"
    (conda / "conda-meta").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(conda))
    monkeypatch.setattr(sys, "base_prefix", str(conda))
    assert refusal(conda / "lib" / "inner") == "prefix-protected"
    assert place_of(str(conda / "envs" / "inner")).record is None


@pytest.mark.skipif(sys.platform != "linux", reason="file systems elsewhere take no such names")
def test_a_name_that_is_not_valid_text_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        place_of(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    assert raised.value.code == "prefix-not-usable"
    raised.value.message.encode()


def test_a_forged_record_of_an_unfinished_environment_is_ignored(tmp_path: Path) -> None:
    prefix = finished(tmp_path / "env", state=State.UNFINISHED)
    (prefix / "own.txt").touch()
    release(prefix)
    assert refusal(prefix) == "prefix-not-ours"
    with pytest.raises(UsageError):
        clear_remains(prefix)
    assert (prefix / "own.txt").exists()


def test_a_claim_applies_to_one_directory_and_not_its_replacement(tmp_path: Path) -> None:
    prefix = finished(tmp_path / "env", state=State.UNFINISHED)
    assert place_of(str(prefix)).record is not None
    prefix.rename(tmp_path / "away")
    shutil.copytree(tmp_path / "away", prefix)
    assert refusal(prefix) == "prefix-not-ours"


def test_a_file_newer_than_the_killed_command_is_preserved(tmp_path: Path) -> None:
    prefix = finished(tmp_path / "env", state=State.UNFINISHED)
    (prefix / "lib").mkdir()
    (prefix / "lib" / "own.txt").touch()
    [claim] = Path(os.environ["XDG_STATE_HOME"]).rglob("*.json")
    os.utime(claim, (0, time.time() - 60))
    before = tree(prefix)
    with pytest.raises(UsageError, match=r"own\.txt was added later"):
        clear_remains(prefix)
    assert tree(prefix) == before
    os.utime(claim)
    clear_remains(prefix)
    assert tree(prefix) == {}


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
def test_a_pipe_is_refused_as_directory_record_or_lock(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe") == "prefix-not-usable"
    for name in (".envsolve.json", ".envsolve.busy"):
        prefix = tmp_path / f"with{name}"
        prefix.mkdir()
        os.mkfifo(prefix / name)
        assert refusal(prefix) in ("record-unreadable", "prefix-not-ours")


@pytest.mark.parametrize("name", [".envsolve.json", ".envsolve.busy", ".envsolve.json.new"])
@pytest.mark.parametrize("there", [True, False])
def test_links_in_the_directory_are_not_followed(there: bool, name: str, tmp_path: Path) -> None:
    target = tmp_path / "target"
    if there:
        target.write_bytes((finished(tmp_path / "other", names=tmp_path / "env") / ".envsolve.json").read_bytes())
    prefix = tmp_path / "env"
    prefix.mkdir()
    (prefix / name).symlink_to(target)
    assert refusal(prefix) in ("record-unreadable", "prefix-not-ours")
    assert target.exists() is there


def test_a_link_in_place_of_the_busy_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / ".envsolve.busy").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError), claimed(tmp_path):
        pytest.fail("it was claimed")
    assert not (tmp_path / "elsewhere").exists()
