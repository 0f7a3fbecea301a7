"""Files that a run keeps for the next one; each is there as a whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from scripts.matrix_refresh.errors import RefreshError


def store(path: Path, value: object) -> None:
    """Write ``value`` as JSON, in one step. Raises RefreshError where the disk does not take it."""
    write_whole(path, json.dumps(value, indent=1))


def cached(path: Path) -> object:
    """What was kept, or None: nothing was, it cannot be read, or a crash of the machine left it cut short."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def write_whole(path: Path, text: str) -> None:
    """Put ``text`` in place of a file in one step; whoever else writes it has a temporary file of its own.

    Raises RefreshError where the disk does not take it; the file is then as it was.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
            if path.exists():
                shutil.copymode(path, temporary)
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        raise RefreshError(f"{path} cannot be written: {os.strerror(error.errno or 0)}") from error
