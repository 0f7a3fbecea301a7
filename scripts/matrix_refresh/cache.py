"""Files that a run stores for the next one; each is written completely or not at all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from scripts.matrix_refresh.errors import RefreshError


def store(path: Path, value: object) -> None:
    """Write ``value`` as JSON, atomically. Raises RefreshError if the disk fails."""
    write_whole(path, json.dumps(value, indent=1))


def cached(path: Path) -> object:
    """The cached value; None if there is none, or if the file cannot be read or is truncated."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def write_whole(path: Path, text: str) -> None:
    """Replace a file by ``text`` atomically; concurrent writers use temporary files of their own.

    Raises RefreshError if the disk fails; then the file is unchanged.
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
