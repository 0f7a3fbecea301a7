"""Where this user's cache is. Below all rooms that keep something there: parsed tables, and pages of indexes."""

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
