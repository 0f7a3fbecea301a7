"""Reading a TOML file, with its parsed form kept in ``__pycache__`` beside it or in the user's cache directory.

Parsing the largest file costs about 25 ms, a third of the whole main job; its marshalled form loads in a few. The TOML
stays the single source: a kept form counts only while size and modification time of the source are those it was made
from, and where it cannot be written or read, the TOML is parsed.
"""

from __future__ import annotations

import marshal
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import cast

from envsolve.boundary.files import FileError, decoded, read_bytes, toml_document
from envsolve.boundary.user_directories import cache_directory
from envsolve.errors import Hint, MatrixError

Document = dict[str, object]
WHOLE_DIRECTORY = Hint("--matrix and ENVSOLVE_MATRIX take a directory with every file of the matrix")

_LONGEST = 16 * 1024 * 1024
"""Bytes of a file; the largest of the shipped ones has 600,000."""
_FORMAT = 4
"""Changes whenever what is kept takes another form (cached_rows.py: the parts of a framework)."""


class Kept:
    """The forms of one TOML file that are kept beside it; none unless ``wanted``.

    They are as trusted as the .pyc files of a package, so only those of the shipped matrix are: a directory that
    someone hands over is read from its TOML alone.
    """

    def __init__(self, path: Path, *, wanted: bool) -> None:
        self._path = path
        self._wanted = wanted
        try:
            facts = path.stat()
        except OSError as error:
            raise _unreadable(path, error.strerror or str(error)) from error
        self._key = (_FORMAT, sys.hexversion, facts.st_mtime_ns, facts.st_size)

    def form(self, name: str) -> Document | None:
        """The form kept under ``name``, or None if there is none of the file as it is now."""
        for folder in self._folders() if self._wanted else ():
            try:
                with open(folder / self._file_name(name), "rb") as file:  # noqa: PTH123 - Path.open costs as much again
                    made_from, document = marshal.loads(file.read())  # noqa: S302 - as trusted as .pyc files
            except (OSError, ValueError, EOFError, TypeError):
                continue
            if made_from == self._key:
                return cast("Document", document)
        return None

    def keep(self, name: str, document: Document) -> None:
        """Write a form in one step, into the first folder that takes it; failing is no loss."""
        if not self._wanted:
            return
        content = marshal.dumps((self._key, document))
        for folder in self._folders()[1 if sys.dont_write_bytecode else 0 :]:
            place = folder / self._file_name(name)
            temporary = f"{place}.{os.getpid()}"
            try:
                folder.mkdir(parents=True, exist_ok=True)
                Path(temporary).write_bytes(content)
                os.replace(temporary, place)  # noqa: PTH105
            except OSError:
                with suppress(OSError):
                    Path(temporary).unlink()
                continue
            return

    def _folders(self) -> list[Path]:
        """Beside the TOML; for an installation that its user cannot write to, in the user's cache directory."""
        directory = self._path.parent.resolve()
        name = "-".join(part.strip("\\/:") for part in directory.parts)
        own = cache_directory()
        return [directory / "__pycache__", *([] if own is None else [own / "matrix" / name])]

    def _file_name(self, name: str) -> str:
        form = f"{self._path.stem}.{name}" if name else self._path.stem
        return f"{form}.{sys.implementation.cache_tag}.marshal"


def read_document(path: Path, kept: Kept) -> Document:
    """The parsed TOML file at ``path``, from what was ``kept`` of it or kept from now on.

    Raises MatrixError if it cannot be read or is not TOML.
    """
    document = kept.form("")
    if document is None:
        document = _parsed(path)
        kept.keep("", document)
    return document


def _parsed(path: Path) -> Document:
    try:
        content = read_bytes(path, _LONGEST)
    except FileError as error:
        raise _unreadable(path, error.reason) from None
    if content is None:
        raise _unreadable(path, "there is no such file")
    try:
        return toml_document(decoded(content))
    except FileError as error:
        raise MatrixError("matrix-invalid", f"{path.name} is not TOML", (f"{path.name}: {error.reason}",)) from None


def _unreadable(path: Path, reason: str) -> MatrixError:
    return MatrixError("matrix-unreadable", f"{path} cannot be read: {reason}", hints=(WHOLE_DIRECTORY,))
