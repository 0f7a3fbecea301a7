"""The contents of the existing lock as a new one needs them, platform by platform."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from envsolve.errors import UsageError
from envsolve.frameworks import framework_of_name
from envsolve.lockfile.formats import PLATFORM
from envsolve.model.cuda_packages import CUDA_PACKAGES
from envsolve.model.host import Platform
from envsolve.model.names import normalized
from envsolve.model.reference import AddressKind, kind_of
from envsolve.model.request import Held, Packages

if TYPE_CHECKING:
    from envsolve.app.conda_part import Kept
    from envsolve.lockfile.lock import Lock
    from envsolve.model.package import Pin

FileFor = Callable[[Platform], str]
"""The file that holds the lock for a platform."""
LockFor = Callable[[Platform], "Lock | None"]
"""The lock that is there for a platform; None where there is none. Raises UsageError where it cannot be read."""
_CUDA = (*CUDA_PACKAGES, "cuda-toolkit")
_Held = TypeVar("_Held")


def locks_in(file_for: FileFor) -> LockFor:
    """The locks in files, each of which is read once."""
    from envsolve.lockfile.reading import lock_at

    return functools.cache(lambda platform: lock_at(Path(file_for(platform)), platform))


def locks_named(name: str) -> LockFor:
    """The same of the files that ``name`` names: with the platform in it, one for each."""
    return locks_in(lambda platform: name.replace(PLATFORM, platform))


def as_far_as_read(held: Callable[[Platform], _Held], nothing: _Held) -> Callable[[Platform], _Held]:
    """``held`` of a file that may be replaced whatever is in it: one that cannot be read holds ``nothing``."""

    def found(platform: Platform) -> _Held:
        try:
            return held(platform)
        except UsageError:
            return nothing

    return found


def held_in(lock: Lock | None, upgraded: Collection[str] = ()) -> Held:
    """The stack in ``lock``, without the packages or frameworks that are ``upgraded``; nothing without a lock.

    Of a package of conda it names the build, or the pattern of builds; of a wheel, whose version may be that of several
    builds, the one that envsolve recorded. The Python and CUDA of a framework without its pin would hold it back.
    """
    if lock is None:
        return Held()
    gone = {normalized(name) for name in upgraded}
    recorded = {} if lock.stack is None else {normalized(it.package): it for it in lock.stack.frameworks}

    def build_of(name: str, version: str) -> str:
        known = recorded.get(normalized(name))
        return f"{known.build}*" if known is not None and known.version == version.partition("+")[0] else ""

    packages = [
        *((it.name, it.version, it.build or build_of(it.name, it.version)) for it in lock.conda if it.name != "python"),
        *((it.name, it.version, build_of(it.name, it.version)) for it in lock.pins if it.version),
    ]
    stays = tuple(it for it in packages if not is_gone(it[0], gone))
    if any(framework_of_name(it[0]) is not None and is_gone(it[0], gone) for it in packages):
        return Held(tuple(it for it in stays if framework_of_name(it[0]) is not None))
    versions = lock.versions
    cuda = next((versions[name] for name in _CUDA if name in versions), lock.stack and lock.stack.cuda)
    return Held(stays, _minor(versions.get("python", lock.python)), _minor(cuda), tuple(_commits(lock)))


def _commits(lock: Lock) -> Iterator[tuple[str, str]]:
    requested = () if lock.made is None else lock.made.request or ()
    for text in requested:
        name, _, url = text.partition(" @ ")
        address = lock.addresses.get(normalized(name.partition("[")[0]), "")
        if kind_of(url) is AddressKind.REPOSITORY and kind_of(address) is AddressKind.REPOSITORY:
            yield text, address


def is_gone(name: str, gone: Collection[str]) -> bool:
    """Whether a package is among those that an upgrade names, which may name a framework as ``-f`` does."""
    return normalized(name) in gone or framework_of_name(name) in gone


def held_by_answer(there: LockFor, packages: Packages) -> Callable[[Platform], Held]:
    """The stack in an answer, as far as its packages are to stay."""
    return lambda platform: Held() if packages.upgrade else held_in(there(platform), packages.upgraded)


def held_by_python_lock(there: LockFor) -> Callable[[Platform], tuple[tuple[Pin, ...], Held]]:
    """The pins of a Python lock, and the stack among them; nothing where there is no lock."""

    def held(platform: Platform) -> tuple[tuple[Pin, ...], Held]:
        lock = there(platform)
        pins = () if lock is None else tuple(pin for pin in lock.pins if pin.index_url is not None)
        return (pins, held_in(lock)) if pins else ((), Held())

    return held


def held_by_conda_lock(there: LockFor, packages: Packages) -> Callable[[Platform], Kept]:
    """What a conda lock holds, as far as its packages are to stay."""
    from envsolve.app.conda_part import Kept

    def held(platform: Platform) -> Kept:
        if packages.upgrade:
            return Kept()
        from envsolve.app.conda_held import kept_in

        return kept_in(there(platform), packages.upgraded)

    return functools.cache(held)


def _minor(version: str | None) -> str | None:
    """The part that a stack decides; an exact environment has 3.12.11 of Python and 11.8.0 of cudatoolkit."""
    return ".".join(version.split(".")[:2]) if version else None
