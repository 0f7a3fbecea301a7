"""Requirements between installed packages whose markers and extras apply in this environment.

The requested extras are recorded nowhere. Those that another installed package needs are known. An extra that installs
CUDA, and whose packages are all there, is assumed to have been requested, and is marked as ``assumed``.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement

from envsolve.index.fitting import Interpreter
from envsolve.model.host import Platform
from envsolve.model.names import normalized
from envsolve.validation.metadata import Package, Packages

_BRINGS_CUDA = re.compile(r"(and-|with-)?cuda\d*([-_](pip|local))?|gpu|cudnn|ctk", re.IGNORECASE)


class Wanted(NamedTuple):
    """A requirement that applies, and the package that has it; ``assumed`` if it depends on an assumed extra."""

    requirer: Package
    name: str
    requirement: Requirement
    assumed: bool


def wanted_of(packages: Packages, python: str, platform: Platform) -> tuple[Wanted, ...]:
    """Every requirement of an installed package that applies."""
    environment = _environment(python, platform)
    parsed = {package.name: tuple(_parsed(package)) for package in packages.by_name.values()}
    extras = _asked_extras(parsed, environment)
    found = []
    for package in packages.by_name.values():
        assumed = _assumed_extras(parsed[package.name], packages, environment) - extras[package.name]
        for requirement in parsed[package.name]:
            name = normalized(requirement.name)
            if _applies(requirement, extras[package.name], environment):
                found.append(Wanted(package, name, requirement, assumed=False))
            elif _applies(requirement, assumed, environment):
                found.append(Wanted(package, name, requirement, assumed=True))
    return tuple(found)


def required_by_any(packages: Packages) -> frozenset[str]:
    """The names that any installed package may require, whatever the markers and extras."""
    return frozenset(need.name for package in packages.every for need in package.needs)


def _parsed(package: Package) -> Iterator[Requirement]:
    for text in package.requires:
        try:
            yield Requirement(text)
        except InvalidRequirement:
            continue


def _environment(python: str, platform: Platform) -> dict[str, str]:
    """The values of markers; without a version, those of this Python."""
    major, minor, patch = (*map(int, re.findall(r"\d+", python)), 0, 0)[:3] if python else sys.version_info[:3]
    return Interpreter((major, minor, patch), platform).marker_values()


def _applies(requirement: Requirement, extras: frozenset[str], environment: Mapping[str, str]) -> bool:
    if requirement.marker is None:
        return True
    try:
        return any(requirement.marker.evaluate({**environment, "extra": extra}) for extra in extras)
    except (UndefinedComparison, UndefinedEnvironmentName, ValueError):
        return False


def _asked_extras(
    parsed: Mapping[str, tuple[Requirement, ...]], environment: Mapping[str, str]
) -> Mapping[str, frozenset[str]]:
    """The extras of each package that other installed packages need, and "" for the requirements without an extra."""
    extras: dict[str, frozenset[str]] = defaultdict(lambda: frozenset({""}))
    waiting = list(parsed)
    while waiting:
        name = waiting.pop()
        for requirement in parsed.get(name, ()):
            other = normalized(requirement.name)
            new = frozenset(map(normalized, requirement.extras)) - extras[other]
            if new and _applies(requirement, extras[name], environment):
                extras[other] |= new
                waiting.append(other)
    return extras


def _assumed_extras(
    requirements: tuple[Requirement, ...], packages: Packages, environment: Mapping[str, str]
) -> frozenset[str]:
    """The extras that install CUDA and whose packages are all there, in any version."""
    found: dict[str, list[str]] = defaultdict(list)
    for requirement in requirements:
        for extra in _extras_in(requirement):
            if _BRINGS_CUDA.fullmatch(extra) and _applies(requirement, frozenset({extra}), environment):
                found[extra].append(normalized(requirement.name))
    return frozenset(extra for extra, names in found.items() if all(name in packages.by_name for name in names))


def _extras_in(requirement: Requirement) -> Iterator[str]:
    marker = str(requirement.marker or "")
    yield from re.findall(r"extra == ['\"]([^'\"]+)['\"]", marker)
