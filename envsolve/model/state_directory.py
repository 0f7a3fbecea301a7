"""Where envsolve keeps what has to outlive a cache: in this user's own directory, as each system has it."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def state_directory() -> Path | None:
    """``envsolve`` in the user's state directory (XDG Base Directory Specification); None for a user without a home."""
    try:
        if sys.platform == "win32":
            return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "envsolve" / "State"
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Application Support" / "envsolve"
        named = os.environ.get("XDG_STATE_HOME", "")
        return (Path(named) if os.path.isabs(named) else Path.home() / ".local" / "state") / "envsolve"  # noqa: PTH117
    except RuntimeError:
        return None
