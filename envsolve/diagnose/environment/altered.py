"""Libraries that differ from those their packages installed: overwritten by another package, or by someone.

Sizes are compared first. Digests are computed only if sizes agree, for small files and for those that two packages have
written, up to a total limit: for a stack of 5 GB this takes less than a second.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from envsolve.diagnose.environment.families import is_of_gpu_stacks
from envsolve.validation.metadata import LIBRARY, Package, Packages, Row

_SMALL = 4 * 1024 * 1024
_MOST_HASHED = 256 * 1024 * 1024
"""Total number of bytes that are read for digests."""
_MOST_OF_WINNERS = 4 * 1024 * 1024 * 1024
"""Total number of bytes that are read to find out which of several packages a file is from."""


class Altered(NamedTuple):
    """A file that differs from the one its package installed; ``winner`` is the package that wrote the current one."""

    package: Package
    path: str
    size: int
    row: Row
    winner: Package | None


def judged_packages(packages: Packages) -> Iterator[Package]:
    """The packages of the GPU stack that come from wheels; conda relocates files, and has lists of its own."""
    for package in packages.by_name.values():
        alone = len(packages.together[package.location, package.name]) == 1
        if alone and package.is_wheel and not package.is_of_conda and is_of_gpu_stacks(package.name):
            yield package


def altered_files(packages: Packages) -> Iterator[Altered]:
    """The libraries of the GPU stack that differ from the RECORD."""
    left, left_of_winners = _MOST_HASHED, _MOST_OF_WINNERS
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
                differs = digest_of(file) != row.sha256
            if differs:
                fitting = [it for it in others if it[1].size == size]
                if fitting and (len(fitting) > 1 or size <= _SMALL):
                    left_of_winners -= size
                    digest = digest_of(file) if left_of_winners >= 0 else None
                    fitting = [it for it in fitting if it[1].sha256 == digest]
                yield Altered(package, row.path, size, row, fitting[0][0] if fitting else None)


def _size(file: Path) -> int | None:
    try:
        return file.stat().st_size if os.path.isfile(file) else None  # noqa: PTH113 - never raises
    except OSError:
        return None


def digest_of(file: Path) -> str | None:
    """The sha256 of a file in the form of a RECORD; None if it cannot be read."""
    try:
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").digest()
    except OSError:
        return None
    return base64.urlsafe_b64encode(digest).decode("ascii").rstrip("=")
