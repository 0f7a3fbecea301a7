"""Wherever a replacement is interrupted, either the old environment or the new one exists afterwards."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from envsolve.create.claims import claiming, release
from envsolve.create.plan import Kind, Plan
from envsolve.create.prefix import list_own_files
from envsolve.create.record import State, read_record, record_of, write_lock, write_record
from envsolve.create.replaced import set_aside, settle
from envsolve.errors import UsageError
from envsolve.lockfile.lock import Lock
from tests.cli.creating import tree

OLD = Plan(Kind.VENV, "pylock.toml", "old", Lock(()))
NEW = Plan(Kind.CONDA, "conda-lock.yml", "new", Lock(()))
FOLDERS = ("bin", "lib", "share")
MOVED = len(FOLDERS) + 1
"""And the folder with the lock."""


class CutOff(Exception):  # noqa: N818
    """The process died here."""


@contextmanager
def dying_after(steps: int, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every rename counts as a step, and the step after the given number is never made."""
    replace, left = Path.replace, [steps]

    def counted(path: Path, target: Path) -> Path:
        if left[0] == 0:
            raise CutOff
        left[0] -= 1
        return replace(path, target)

    with patch.context() as within:
        within.setattr(Path, "replace", counted)
        yield


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    """A finished environment."""
    for name in FOLDERS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "old.txt").write_text(name)
    with claiming(tmp_path):
        write_lock(tmp_path, OLD)
        list_own_files(tmp_path)
        write_record(tmp_path, record_of(OLD, "old", State.FINISHED, tmp_path))
    return tmp_path


def test_the_old_environment_is_restored_if_the_new_one_fails(prefix: Path) -> None:
    before = tree(prefix)
    set_aside(prefix)
    assert (prefix / ".envsolve-old" / "bin" / "old.txt").exists()
    write_record(prefix, record_of(NEW, "new", State.UNFINISHED, prefix))
    (prefix / "bin").mkdir()
    (prefix / "bin" / "new.txt").touch()
    settle(prefix)
    assert tree(prefix) == before


def test_the_old_environment_is_removed_when_the_new_one_is_complete(prefix: Path) -> None:
    set_aside(prefix)
    (prefix / "bin").mkdir()
    write_record(prefix, record_of(NEW, "new", State.FINISHED, prefix))
    settle(prefix)
    assert set(tree(prefix) or {}) == {".envsolve.json", "bin"}
    record = read_record(prefix)
    assert record is not None
    assert record.is_of(NEW)


@pytest.mark.parametrize("steps", range(MOVED + 2))
def test_interrupted_moves_are_undone(steps: int, prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(prefix)
    with dying_after(steps, monkeypatch):
        try:
            set_aside(prefix)
        except CutOff:
            assert steps <= MOVED
    settle(prefix)
    assert tree(prefix) == before


@pytest.mark.thorough
@pytest.mark.parametrize("steps", range(MOVED + 2))
def test_interrupted_restorations_are_completed(steps: int, prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tree(prefix)
    set_aside(prefix)
    write_record(prefix, record_of(NEW, "new", State.UNFINISHED, prefix))
    (prefix / "new").mkdir()
    with dying_after(steps, monkeypatch):
        try:
            settle(prefix)
        except CutOff:
            assert steps <= MOVED
    settle(prefix)
    assert tree(prefix) == before


def test_a_file_added_meanwhile_is_not_replaced(prefix: Path) -> None:
    set_aside(prefix)
    (prefix / "lib").write_text("own")
    before = tree(prefix)
    with pytest.raises(UsageError) as raised:
        settle(prefix)
    assert raised.value.code == "prefix-not-usable"
    assert tree(prefix) == before


def test_a_link_in_place_of_the_old_environment_is_not_followed(
    prefix: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "lib").mkdir()
    write_record(other, record_of(OLD, "other", State.FINISHED, prefix))
    (prefix / ".envsolve.json").unlink()
    (prefix / ".envsolve-old").symlink_to(other)
    settle(prefix)
    assert (other / "lib").is_dir()
    write_record(prefix, record_of(NEW, "new", State.FINISHED, prefix))
    settle(prefix)
    assert (other / "lib").is_dir()


@pytest.mark.thorough
@pytest.mark.parametrize("state", State)
def test_foreign_content_of_the_directory_is_neither_removed_nor_moved(state: State, prefix: Path) -> None:
    set_aside(prefix)
    write_record(prefix, record_of(NEW, "new", state, prefix))
    before = tree(prefix)
    release(prefix)
    with pytest.raises(UsageError) as raised:
        settle(prefix)
    assert (raised.value.code, tree(prefix)) == ("prefix-not-ours", before)


def test_a_foreign_environment_is_not_moved(prefix: Path) -> None:
    before = tree(prefix)
    release(prefix)
    with pytest.raises(UsageError) as raised:
        set_aside(prefix)
    assert (raised.value.code, tree(prefix)) == ("prefix-not-ours", before)


def write_notes(prefix: Path) -> None:
    (prefix / "lib" / "notes.txt").write_text("mine")


def change_a_file(prefix: Path) -> None:
    (prefix / "lib" / "old.txt").write_text("mine")


def put_an_old_file(prefix: Path) -> None:
    (prefix / "notes.txt").write_text("mine")
    os.utime(prefix / "notes.txt", (0, 0))


def link_to_data(prefix: Path) -> None:
    (prefix / "share" / "data").symlink_to("/nowhere")


def forge_the_list(prefix: Path) -> None:
    write_notes(prefix)
    path = prefix / ".envsolve" / "files.list"
    facts = (prefix / "lib" / "notes.txt").stat()
    path.write_bytes(path.read_bytes() + b"\0%d:%d lib/notes.txt" % (facts.st_size, facts.st_mtime_ns))


def lose_the_list(prefix: Path) -> None:
    (prefix / ".envsolve" / "files.list").unlink()


@pytest.mark.parametrize(
    "change", [write_notes, change_a_file, put_an_old_file, link_to_data, forge_the_list, lose_the_list]
)
def test_an_environment_with_a_foreign_file_is_not_replaced(change: Callable[[Path], None], prefix: Path) -> None:
    change(prefix)
    before = tree(prefix)
    with pytest.raises(UsageError) as raised:
        set_aside(prefix)
    assert (raised.value.code, tree(prefix)) == ("prefix-not-ours", before)
    assert raised.value.hints[0].text.startswith(f"move {prefix}")


def test_bytecode_and_empty_files_do_not_matter(prefix: Path) -> None:
    (prefix / "lib" / "__pycache__").mkdir()
    (prefix / "lib" / "__pycache__" / "old.pyc").write_bytes(b"compiled")
    (prefix / ".lock").touch()
    set_aside(prefix)
    assert (prefix / ".envsolve-old" / "lib" / "old.txt").exists()


def test_a_file_dated_in_the_future_is_known(prefix: Path) -> None:
    os.utime(prefix / "lib" / "old.txt", (0, time.time() + 10**6))
    list_own_files(prefix)
    set_aside(prefix)
    assert (prefix / ".envsolve-old" / "lib" / "old.txt").exists()
