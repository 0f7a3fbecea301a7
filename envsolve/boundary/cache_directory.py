"""Where this user's cache and data are. Below all rooms that keep something there: parsed tables, pages of indexes."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_directory() -> Path | None:
    """``envsolve`` in the user's cache directory, where the system has it; None for a user without a home."""
    try:
        if sys.platform == "win32":
            return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "envsolve" / "Cache"
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "envsolve"
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "envsolve"
    except RuntimeError:
        return None


def data_directory() -> Path | None:
    """Where what no cache may lose is kept: ENVSOLVE_DATA_DIR, else ``envsolve`` in the user's data directory.

    None for a user without a home.
    """
    named = os.environ.get("ENVSOLVE_DATA_DIR")
    if named:
        return Path(named).absolute()
    try:
        if sys.platform == "win32":
            return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "envsolve" / "Data"
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Application Support" / "envsolve"
        named = os.environ.get("XDG_DATA_HOME", "")
        return (Path(named) if os.path.isabs(named) else Path.home() / ".local" / "share") / "envsolve"  # noqa: PTH117
    except RuntimeError:
        return None
