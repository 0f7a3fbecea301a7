"""In which format a file of conda packages is.

Its content says it: the keys at the top of a YAML document, or the line ``@EXPLICIT``. Names are not gone by, as people
call these files what they like.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path

from envsolve.boundary.files import FileError, read_text

MARK = "@EXPLICIT"
"""The line from which on an explicit file has packages."""
_TOP_KEY = re.compile(r"""^(["']?)(environments|package|dependencies)\1[ \t]*:""", re.MULTILINE)
_EXPLICIT = re.compile(rf"^[ \t]*{MARK}[ \t\r]*$", re.MULTILINE)


class HeldFormat(StrEnum):
    """What kind of file it is."""

    ENVIRONMENT = "environment"
    CONDA_LOCK = "conda-lock"
    EXPLICIT = "explicit"
    PIXI = "pixi"


def kind_of(path: Path) -> HeldFormat | None:
    """Which kind the file at ``path`` is of, whatever it is called; None where it is of none or cannot be read."""
    from envsolve.lockfile.conda_lock_file import LONGEST

    try:
        return format_of(read_text(path, LONGEST) or "")
    except FileError:
        return None


def is_explicit(text: str) -> bool:
    """Whether ``text`` is that of an explicit file."""
    return _EXPLICIT.search(text) is not None


def format_of(text: str) -> HeldFormat:
    """What kind of file ``text`` is of. Raises FileError where it is of none."""
    if is_explicit(text):
        return HeldFormat.EXPLICIT
    keys = {found[2] for found in _TOP_KEY.finditer(text)} or _keys(text)
    for key, kind in (
        ("environments", HeldFormat.PIXI),
        ("package", HeldFormat.CONDA_LOCK),
        ("dependencies", HeldFormat.ENVIRONMENT),
    ):
        if key in keys:
            return kind
    raise FileError("it is no environment.yml, no conda-lock.yml, no pixi.lock and no explicit file")


def _keys(text: str) -> set[str]:
    """The keys at the top of a document that is indented or in brackets."""
    from envsolve.lockfile.yaml_document import document_of, mapping

    try:
        return set(mapping(document_of(text), "it"))
    except FileError:
        return set()
