"""Where this user's cache, data and state are, as each system has it. Below all rooms that keep something there."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple


class _Place(NamedTuple):
    """A directory: on Windows its last part, on macOS that below the home, elsewhere its XDG variable and default."""

    windows: str
    macos: str
    variable: str
    default: str


_CACHE = _Place("Cache", "Library/Caches", "XDG_CACHE_HOME", ".cache")
_DATA = _Place("Data", "Library/Application Support", "XDG_DATA_HOME", ".local/share")
_STATE = _Place("State", "Library/Application Support", "XDG_STATE_HOME", ".local/state")


def cache_directory() -> Path | None:
    """``envsolve`` in the user's cache directory, where the system has it; None for a user without a home."""
    return _directory(_CACHE)


def data_directory() -> Path | None:
    """Where what no cache may lose is: ENVSOLVE_DATA_DIR, else ``envsolve`` in the user's data directory.

    None for a user without a home.
    """
    named = os.environ.get("ENVSOLVE_DATA_DIR")
    return Path(named).absolute() if named else _directory(_DATA)


def state_directory() -> Path | None:
    """``envsolve`` in the user's state directory, for what outlives a cache; None for a user without a home."""
    return _directory(_STATE)


def _directory(place: _Place) -> Path | None:
    """A path of an XDG variable counts where it is absolute (XDG Base Directory Specification)."""
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
