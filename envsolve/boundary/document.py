"""Read a TOML file, and cache what was made of it in ``__pycache__`` beside it or in the user's cache directory.

Parsing the largest file takes about 25 ms, a third of the main job, and checking its rows as long; the checked rows
load in two. The TOML stays the only source: a cached form is used only while the size and modification time of the TOML
file are the same. If the cache cannot be read or written, the TOML is parsed.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from envsolve.boundary.files import FileError, decoded, read_bytes, replace_file, toml_document
from envsolve.boundary.user_directories import cache_directory, sharing_problem
from envsolve.errors import Hint, MatrixError

T = TypeVar("T")

Document = dict[str, object]
WHOLE_DIRECTORY = Hint("--matrix and ENVSOLVE_MATRIX take a directory with every file of the matrix")

_BESIDE = "__pycache__"
_LONGEST = 16 * 1024 * 1024
"""Bytes of a file; the largest shipped one has 600,000."""


class TomlFile:
    """A TOML file, with what was made of it in a cache if it is ``cached``.

    The cache is as trusted as the .pyc files of a package, so only shipped files use it. A directory from elsewhere is
    read from its TOML alone, and a folder that others may write to is not used.

    Raises MatrixError if there is no such file.
    """

    def __init__(self, path: Path, *, cached: bool) -> None:
        self._path = path
        self._cached = cached
        try:
            facts = path.stat()
        except OSError as error:
            raise _unreadable(path, error.strerror or str(error)) from error
        self._key = (sys.hexversion, facts.st_mtime_ns, facts.st_size)

    def content(self) -> Document:
        """The parsed file. Raises MatrixError if it cannot be read or is not TOML."""
        return self.made("", (), lambda: _parsed(self._path))

    def made(self, name: str, code: object, make: Callable[[], T]) -> T:
        """What is cached under ``name``, or the result of ``make``, which is cached from then on.

        It is made again if the file has changed since, or if ``code``, the state of the program that made it, differs.
        """
        key = (self._key, code)
        found = self._cached_under(name, key)
        if found is None:
            found = (make(),)
            self._store(name, (key, *found))
        return found[0]

    def _cached_under(self, name: str, key: object) -> tuple[Any] | None:
        """The value that was cached under ``name`` with the same key, as a tuple of one; None if there is none."""
        for folder in self._folders() if self._cached else ():
            with suppress(Exception):  # a damaged file may raise anything
                with open(folder / self._file_name(name), "rb") as file:  # noqa: PTH123 - Path.open costs as much again
                    made_from, value = pickle.loads(file.read())  # noqa: S301 - as trusted as .pyc files
                if made_from == key:
                    return (value,)
        return None

    def _store(self, name: str, keyed: tuple[object, ...]) -> None:
        """Cache a value with its key in the first writable folder, atomically. A failure is ignored."""
        if not self._cached:
            return
        content = pickle.dumps(keyed, pickle.HIGHEST_PROTOCOL)
        for folder in islice(self._folders(), 1 if sys.dont_write_bytecode else 0, None):
            with suppress(OSError):
                folder.mkdir(mode=0o777 if folder.name == _BESIDE else 0o700, parents=True, exist_ok=True)
                replace_file(folder / self._file_name(name), content)
                return

    def _folders(self) -> Iterator[Path]:
        """Beside the TOML file, and in the user's cache directory in case the installation is read-only."""
        directory = self._path.parent.resolve()
        yield directory / _BESIDE
        own = cache_directory()
        if own is not None:
            folder = own / "matrix" / "-".join(part.strip("\\/:") for part in directory.parts)
            if sharing_problem(own, folder) is None:
                yield folder

    def _file_name(self, name: str) -> str:
        stem = f"{self._path.stem}.{name}" if name else self._path.stem
        return f"{stem}.{sys.implementation.cache_tag}.pickle"


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
