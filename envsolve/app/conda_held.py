"""What stays of the conda lock that is there already: everything, but for what the user lets go of."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from envsolve.app.conda_part import Kept
from envsolve.boundary.files import FileError, read_text
from envsolve.frameworks import FRAMEWORK_OF_CONDA, FRAMEWORK_OF_WHEEL
from envsolve.lockfile.conda_locks import read_held
from envsolve.lockfile.lock import Lock
from envsolve.lockfile.own_file import LONGEST
from envsolve.model.conda import CondaPackage
from envsolve.model.cuda_packages import CUDA_PACKAGES
from envsolve.model.host import Platform
from envsolve.model.names import normalized
from envsolve.model.request import Held, Packages

_PLATFORM = re.compile(r"^ +platform: ([a-z]+-[a-z0-9]+)$", re.MULTILINE)


def kept_in(path: Path, platform: Platform, packages: Packages) -> Kept:
    """What the file at ``path`` holds for ``platform``, without what ``packages`` upgrades; nothing without a file.

    Raises UsageError where there is one that cannot be read.
    """
    held = read_held(path, platform)
    return Kept() if held is None or packages.upgrade else kept_in_lock(held, packages.upgraded)


def kept_in_lock(held: Lock, upgraded: Collection[str] = ()) -> Kept:
    """What ``held`` holds, without what is ``upgraded``."""
    gone = {normalized(name) for name in upgraded}
    conda = tuple((it.name, it.version, it.build) for it in held.conda if _is_whole(it) and not _is_gone(it.name, gone))
    wheels = {pin.name: pin.version for pin in held.pins if not _is_gone(pin.name, gone)}
    return Kept(_stack_of(held, gone), conda, wheels)


def platforms_in(path: Path) -> tuple[str, ...]:
    """The platforms that packages of the conda-lock.yml at ``path`` are for; none without a file."""
    try:
        found = _PLATFORM.findall(read_text(path, LONGEST) or "")
    except FileError:
        return ()
    return tuple(dict.fromkeys(found))


def _stack_of(held: Lock, gone: Collection[str]) -> Held:
    """The stack in the lock. Where one of its frameworks is let go, its Python and CUDA would hold it back."""
    versions = {it.name: it.version for it in held.conda}
    packages = [(it.name, it.version, it.build) for it in held.conda] + [(it.name, it.version, "") for it in held.pins]
    stays = tuple(it for it in packages if not _is_gone(it[0], gone))
    let_go = any(_framework(it[0]) is not None and _is_gone(it[0], gone) for it in packages)
    if let_go:
        return Held(tuple(it for it in stays if _framework(it[0]) is not None))
    python = versions.get("python")
    cuda = next((versions[name] for name in CUDA_PACKAGES if name in versions), None)
    return Held(
        stays,
        None if python is None else ".".join(python.split(".")[:2]),
        None if cuda is None else ".".join(cuda.split(".")[:2]),
    )


def _is_whole(package: CondaPackage) -> bool:
    """Whether it is one build: a pattern, as an environment.yml may have it, holds none."""
    return bool(package.build) and not set("*^") & set(package.build)


def _is_gone(name: str, gone: Collection[str]) -> bool:
    """``-P`` may name a framework as ``-f`` does."""
    return normalized(name) in gone or _framework(name) in gone


def _framework(name: str) -> str | None:
    return FRAMEWORK_OF_CONDA.get(name) or FRAMEWORK_OF_WHEEL.get(name)
