"""Malformed files among those by which Python, pip and conda know an environment, each by name.

conda-meta/state is not included: envsolve.validation.activation reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from envsolve.boundary.files import FileError, decoded, read_bytes
from envsolve.diagnose.environment.conda_meta import CondaMeta
from envsolve.model.finding import Finding
from envsolve.validation.activation import malformed
from envsolve.validation.inventory import Inventory
from envsolve.validation.metadata import DIRECT_URL, Package, Packages, direct_url, record_fault

_LONGEST_SETTINGS = 64 * 1024
_LONGEST_HISTORY = 32 * 1024 * 1024
_MOST = 100
"""Limit for findings; an environment with so many malformed files should be recreated."""


def malformed_files(inventory: Inventory, packages: Packages, conda: CondaMeta) -> tuple[Finding, ...]:
    """A finding for each malformed file, up to the limit."""
    of_packages = (it for package in packages.every for it in _of_package(package))
    return tuple(islice(chain(_of_prefix(inventory, conda), of_packages), _MOST))


def _of_prefix(inventory: Inventory, conda: CondaMeta) -> Iterator[Finding]:
    if not inventory.owns_prefix:
        return
    for name, longest, of in (
        ("pyvenv.cfg", _LONGEST_SETTINGS, "venv"),
        ("conda-meta/history", _LONGEST_HISTORY, "conda-history"),
    ):
        reason = _text_fault(inventory.prefix / name, longest)
        if reason:
            yield malformed(inventory.prefix / name, reason, of)
    for path, reason in conda.malformed.items():
        yield malformed(path, reason, "conda-package")


def _text_fault(path: Path, longest: int) -> str:
    try:
        text = decoded(read_bytes(path, longest) or b"")
    except FileError as error:
        return error.reason
    return "it has a NUL character" if "\0" in text else ""


def _of_package(package: Package) -> Iterator[Finding]:
    faults = [] if package.fault is None else [package.fault]
    try:
        direct_url(package.folder)
    except FileError as error:
        faults.append((package.folder / DIRECT_URL, error.reason))
    reason = record_fault(package.folder)
    if reason:
        faults.append((package.folder / "RECORD", reason))
    for path, why in faults:
        yield malformed(path, why, directory=package.folder)
