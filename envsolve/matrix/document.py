"""Reading a TOML file, with its parsed form kept beside it in ``__pycache__``, as Python keeps compiled modules.

Parsing the largest file costs about 25 ms, a third of the whole main job; its marshalled form loads in a few. The TOML
stays the single source: a kept form counts only while size and modification time of the source are those it was made
from, and where it cannot be written or read, the TOML is parsed.
"""

from __future__ import annotations

import marshal
import os
import sys
from pathlib import Path

from envsolve.errors import Hint, MatrixError

Document = dict[str, object]
WHOLE_DIRECTORY = Hint("--matrix and ENVSOLVE_MATRIX take a directory that holds every file of the matrix")

_FORMAT = 2


class Kept:
    """The forms of one TOML file that are kept beside it; none unless ``wanted``.

    They are as trusted as the .pyc files of a package, so only those of the shipped matrix are: a directory that
    somebody hands over is read from its TOML alone.
    """

    def __init__(self, path: Path, *, wanted: bool) -> None:
        self._path = path
        self._wanted = wanted
        try:
            facts = path.stat()
        except OSError as error:
            raise _unreadable(path, error) from error
        self._key = (_FORMAT, sys.hexversion, facts.st_mtime_ns, facts.st_size)

    def form(self, name: str) -> Document | None:
        """The form kept under ``name``, or None where there is none of the file as it is now."""
        if not self._wanted:
            return None
        try:
            with open(self._place(name), "rb") as file:  # noqa: PTH123 - Path.open costs as much again
                made_from, document = marshal.loads(file.read())  # noqa: S302 - as trusted as .pyc files
        except (OSError, ValueError, EOFError, TypeError):
            return None
        return document if made_from == self._key else None

    def keep(self, name: str, document: Document) -> None:
        """Write a form in one step; failing is no loss."""
        if sys.dont_write_bytecode or not self._wanted:
            return
        place = self._place(name)
        temporary = f"{place}.{os.getpid()}"
        try:
            place.parent.mkdir(exist_ok=True)
            Path(temporary).write_bytes(marshal.dumps((self._key, document)))
            os.replace(temporary, place)  # noqa: PTH105
        except (OSError, ValueError):
            Path(temporary).unlink(missing_ok=True)

    def _place(self, name: str) -> Path:
        form = f"{self._path.stem}.{name}" if name else self._path.stem
        return self._path.parent / "__pycache__" / f"{form}.{sys.implementation.cache_tag}.marshal"


def read_document(path: Path, *, keep: bool = False) -> Document:
    """The parsed TOML file at ``path``, kept or from what was kept if ``keep``.

    Raises MatrixError where it cannot be read or is not TOML.
    """
    kept = Kept(path, wanted=keep)
    document = kept.form("")
    if document is None:
        document = _parsed(path)
        kept.keep("", document)
    return document


def _parsed(path: Path) -> Document:
    import tomli

    try:
        return tomli.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _unreadable(path, error) from error
    except (tomli.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MatrixError("matrix-invalid", f"{path.name} is not TOML", (f"{path.name}: {error}",)) from error


def _unreadable(path: Path, error: OSError) -> MatrixError:
    return MatrixError("matrix-unreadable", f"{path} cannot be read: {error.strerror}", hints=(WHOLE_DIRECTORY,))
