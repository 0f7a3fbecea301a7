"""The existing lock of each platform, and the versions in it that a new lock should keep."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
from envsolve.model.note import Note
from envsolve.model.reference import AddressKind, kind_of
from envsolve.model.request import LockedVersions, Packages
from envsolve.model.versions import minor_of

if TYPE_CHECKING:
    from envsolve.lockfile.lock import Lock
    from envsolve.model.conda import CondaPackage
    from envsolve.model.package import Pin

FileFor = Callable[[Platform], str]
"""The file that holds the lock for a platform."""
LockFor = Callable[[Platform], "Lock | None"]
"""The existing lock for a platform; None if there is none. Raises UsageError if it cannot be read."""
_CUDA = (*CUDA_PACKAGES, "cuda-toolkit")


def nothing(_: Platform) -> Lock | None:
    """No lock for any platform."""
    return None


def locks_in(file_for: FileFor) -> LockFor:
    """Read the existing lock of each platform from its file, each file once."""
    from envsolve.lockfile.reading import lock_at

    return functools.cache(lambda platform: lock_at(Path(file_for(platform)), platform))


def locks_named(name: str) -> LockFor:
    """Read existing locks from the files that ``name`` stands for: if it contains PLATFORM, one for each platform."""
    return locks_in(lambda platform: name.replace(PLATFORM, platform))


def as_far_as_read(there: LockFor) -> LockFor:
    """Wrap ``there`` so that a lock that cannot be read counts as none, for files that may be overwritten anyway."""

    def found(platform: Platform) -> Lock | None:
        with suppress(UsageError):
            return there(platform)
        return None

    return found


def platforms_in(path: Path) -> tuple[str, ...]:
    """The platforms that the conda-lock.yml at ``path`` has packages for; none if it is not such a file."""
    from envsolve.lockfile import reading

    with suppress(FileError):
        text = read_text(path, LONGEST) or ""
        if reading.format_in(path, text) == "conda-lock":
            return tuple(lock.platform for lock in reading.locks_in("conda-lock", text) if lock.versions)
    return ()


def versions_in(lock: Lock | None, upgraded: Collection[str] = ()) -> LockedVersions:
    """The versions in ``lock``, without packages and frameworks in ``upgraded``; empty without a lock.

    For a conda package this includes the build, or the pattern of builds. The version of a wheel may be that of several
    builds, so for wheels this includes the build that envsolve recorded. If a framework is upgraded, only the other
    frameworks remain: the Python and CUDA of the lock could prevent the upgrade.
    """
    if lock is None:
        return LockedVersions()
    recorded = {} if lock.stack is None else {normalized(it.package): it for it in lock.stack.frameworks}

    def build_of(name: str, version: str) -> str:
        known = recorded.get(normalized(name))
        return f"{known.build}*" if known is not None and known.version == version.partition("+")[0] else ""

    packages = [
        *((it.name, it.version, it.build or build_of(it.name, it.version)) for it in lock.conda if it.name != "python"),
        *((it.name, it.version, build_of(it.name, it.version)) for it in lock.pins if it.version),
    ]
    kept = tuple(it for it in packages if not _is_upgraded(it[0], upgraded))
    if any(framework_of_name(it[0]) is not None and _is_upgraded(it[0], upgraded) for it in packages):
        return LockedVersions(tuple(it for it in kept if framework_of_name(it[0]) is not None))
    versions = lock.versions
    cuda = next((versions[name] for name in _CUDA if name in versions), lock.stack and lock.stack.cuda)
    return LockedVersions(kept, minor_of(versions.get("python", lock.python)), minor_of(cuda), tuple(_commits(lock)))


def _commits(lock: Lock) -> Iterator[tuple[str, str]]:
    requested = () if lock.made is None else lock.made.request or ()
    for text in requested:
        name, _, url = text.partition(" @ ")
        address = lock.addresses.get(normalized(name.partition("[")[0]), "")
        if kind_of(url) is AddressKind.REPOSITORY and kind_of(address) is AddressKind.REPOSITORY:
            yield text, address


def stays(packages: Packages, name: str) -> bool:
    """Whether the version of a package in an existing lock stays."""
    return not packages.upgrade and not _is_upgraded(name, packages.upgraded)


def _is_upgraded(name: str, upgraded: Iterable[str]) -> bool:
    """Whether -P names a package. It may name a framework the way ``-f`` does."""
    return not {normalized(name), framework_of_name(name)}.isdisjoint(map(normalized, upgraded))


def notes_on_upgraded(names: Iterable[str], before: Sequence[Lock], after: Iterable[Lock]) -> Iterator[Note]:
    """Notes on ``names`` of -P without effect: there is no existing lock, or no lock has them, as with a typo."""
    locked = {package for lock in (*before, *after) for package in lock.versions}
    for name in names:
        if not before:
            reason = " has no effect: there is no existing lock whose versions are kept"
        elif not any(_is_upgraded(package, [name]) for package in locked):
            reason = ": not in any lock"
        else:
            continue
        yield Note("not-locked", f"-P {name}{reason}").about(name=name)


def versions_in_answer(there: LockFor, packages: Packages) -> Callable[[Platform], LockedVersions]:
    """The versions in an existing answer, for each platform, without those that the user upgrades."""
    return lambda platform: LockedVersions() if packages.upgrade else versions_in(there(platform), packages.upgraded)


def versions_in_python_lock(lock: Lock | None) -> tuple[tuple[Pin, ...], LockedVersions]:
    """The pins of a Python lock, and the versions in it; both empty without a lock."""
    pins = () if lock is None else tuple(pin for pin in lock.pins if pin.index_url is not None)
    return (pins, versions_in(lock)) if pins else ((), LockedVersions())


class CondaVersions(NamedTuple):
    """The versions in a conda lock: stack; name, version and build of conda packages; versions of wheels."""

    stack: LockedVersions = LockedVersions()
    conda: tuple[tuple[str, str, str], ...] = ()
    wheels: Mapping[str, str] = {}


def versions_in_conda_lock(lock: Lock | None, packages: Packages) -> CondaVersions:
    """The versions that a conda lock pins, without those that the user upgrades; empty without a lock."""
    if lock is None or packages.upgrade:
        return CondaVersions()
    whole = (it for it in lock.conda if _is_whole(it) and stays(packages, it.name))
    conda = tuple((it.name, it.version, it.build) for it in whole)
    wheels = {pin.name: pin.version for pin in lock.pins if pin.version and stays(packages, pin.name)}
    return CondaVersions(versions_in(lock, packages.upgraded), conda, wheels)


def _is_whole(package: CondaPackage) -> bool:
    """Whether the build is exact; an environment.yml may have a pattern instead."""
    return bool(package.build) and not set("*^") & set(package.build)
