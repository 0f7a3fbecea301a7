"""Writing a file whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import NamedTemporaryFile

from envsolve.errors import UsageError


def write_whole(path: Path, text: str) -> None:
    """Replace ``path`` by a file with ``text`` in one step.

    Raises UsageError where the place cannot be written; the old file, if any, is then untouched.
    """
    temporary = None
    try:
        with NamedTemporaryFile(
            "w", encoding="utf-8", newline="\n", dir=path.parent, prefix=".envsolve-", delete=False
        ) as file:
            temporary = file.name
            file.write(text)
        Path(temporary).chmod(_mode(path))
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        raise UsageError("output-not-writable", f"{path} cannot be written: {error.strerror}") from error


def _mode(path: Path) -> int:
    """The permissions of the file that is replaced, or those a new file gets here."""
    try:
        return path.stat().st_mode & 0o7777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
