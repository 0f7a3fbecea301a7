"""What a lock that is there already holds, as a new one asks for it: platform by platform."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from envsolve.boundary.files import FileError
from envsolve.errors import Hint, UsageError
from envsolve.model.host import Platform
from envsolve.model.request import Held, Packages

if TYPE_CHECKING:
    from envsolve.app.conda_part import Kept
    from envsolve.lockfile.lock import Lock
    from envsolve.model.package import Pin

FileFor = Callable[[Platform], str]
"""The file that holds the lock for a platform."""
_Held = TypeVar("_Held")


def as_far_as_read(held: Callable[[Platform], _Held], nothing: _Held) -> Callable[[Platform], _Held]:
    """``held`` of a file that may be replaced whatever is in it: one that cannot be read holds ``nothing``."""

    def found(platform: Platform) -> _Held:
        try:
            return held(platform)
        except UsageError:
            return nothing

    return found


def held_by_python_lock(file_for: FileFor) -> Callable[[Platform], tuple[tuple[Pin, ...], Held]]:
    """The pins of a Python lock, and the stack among them; nothing where there is no file."""

    def held(platform: Platform) -> tuple[tuple[Pin, ...], Held]:
        lock = python_lock_at(Path(file_for(platform)))
        pins = () if lock is None else tuple(pin for pin in lock.pins if pin.index_url is not None)
        if lock is None or not pins:
            return (), Held()
        packages = tuple((pin.name, pin.version, "") for pin in pins)
        minor = ".".join(lock.python.split(".")[:2]) or None
        return pins, Held(packages, minor, None if lock.stack is None else lock.stack.cuda)

    return held


def python_lock_at(path: Path) -> Lock | None:
    """The Python lock at ``path``, of whichever tool; None where there is no file, or nothing in it.

    Raises UsageError ``held-unreadable`` where there is one that cannot be read.
    """
    from envsolve.lockfile.formats import read_python_lock

    try:
        return read_python_lock(path)
    except FileError as error:
        hint = Hint("move the file away, or give -o the lock of an earlier answer")
        raise UsageError("held-unreadable", f"cannot read {error.at(path)}: {error.reason}", hints=(hint,)) from error


def held_by_conda_lock(file_for: FileFor, packages: Packages) -> Callable[[Platform], Kept]:
    """What a conda lock holds, as far as its packages are to stay."""
    from envsolve.app.conda_part import Kept

    def held(platform: Platform) -> Kept:
        if packages.upgrade:
            return Kept()
        from envsolve.app.conda_held import kept_in

        return kept_in(Path(file_for(platform)), platform, packages)

    return functools.cache(held)
