"""The RECORD of an installed distribution: its files with their digests and sizes at the installation.

Nothing in it is trusted: a path may lead outside of the environment, a line may be truncated, a file may be huge.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.files import FileError, decoded, read_bytes
from envsolve.diagnose.environment.reading import bytes_of

LONGEST = 16 * 1024 * 1024
"""Limit in bytes for a RECORD. That of TensorFlow, with 13,000 files, has 2 MB."""
_SHA256 = "sha256="


class Row(NamedTuple):
    """One file: its path in the directory of modules, its sha256 in URL-safe base64, its size in bytes."""

    path: str
    sha256: str | None
    size: int | None


def read_record(folder: Path) -> tuple[Row, ...] | None:
    """The rows of the RECORD in a .dist-info ``folder`` with paths inside its directory; None if there is none."""
    content = bytes_of(folder / "RECORD", LONGEST)
    return None if content is None else tuple(_rows(content.decode("utf-8", "surrogateescape")))


def record_fault(folder: Path) -> str:
    """Why the RECORD in ``folder`` is malformed; "" if it is not, or if there is none."""
    try:
        content = read_bytes(folder / "RECORD", LONGEST)
        text = "" if content is None else decoded(content)
    except FileError as error:
        return error.reason
    if "\0" in text:
        return "it has a NUL character"
    try:
        for _ in csv.reader(text.splitlines()):
            pass
    except csv.Error as error:
        return f"it is no table of files: {error}"
    return ""


def _rows(text: str) -> Iterator[Row]:
    rows = csv.reader(text.splitlines())
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error:  # # an unterminated field, or a NUL
            continue
        if row and _stays_below(row[0]):
            digest = row[1] if len(row) > 1 else ""
            size = row[2] if len(row) > 2 else ""  # noqa: PLR2004 - the third field
            sha256 = digest.removeprefix(_SHA256) if digest.startswith(_SHA256) else None
            yield Row(os.path.normpath(row[0]), sha256, int(size) if size.isascii() and size.isdecimal() else None)


def _stays_below(path: str) -> bool:
    """Whether the file is in the directory of modules. Scripts are not, and do not matter here."""
    return bool(path) and "\0" not in path and not os.path.isabs(path) and not os.path.normpath(path).startswith("..")  # noqa: PTH117
