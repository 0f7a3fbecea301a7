"""Libraries that are not the ones their packages brought: written over by another package, or by somebody.

Sizes are compared first. A digest is made only where sizes agree, of small files and of those that two packages have
written, up to a limit in all: of a stack of 5 GB that is less than a second.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from envsolve.diagnose.environment.families import is_of_gpu_stacks
from envsolve.diagnose.environment.metadata import Claim, Package, Packages
from envsolve.diagnose.environment.owners import LIBRARY
from envsolve.diagnose.environment.record import Row

_SMALL = 4 * 1024 * 1024
_MOST_HASHED = 256 * 1024 * 1024
"""Bytes that are read for digests, in all."""


class Altered(NamedTuple):
    """A file that is not the one its package brought; ``winner`` is the package that wrote the one that is there."""

    package: Package
    path: str
    size: int
    row: Row
    winner: Package | None


def judged_packages(packages: Packages) -> Iterator[Package]:
    """The packages of the GPU stack that an installer of wheels brought; conda relocates files, and lists its own."""
    for package in packages.by_name.values():
        alone = len(packages.together[package.location, package.name]) == 1
        if alone and package.is_wheel and not package.is_of_conda and is_of_gpu_stacks(package.name):
            yield package


def altered_files(packages: Packages) -> Iterator[Altered]:
    """The libraries of the GPU stack that are not those of the RECORD."""
    left = _MOST_HASHED
    for package in judged_packages(packages):
        for row in packages.record(package) or ():
            if row.size is None or not LIBRARY.search(row.path):
                continue
            file = Path(package.location, row.path)
            size = _size(file)
            if not size:  # gone, empty or no file: other findings
                continue
            others = [it for it in packages.claims.get((package.location, row.path), ()) if it[0] is not package]
            differs = size != row.size
            if not differs and row.sha256 and (size <= _SMALL or others) and size <= left:
                left -= size
                differs = _digest(file) != row.sha256
            if differs:
                yield Altered(package, row.path, size, row, _winner(file, size, others))


def _size(file: Path) -> int | None:
    try:
        return file.stat().st_size if os.path.isfile(file) else None  # noqa: PTH113 - never raises
    except OSError:
        return None


def _digest(file: Path) -> str | None:
    try:
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").digest()
    except OSError:
        return None
    return base64.urlsafe_b64encode(digest).decode("ascii").rstrip("=")


def _winner(file: Path, size: int, others: list[Claim]) -> Package | None:
    """The package whose RECORD has the file as it is now."""
    fitting = [(package, row) for package, row in others if row.size == size]
    if len(fitting) > 1 or (fitting and size <= _SMALL):
        digest = _digest(file)
        fitting = [(package, row) for package, row in fitting if row.sha256 == digest]
    return fitting[0][0] if fitting else None
