"""Whether envsolve wrote a file. It overwrites its own files, and other files only with ``--force``."""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator
from pathlib import Path

from envsolve.boundary.files import FileError, json_value, read_text
from envsolve.errors import Hint, UsageError

LONGEST = 16 * 1024 * 1024
"""Bytes. envsolve never writes a longer file."""
BY_FORCE = Hint("use --force to overwrite it")
_HEADER = re.compile(r"#+\s*(?:Made by envsolve\b|Exported from [^\n]+ by envsolve\b)")
"""The start of the comments at the top of a lock (envsolve.lockfile.header, envsolve.lockfile.recorded)."""
_MERGE_MARKS = ("<<<<<<<", "|||||||", "=======", ">>>>>>>")
"""The start of the lines that git puts around both sides of a conflict."""


def refuse_to_overwrite(path: Path, *ways: Hint) -> None:
    """Raise UsageError ``not-a-lock`` if the file at ``path`` has content that envsolve did not write.

    Anything but a file, such as a pipe, has no content. ``ways`` are hints about other solutions.
    """
    if not os.path.isfile(path):  # noqa: PTH113 - no error for a name that is none
        return
    try:
        reason = None if is_own(read_text(path, LONGEST) or "") else "envsolve did not write it"
    except FileError as error:
        reason = error.reason
    if reason is not None:
        message = f"{path} was not overwritten: {reason}"
        raise UsageError("not-a-lock", message, hints=ways or (Hint("choose another file name"), BY_FORCE))


def is_own(text: str) -> bool:
    """Whether envsolve wrote a file with this text, or the text is empty."""
    return not text.strip() or any(map(_HEADER.match, _comments_on_top(text))) or _is_own_json(text)


def _comments_on_top(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.startswith("#"):
            yield line
        elif line.strip() not in ("", "---") and not line.startswith(_MERGE_MARKS):
            return


def _is_own_json(text: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    try:
        document = json_value(text)
    except FileError:
        return False
    return isinstance(document, dict) and "envsolve_version" in document
