"""Why a library cannot be read: each reason needs another remedy, so each has a name."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path


class Damage(StrEnum):
    """What is wrong with a file that should be a library."""

    BROKEN_LINK = "broken-link"
    """A symbolic link that leads to nothing."""
    EMPTY = "empty"
    """It has no bytes: a download or a disk that ended, a file that Git LFS did not fetch."""
    NO_LIBRARY = "no-library"
    """It begins with other bytes than a library does, or its tables contradict one another."""
    OTHER_MACHINE = "other-machine"
    """It is a library for another processor or word size."""
    TRUNCATED = "truncated"
    """It ends before what its own tables name."""
    UNREADABLE = "unreadable"
    """The system does not let it be read: permissions, a directory, a failing disk."""


class UnreadableLibraryError(Exception):
    """A file is no library that can be used. ``damage`` says which way, ``detail`` what was seen."""

    def __init__(self, path: Path, damage: Damage, detail: str) -> None:
        super().__init__(f"{path}: {detail}")
        self.path = path
        self.damage = damage
        self.detail = detail


def unreadable(path: Path, error: OSError) -> UnreadableLibraryError:
    """The failure of the system to open or read ``path``."""
    if isinstance(error, FileNotFoundError) and path.is_symlink():
        return UnreadableLibraryError(path, Damage.BROKEN_LINK, f"is a link to {path.readlink()}, which is not there")
    return UnreadableLibraryError(path, Damage.UNREADABLE, f"cannot be read: {error.strerror or error}")
