"""What a lock that is there already holds, as a new one asks for it: platform by platform."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from envsolve.errors import UsageError
from envsolve.model.host import Platform
from envsolve.model.request import Held, Packages

if TYPE_CHECKING:
    from envsolve.app.conda_part import Kept
    from envsolve.lockfile.held_pins import HeldPin

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


def held_by_python_lock(file_for: FileFor) -> Callable[[Platform], tuple[tuple[HeldPin, ...], Held]]:
    """The pins of a Python lock, and the stack among them; nothing where there is no file."""

    def held(platform: Platform) -> tuple[tuple[HeldPin, ...], Held]:
        from envsolve.lockfile.held_pins import read_pins, read_recorded

        path = Path(file_for(platform))
        pins = read_pins(path)
        if not pins:
            return (), Held()
        facts = read_recorded(path) or {}
        packages = tuple((pin.name, pin.version, "") for pin in pins)
        python, cuda = str(facts.get("python", "")), facts.get("cuda")
        minor = ".".join(python.split(".")[:2]) if python else None
        return pins, Held(packages, minor, None if cuda is None else str(cuda))

    return held


def held_by_conda_lock(file_for: FileFor, packages: Packages) -> Callable[[Platform], Kept]:
    """What a conda lock holds, as far as its packages are to stay."""
    from envsolve.app.conda_part import Kept

    def held(platform: Platform) -> Kept:
        if packages.upgrade:
            return Kept()
        from envsolve.app.conda_held import kept_in

        return kept_in(Path(file_for(platform)), platform, packages)

    return functools.cache(held)
