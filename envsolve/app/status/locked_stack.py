"""The stack in an existing file of any format: the builds of the matrix that it installs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import NamedTuple

from packaging.version import Version

from envsolve.app.status.locked_build import Beside, extras_in, installed_of, recorded_in
from envsolve.boundary.files import read_text
from envsolve.frameworks import FRAMEWORK_OF_CONDA, FRAMEWORK_OF_CPU_WHEEL, FRAMEWORK_OF_WHEEL
from envsolve.lockfile.lock import Lock, Stack
from envsolve.lockfile.own_file import LONGEST
from envsolve.lockfile.reading import format_in, lock_at
from envsolve.matrix.load import Matrix
from envsolve.model.cuda_packages import CUDA_PACKAGES, CUDNN_PACKAGES
from envsolve.model.host import Platform
from envsolve.model.lock_format import is_project_lock
from envsolve.model.package import Pin
from envsolve.model.release import Release
from envsolve.model.versions import minor_of, parsed_version

_CPU_BUILD = re.compile(r"(?:^|_)cpu(?=_|$)")
"""How conda-forge and PyTorch's channel name builds for the CPU: ``cpu_generic_py312h0_0``, ``py3.9_cpu_0``."""


class Installed(NamedTuple):
    """A package in a file. ``version`` is "" if it is not pinned; ``build`` is "" if not named and None for a wheel."""

    name: str
    version: str
    build: str | None


class LockedStack(NamedTuple):
    """The stack that a file pins. ``releases`` has, for each framework, the builds that it may be.

    No builds mean that the matrix does not have this version. ``lock`` is the file as read; ``pins`` are its pins for
    the platform. ``unpinned`` are the packages of frameworks that the file requires without an exact version.
    """

    releases: Mapping[str, tuple[Release, ...]]
    named: tuple[Installed, ...]
    python: str | None
    cuda: str | None
    cudnn: Version | None
    lock: Lock
    pins: tuple[Pin, ...]
    unpinned: tuple[str, ...] = ()


def locked_stack(path: Path, platform: Platform, matrix: Matrix) -> LockedStack | None:
    """The stack in the file at ``path`` for ``platform``; None if it has no packages for it, or does not exist.

    Raises UsageError if it cannot be read.
    """
    lock = lock_at(path, platform)
    return None if lock is None else stack_in(lock, path, read_text(path, LONGEST) or "", platform, matrix)


def stack_in(lock: Lock, name: PurePath, text: str, platform: Platform, matrix: Matrix) -> LockedStack | None:
    """The stack in ``lock``, read from ``text`` in a file called ``name``; None if it has no packages."""
    packages = packages_in(lock, platform)
    if not packages:
        return None
    versions = {it.name: it.version for it in packages if it.version}
    frameworks = [it for it in packages if framework_of(it) is not None]
    named = tuple(it for it in frameworks if it.version)
    cuda = minor_of(next((versions[name] for name in CUDA_PACKAGES if name in versions), None))
    found: dict[str, tuple[Release, ...]] = {}
    for it in named:
        framework = str(framework_of(it))
        rows = tuple(_rows(it, matrix.framework(framework, platform).releases))
        if len(rows) > 1 and len(frameworks) == len(packages):  # no other package could decide
            rows = recorded_in(rows, lock.stack) or rows
        if len(rows) > 1 and it.build is None:
            rows = installed_of(rows, _beside(name, text, platform, packages), lock.stack)
        elif len(rows) > 1:
            rows = _that_go_with(rows, minor_of(versions.get("python")), cuda, lock.channels)
        found[framework] = found.get(framework, ()) + rows
    python = versions.get("python") or (lock.python if lock.made else None)
    cudnn = next((versions[name] for name in CUDNN_PACKAGES if name in versions), None)
    unpinned = tuple(dict.fromkeys(it.name for it in frameworks if not it.version and framework_of(it) not in found))
    pins = lock.pins_for(platform)
    return LockedStack(found, named, minor_of(python), cuda, parsed_version(cudnn), lock, pins, unpinned)


def _that_go_with(
    rows: tuple[Release, ...], python: str | None, cuda: str | None, channels: Iterable[str]
) -> tuple[Release, ...]:
    """The conda builds in ``rows`` that fit the Python, the CUDA and the channels of a file."""
    names = {channel.rstrip("/").rpartition("/")[2] for channel in channels}
    left = tuple(it for it in rows if python is None or any(str(one) == python for one in it.pythons)) or rows
    if cuda is not None:
        major = cuda.partition(".")[0]
        left = (
            tuple(it for it in left if str(it.cuda) == cuda)
            or tuple(it for it in left if it.cuda is not None and str(it.cuda.major) == major)
            or left
        )
    return tuple(it for it in left if it.source.channel in names) or left


def packages_in(lock: Lock, platform: Platform) -> list[Installed]:
    """The packages in ``lock`` for ``platform``, pinned and open ones."""
    conda = [Installed(it.name, it.version, it.build) for it in lock.conda]
    unpinned = [Installed(it.name, "", "") for it in lock.open if it.of_conda and it.name is not None]
    left_open = (it.name for it in lock.open if not it.of_conda and it.name is not None)
    return [*conda, *unpinned, *_wheels(lock.pins_for(platform), left_open)]


def framework_of(package: Installed) -> str | None:
    """The framework that a package belongs to; None for other packages."""
    if package.build is None:
        return FRAMEWORK_OF_WHEEL.get(package.name) or FRAMEWORK_OF_CPU_WHEEL.get(package.name)
    return FRAMEWORK_OF_CONDA.get(package.name)


def is_for_the_cpu(package: Installed, recorded: Stack | None) -> bool:
    """Whether a framework is known to be a CPU build although the matrix does not have it.

    This follows from the name of its package, the local version of a wheel, the build string of a conda package, or
    envsolve's record of this version in a lock that needs neither driver nor GPU.
    """
    if package.build is None:
        version = parsed_version(package.version)
        is_named = package.name in FRAMEWORK_OF_CPU_WHEEL or (version is not None and version.local == "cpu")
    else:
        is_named = _CPU_BUILD.search(package.build) is not None
    return is_named or _recorded_for_the_cpu(package, recorded)


def _recorded_for_the_cpu(package: Installed, stack: Stack | None) -> bool:
    if stack is None or stack.minimum_driver or stack.capabilities or stack.cuda:
        return False
    return any((it.package, it.version) == (package.name, package.version) for it in stack.frameworks)


def _beside(name: PurePath, text: str, platform: Platform, packages: Iterable[Installed]) -> Beside:
    """The other packages in the file, with the extras, which a Lock does not have."""
    return Beside({it.name: it.version for it in packages}, extras_in(_requirements(name, text, platform)))


def _requirements(name: PurePath, text: str, platform: Platform) -> str:
    """The text that may contain extras. A pylock.toml lists the packages that they add, but no extras."""
    format_name = format_in(name, text)
    if format_name == "pixi":
        from envsolve.lockfile.pixi_toml import requirements_in

        return "\n".join(requirements_in(text, platform))
    return "" if format_name == "pylock" or is_project_lock(name) else text


def _wheels(pins: Iterable[Pin], unpinned: Iterable[str]) -> Iterator[Installed]:
    for pin in pins:
        yield Installed(pin.name, pin.version, None)
    for name in unpinned:
        yield Installed(name, "", None)


def _rows(package: Installed, releases: Iterable[Release]) -> Iterator[Release]:
    """The builds that a pin may be. A full version, with PyTorch's local part, identifies a wheel."""
    version = parsed_version(package.version)
    for release in releases:
        if release.package != package.name or release.source.is_wheel is not (package.build is None):
            continue
        if package.build is None:
            if release.full_version == version:
                yield release
        elif release.version == version and (not package.build or fnmatchcase(package.build, release.build_string)):
            yield release
