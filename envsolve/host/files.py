"""Reading of system files without errors.

For a probe, a missing file and one that this user may not reach are the same: nothing is there. Before Python 3.14
pathlib raises for the second kind, hence ``os.path`` below.
"""

from __future__ import annotations

import os
from pathlib import Path

from envsolve.boundary.files import FileError, read_bytes

_LONGEST = 1 << 16
"""Bytes. The files of the kernel and the driver are short."""


def read_text(path: Path) -> str | None:
    """The file's text without surrounding whitespace and NUL; None if it cannot be read or is longer."""
    try:
        content = read_bytes(path, _LONGEST)
    except FileError:
        return None
    return None if content is None else content.decode("utf-8", "replace").strip("\0 \t\r\n")


def names_in(directory: Path) -> list[str] | None:
    """The sorted names in ``directory``, or None if it cannot be listed."""
    try:
        return sorted(os.listdir(directory))  # noqa: PTH208 - names are wanted
    except OSError:
        return None


def exists(path: Path) -> bool:
    """Whether ``path`` exists."""
    return os.path.exists(path)  # noqa: PTH110 - never raises


def is_open_to_us(path: Path) -> bool:
    """Whether this user may read and write ``path``."""
    return os.access(path, os.R_OK | os.W_OK)


def link_name(path: Path) -> str | None:
    """The last part of the target of the link at ``path``; None if it is no link."""
    try:
        return path.readlink().name
    except OSError:
        return None
