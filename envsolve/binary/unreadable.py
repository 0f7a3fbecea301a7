"""The reasons why a library cannot be read; each needs another fix, so each has a name."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path


class Damage(StrEnum):
    """What is wrong with a file that should be a library."""

    BROKEN_LINK = "broken-link"
    """A symbolic link to nothing."""
    EMPTY = "empty"
    """It has no bytes: an incomplete download, a full disk, a file that Git LFS did not fetch."""
    NO_LIBRARY = "no-library"
    """It does not begin like a library, or its tables contradict each other."""
    OTHER_MACHINE = "other-machine"
    """It is a library for another processor or word size."""
    TRUNCATED = "truncated"
    """It ends before data that its own tables list."""
    UNREADABLE = "unreadable"
    """The system cannot read it: permissions, a directory, a failing disk."""


class UnreadableLibraryError(Exception):
    """A file that cannot be used as a library. ``damage`` is the kind of problem, ``detail`` what was seen."""

    def __init__(self, path: Path, damage: Damage, detail: str) -> None:
        super().__init__(f"{path}: {detail}")
        self.path = path
        self.damage = damage
        self.detail = detail


def unreadable(path: Path, error: OSError) -> UnreadableLibraryError:
    """The error for a failure of the system to open or read ``path``."""
    if isinstance(error, FileNotFoundError) and path.is_symlink():
        return UnreadableLibraryError(path, Damage.BROKEN_LINK, f"is a link to {path.readlink()}, which is not there")
    return UnreadableLibraryError(path, Damage.UNREADABLE, f"cannot be read: {error.strerror or error}")
