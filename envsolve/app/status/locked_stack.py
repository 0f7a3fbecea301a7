"""The stack in a file that is there already, of whichever format: which builds of the matrix it installs."""

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
"""How conda-forge and the channel of PyTorch name builds for the CPU: ``cpu_generic_py312h0_0``, ``py3.9_cpu_0``."""


class Installed(NamedTuple):
    """A package of a file; ``version`` is "" if none is pinned, ``build`` where none is named, None for a wheel."""

    name: str
    version: str
    build: str | None


class LockedStack(NamedTuple):
    """What a file pins of a stack. ``releases`` are, for each framework in it, the builds that it may be.

    A framework without any is one that the matrix does not know in this version. ``lock`` is the file as it was read,
    ``pins`` are those of its pins that may be installed on the platform. ``unpinned`` are the packages of frameworks
    that the file requires without an exact version.
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
    """What the file at ``path`` pins for ``platform``; None if it holds nothing for it, or there is no file.

    Raises UsageError if it cannot be read.
    """
    lock = lock_at(path, platform)
    return None if lock is None else stack_in(lock, path, read_text(path, LONGEST) or "", platform, matrix)


def stack_in(lock: Lock, name: PurePath, text: str, platform: Platform, matrix: Matrix) -> LockedStack | None:
    """What ``lock`` pins, which a file of this name has with this text; None if it holds nothing."""
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
        if len(rows) > 1 and len(frameworks) == len(packages):  # nothing beside them could decide
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
    """Those of ``rows``, builds of conda, that go with the Python, the CUDA and the channels of a file."""
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
    """The packages that ``lock`` names for ``platform``: those it pins, and those it leaves open."""
    conda = [Installed(it.name, it.version, it.build) for it in lock.conda]
    unpinned = [Installed(it.name, "", "") for it in lock.open if it.of_conda and it.name is not None]
    left_open = (it.name for it in lock.open if not it.of_conda and it.name is not None)
    return [*conda, *unpinned, *_wheels(lock.pins_for(platform), left_open)]


def framework_of(package: Installed) -> str | None:
    """The framework that a package is; None for all others."""
    if package.build is None:
        return FRAMEWORK_OF_WHEEL.get(package.name) or FRAMEWORK_OF_CPU_WHEEL.get(package.name)
    return FRAMEWORK_OF_CONDA.get(package.name)


def is_for_the_cpu(package: Installed, recorded: Stack | None) -> bool:
    """Whether a framework is known to be a build for the CPU, though the matrix knows nothing of it.

    The name of its package says it, the local version of a wheel, the build string of a conda package, or envsolve,
    which recorded this very version in a lock that needs neither a driver nor a GPU.
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
    """What else is in the file, with the extras that no lock holds."""
    return Beside({it.name: it.version for it in packages}, extras_in(_requirements(name, text, platform)))


def _requirements(name: PurePath, text: str, platform: Platform) -> str:
    """The text in which extras may stand; a pylock.toml has the packages that they bring, and never extras."""
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
    """The builds that a pin may be; a wheel is known by its full version, with the local one of PyTorch's index."""
    version = parsed_version(package.version)
    for release in releases:
        if release.package != package.name or release.source.is_wheel is not (package.build is None):
            continue
        if package.build is None:
            if release.full_version == version:
                yield release
        elif release.version == version and (not package.build or fnmatchcase(package.build, release.build_string)):
            yield release
