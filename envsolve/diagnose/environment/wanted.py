"""Requirements between installed packages whose markers and extras apply in this environment.

The requested extras are recorded nowhere. Those that another installed package needs are known. An extra that installs
CUDA, and whose packages are all there, is assumed to have been requested, and is marked as ``assumed``.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from envsolve.index.fitting import Interpreter
from envsolve.model.host import Platform
from envsolve.model.need import Markers, Need
from envsolve.validation.metadata import Package, Packages, applies, required_extras

_BRINGS_CUDA = re.compile(r"(and-|with-)?cuda\d*([-_](pip|local))?|gpu|cudnn|ctk", re.IGNORECASE)
_EXTRA = re.compile(r"extra == ['\"]([^'\"]+)['\"]")


class Wanted(NamedTuple):
    """A requirement that applies, and the package that has it; ``assumed`` if it depends on an assumed extra."""

    requirer: Package
    need: Need
    assumed: bool


def wanted_of(packages: Packages, python: str, platform: Platform) -> tuple[Wanted, ...]:
    """Every requirement of an installed package that applies."""
    return tuple(_wanted(packages, _markers(python, platform)))


def _wanted(packages: Packages, markers: Markers) -> Iterator[Wanted]:
    extras = required_extras(packages.by_name.values(), markers)
    for package in packages.by_name.values():
        assumed = _assumed_extras(package, packages, markers)
        for need in package.needs:
            is_required = applies(need, extras[package.name], markers)
            if is_required or applies(need, assumed, markers):
                yield Wanted(package, need, assumed=not is_required)


def required_by_any(packages: Packages) -> frozenset[str]:
    """The names that any installed package may require, whatever the markers and extras."""
    return frozenset(need.name for package in packages.every for need in package.needs)


def _markers(python: str, platform: Platform) -> Markers:
    """The markers of a Python; without a version, of this one."""
    major, minor, patch = (*map(int, re.findall(r"\d+", python)), 0, 0)[:3] if python else sys.version_info[:3]
    return Markers(Interpreter((major, minor, patch), platform).marker_values())


def _assumed_extras(package: Package, packages: Packages, markers: Markers) -> frozenset[str]:
    """The extras that install CUDA and whose packages are all there, in any version."""
    found: dict[str, list[str]] = defaultdict(list)
    for need in package.needs:
        for extra in _EXTRA.findall(need.marker):
            if _BRINGS_CUDA.fullmatch(extra) and applies(need, [extra], markers):
                found[extra].append(need.name)
    return frozenset(extra for extra, names in found.items() if all(name in packages.by_name for name in names))
