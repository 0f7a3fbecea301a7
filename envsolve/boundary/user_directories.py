"""The cache, data and state directories of this user, by the rules of each system."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import NamedTuple


class _Place(NamedTuple):
    """A directory: its last part on Windows, its path in the home on macOS, elsewhere an XDG variable and a default."""

    windows: str
    macos: str
    variable: str
    default: str


_CACHE = _Place("Cache", "Library/Caches", "XDG_CACHE_HOME", ".cache")
_DATA = _Place("Data", "Library/Application Support", "XDG_DATA_HOME", ".local/share")
_STATE = _Place("State", "Library/Application Support", "XDG_STATE_HOME", ".local/state")


def cache_directory() -> Path | None:
    """``envsolve`` in the user's cache directory; None for a user without a home."""
    return _directory(_CACHE)


def data_directory() -> Path | None:
    """The directory for data that must not be lost: ENVSOLVE_DATA_DIR, or ``envsolve`` in the user's data directory.

    None for a user without a home.
    """
    named = os.environ.get("ENVSOLVE_DATA_DIR")
    return Path(named).absolute() if named else _directory(_DATA)


def state_directory() -> Path | None:
    """``envsolve`` in the user's state directory, for what outlives a cache; None for a user without a home."""
    return _directory(_STATE)


def sharing_problem(directory: Path, root: Path) -> str | None:
    """Why ``root``, in ``directory``, cannot be used; None if it can, or does not exist yet."""
    if sys.platform == "win32":
        return None
    try:
        if directory.stat().st_uid != os.geteuid():
            return f"{directory} belongs to another user"
        facts = root.lstat()
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{directory}: {error.strerror}"
    shared = facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if facts.st_uid != os.geteuid() or shared or not stat.S_ISDIR(facts.st_mode):
        return f"{root} is not a directory that only this user can write to"
    return None


def _directory(place: _Place) -> Path | None:
    """The path in an XDG variable counts only if it is absolute (XDG Base Directory Specification)."""
    try:
        if sys.platform == "win32":
            local = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
            return local / "envsolve" / place.windows
        if sys.platform == "darwin":
            return Path.home() / place.macos / "envsolve"
        named = os.environ.get(place.variable, "")
        return (Path(named) if os.path.isabs(named) else Path.home() / place.default) / "envsolve"  # noqa: PTH117
    except RuntimeError:
        return None
