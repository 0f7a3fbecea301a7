"""Look at files of a system or of an environment without errors, and say why this user cannot run a program.

For who looks, a missing file and one that this user may not reach are the same: nothing is there. An environment may
contain what its packages never had: a pipe in place of a file, circular links, a directory that cannot be listed.
pathlib raises for some of these before Python 3.14, hence ``os.path`` below.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from envsolve.boundary.files import FileError, read_head

_MOST = 20_000
"""Limit for the entries of one directory."""
_SHORT = 1 << 16
"""Bytes. The files of the kernel and the driver are short."""


def names_of(directory: Path) -> tuple[str, ...]:
    """The names in a directory, sorted; none if it cannot be listed."""
    try:
        with os.scandir(directory) as entries:
            return tuple(sorted(entry.name for entry, _ in zip(entries, range(_MOST), strict=False)))
    except OSError:
        return ()


def text_of(path: Path, longest: int) -> str | None:
    """The first ``longest`` bytes of a file as text; None if it cannot be read, or is a pipe or a device."""
    content = bytes_of(path, longest)
    return None if content is None else content.decode("utf-8", "replace")


def bytes_of(path: Path, longest: int) -> bytes | None:
    """The first ``longest`` bytes of a file; None if it cannot be read, or is a pipe or a device."""
    try:
        return read_head(path, longest)
    except FileError:
        return None


def short_text(path: Path) -> str | None:
    """The text of a file of the kernel or the driver without surrounding whitespace and NUL; None as in text_of."""
    text = text_of(path, _SHORT)
    return None if text is None else text.strip("\0 \t\r\n")


def is_file(path: Path) -> bool:
    """Whether a regular file is at ``path``, following links; false if it cannot be accessed."""
    return os.path.isfile(path)  # noqa: PTH113 - never raises


def is_directory(path: Path) -> bool:
    """Whether a directory is at ``path``, following links; false if it cannot be accessed."""
    return os.path.isdir(path)  # noqa: PTH112 - never raises


def real(path: Path | str) -> str:
    """``path`` with links followed; for circular links ``path`` itself, for which pathlib raises before Python 3.13."""
    return os.path.realpath(path)


def placed(path: Path | str) -> str:
    """``path`` with the links of its directories followed, and its own name unchanged: one spelling for each file.

    ``..`` after a link leads elsewhere than the text suggests, so it cannot be removed from a path of the loader.
    """
    directory, name = os.path.split(path)
    return os.path.join(os.path.realpath(directory), name)  # noqa: PTH118 - the loader's paths are text


def lies_in(program: Path, prefix: Path) -> bool:
    """Whether a program belongs to the prefix, by its directory: the Python of a venv is a link out of it."""
    return Path(real(program.parent)).is_relative_to(real(prefix))


def shown(path: Path | str) -> str:
    """``path`` as people write it, without ``..``."""
    plain = os.path.normpath(path)
    return plain if os.path.realpath(plain) == os.path.realpath(path) else placed(path)


def fault_of(program: Path) -> str | None:
    """What is wrong with a program, as a continuation of its path; None if this user may run it."""
    link = os.readlink(program) if os.path.islink(program) else None  # noqa: PTH114, PTH115 - never raises; as written
    leads = f"is a link to {link}, " if link is not None else ""
    try:
        facts = program.stat()
    except (FileNotFoundError, NotADirectoryError):
        return f"{leads}which is not there" if leads else "is not there"
    except OSError as error:
        why = closed_directory(Path(os.path.realpath(program))) or error.strerror or str(error)
        return f"{leads}which cannot be looked at: {why}" if leads else f"cannot be looked at: {why}"
    if stat.S_ISDIR(facts.st_mode):
        return "is a directory and no program"
    if not stat.S_ISREG(facts.st_mode):
        return "is no ordinary file"
    if not os.access(program, os.X_OK):
        return f"is there, and may not be run by this user (its mode is {stat.filemode(facts.st_mode)})"
    return None


def is_missing(program: Path) -> bool:
    """Whether nothing is at ``program``, as opposed to something that this user cannot access."""
    try:
        program.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def unread(program: Path) -> str | None:
    """A sentence that this user may not read a program; such a program runs, but its file reveals nothing."""
    try:
        mode = stat.filemode(program.stat().st_mode)
    except OSError:
        return None
    return None if os.access(program, os.R_OK) else f"is there, and may not be read by this user (its mode is {mode})"


def closed_directory(path: Path) -> str | None:
    """The outermost directory on the way to ``path`` that this user may not enter, as a sentence."""
    closed = (it for it in reversed(path.parents) if os.path.isdir(it) and not os.access(it, os.X_OK))  # noqa: PTH112
    return next((f"{it} is closed to this user" for it in closed), None)


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
