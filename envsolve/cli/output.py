"""Writing a file whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import NamedTemporaryFile

from envsolve.errors import Hint, UsageError


def write_whole(path: Path, text: str) -> None:
    """Replace ``path`` by a file with ``text`` in one step; a link stays and its target is replaced.

    What is no regular file (a pipe, a device) is written to as it is. Raises UsageError where the place cannot be
    written; the old file, if any, is then untouched.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
        else:
            _replace(path.resolve(), text)
    except OSError as error:
        raise UsageError(
            "output-not-writable",
            f"{path} cannot be written: {error.strerror or error}",
            hints=(Hint("give -o a file in a directory that exists and that you may write to"),),
        ) from error


def _replace(path: Path, text: str) -> None:
    temporary = None
    try:
        with NamedTemporaryFile(
            "w", encoding="utf-8", newline="\n", dir=path.parent, prefix=".envsolve-", delete=False
        ) as file:
            temporary = Path(file.name)
            file.write(text)
        temporary.chmod(_mode(path))
        temporary.replace(path)
    except OSError:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int:
    """The permissions of the file that is replaced, or those a new file gets here."""
    try:
        return path.stat().st_mode & 0o7777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
