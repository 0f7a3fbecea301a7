"""Reading a TOML file, with its parsed form kept beside it in ``__pycache__``, as Python keeps compiled modules.

Parsing the largest file costs about 10 ms, a tenth of the whole main job; its marshalled form loads in one. The TOML
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

_FORMAT = 1


def read_document(path: Path) -> Document:
    """The parsed TOML file at ``path``. Raises MatrixError where it cannot be read or is not TOML."""
    try:
        facts = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from error
    key = (_FORMAT, sys.hexversion, facts.st_mtime_ns, facts.st_size)
    kept = path.parent / "__pycache__" / f"{path.stem}.{sys.implementation.cache_tag}.marshal"
    document = _kept(kept, key)
    if document is None:
        document = _parsed(path)
        _keep(kept, key, document)
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


def _kept(path: Path, key: tuple[int, ...]) -> Document | None:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - Path.open costs as much again
            made_from, document = marshal.loads(file.read())  # noqa: S302 - as trusted as the .pyc files beside it
    except (OSError, ValueError, EOFError, TypeError):
        return None
    return document if made_from == key else None


def _keep(path: Path, key: tuple[int, ...], document: Document) -> None:
    """Write the parsed form in one step; failing is no loss."""
    if sys.dont_write_bytecode:
        return
    temporary = f"{path}.{os.getpid()}"
    try:
        path.parent.mkdir(exist_ok=True)
        Path(temporary).write_bytes(marshal.dumps((key, document)))
        os.replace(temporary, path)  # noqa: PTH105
    except (OSError, ValueError):
        Path(temporary).unlink(missing_ok=True)
