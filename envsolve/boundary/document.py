"""Read a TOML file, and cache its parsed form in ``__pycache__`` beside it or in the user's cache directory.

Parsing the largest file takes about 25 ms, a third of the main job; its marshalled form loads in a few. The TOML stays
the only source: a cached form is used only while the size and modification time of the TOML file are the same. If the
cache cannot be read or written, the TOML is parsed.
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
"""Bytes of a file; the largest shipped one has 600,000."""
_FORMAT = 4
"""Increase it whenever the cached data change their form (cached_rows.py: the parts of a framework)."""


class TomlFile:
    """A TOML file, with its parsed content and parts of that in a cache if it is ``cached``.

    The cache is as trusted as the .pyc files of a package, so only shipped files use it. A directory from elsewhere is
    read from its TOML alone.

    Raises MatrixError if there is no such file.
    """

    def __init__(self, path: Path, *, cached: bool) -> None:
        self._path = path
        self._cached = cached
        try:
            facts = path.stat()
        except OSError as error:
            raise _unreadable(path, error.strerror or str(error)) from error
        self._key = (_FORMAT, sys.hexversion, facts.st_mtime_ns, facts.st_size)

    def content(self) -> Document:
        """The parsed file. Raises MatrixError if it cannot be read or is not TOML."""
        document = self.part("")
        if document is None:
            document = _parsed(self._path)
            self.store_part("", document)
        return document

    def part(self, name: str) -> Document | None:
        """The part cached under ``name``; None if there is none, or if the file has changed since."""
        for folder in self._folders() if self._cached else ():
            try:
                with open(folder / self._file_name(name), "rb") as file:  # noqa: PTH123 - Path.open costs as much again
                    made_from, document = marshal.loads(file.read())  # noqa: S302 - as trusted as .pyc files
            except (OSError, ValueError, EOFError, TypeError):
                continue
            if made_from == self._key:
                return cast("Document", document)
        return None

    def store_part(self, name: str, document: Document) -> None:
        """Cache a part in the first writable folder, atomically. A failure is ignored."""
        if not self._cached:
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
        """Beside the TOML file, and in the user's cache directory in case the installation is read-only."""
        directory = self._path.parent.resolve()
        name = "-".join(part.strip("\\/:") for part in directory.parts)
        own = cache_directory()
        return [directory / "__pycache__", *([] if own is None else [own / "matrix" / name])]

    def _file_name(self, name: str) -> str:
        stem = f"{self._path.stem}.{name}" if name else self._path.stem
        return f"{stem}.{sys.implementation.cache_tag}.marshal"


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
