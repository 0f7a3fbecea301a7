"""The contents of the existing lock as a new one needs them, platform by platform."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from envsolve.boundary.files import FileError, read_text
from envsolve.errors import UsageError
from envsolve.frameworks import framework_of_name
from envsolve.lockfile.own_file import LONGEST
from envsolve.model.cuda_packages import CUDA_PACKAGES
from envsolve.model.host import Platform
from envsolve.model.lock_format import PLATFORM
from envsolve.model.names import normalized
from envsolve.model.reference import AddressKind, kind_of
from envsolve.model.request import Held, Packages
from envsolve.model.versions import minor_of

if TYPE_CHECKING:
    from envsolve.lockfile.lock import Lock
    from envsolve.model.conda import CondaPackage
    from envsolve.model.package import Pin

FileFor = Callable[[Platform], str]
"""The file that holds the lock for a platform."""
LockFor = Callable[[Platform], "Lock | None"]
"""The lock that is there for a platform; None if there is none. Raises UsageError if it cannot be read."""
_CUDA = (*CUDA_PACKAGES, "cuda-toolkit")


def nothing(_: Platform) -> Lock | None:
    """No lock for any platform."""
    return None


def locks_in(file_for: FileFor) -> LockFor:
    """The locks in files, each of which is read once."""
    from envsolve.lockfile.reading import lock_at

    return functools.cache(lambda platform: lock_at(Path(file_for(platform)), platform))


def locks_named(name: str) -> LockFor:
    """The same of the files that ``name`` names: with the platform in it, one for each."""
    return locks_in(lambda platform: name.replace(PLATFORM, platform))


def as_far_as_read(there: LockFor) -> LockFor:
    """The locks in files that may be replaced whatever is in them: one that cannot be read is none."""

    def found(platform: Platform) -> Lock | None:
        with suppress(UsageError):
            return there(platform)
        return None

    return found


def platforms_in(path: Path) -> tuple[str, ...]:
    """The platforms that packages of the conda-lock.yml at ``path`` are for; none if it is no such file."""
    from envsolve.lockfile import reading

    with suppress(FileError):
        text = read_text(path, LONGEST) or ""
        if reading.format_in(path, text) == "conda-lock":
            return tuple(lock.platform for lock in reading.locks_in("conda-lock", text) if lock.versions)
    return ()


def versions_in(lock: Lock | None, upgraded: Collection[str] = ()) -> Held:
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
    return Held(stays, minor_of(versions.get("python", lock.python)), minor_of(cuda), tuple(_commits(lock)))


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


def versions_in_answer(there: LockFor, packages: Packages) -> Callable[[Platform], Held]:
    """The stack in an answer, as far as its packages are to stay."""
    return lambda platform: Held() if packages.upgrade else versions_in(there(platform), packages.upgraded)


def versions_in_python_lock(lock: Lock | None) -> tuple[tuple[Pin, ...], Held]:
    """The pins of a Python lock, and the stack among them; nothing where there is no lock."""
    pins = () if lock is None else tuple(pin for pin in lock.pins if pin.index_url is not None)
    return (pins, versions_in(lock)) if pins else ((), Held())


class CondaVersions(NamedTuple):
    """What stays of a conda lock: the stack, name, version and build of conda packages, and versions of wheels."""

    stack: Held = Held()
    conda: tuple[tuple[str, str, str], ...] = ()
    wheels: Mapping[str, str] = {}


def versions_in_conda_lock(lock: Lock | None, packages: Packages) -> CondaVersions:
    """What a conda lock pins, without what the user upgrades; nothing if there is no lock."""
    if lock is None or packages.upgrade:
        return CondaVersions()
    gone = {normalized(name) for name in packages.upgraded}
    conda = tuple((it.name, it.version, it.build) for it in lock.conda if _is_whole(it) and not is_gone(it.name, gone))
    wheels = {pin.name: pin.version for pin in lock.pins if pin.version and not is_gone(pin.name, gone)}
    return CondaVersions(versions_in(lock, packages.upgraded), conda, wheels)


def _is_whole(package: CondaPackage) -> bool:
    """Whether it is one build: a pattern, as an environment.yml may have it, holds none."""
    return bool(package.build) and not set("*^") & set(package.build)
