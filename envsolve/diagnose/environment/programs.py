"""Why this user cannot run a program: it is missing, not accessible, or not a program."""

from __future__ import annotations

import os
import stat
from pathlib import Path


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
