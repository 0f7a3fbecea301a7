"""Which releases a resolution may look at, found without a resolver.

A resolver's own requests depend on what answers first, so that no two recordings would be the same. Here each
requirement that can come up is followed to the newest releases that meet it: more than any resolver asks for, and
always the same.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from packaging.markers import Marker
from packaging.metadata import parse_email
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from scripts.index_recorder.source import MACHINES, PYTHONS, Listed, Source, Target

_SYSTEMS = {
    "x86_64": {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"},
    "aarch64": {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"},
    "AMD64": {"sys_platform": "win32", "platform_system": "Windows", "os_name": "nt"},
}
_TARGETS = tuple(Target(python, machine) for python in PYTHONS for machine in MACHINES)


class Resolution(NamedTuple):
    """Requirements that are resolved together.

    Of each requirement the ``newest`` releases that meet it are recorded, for each target; of the projects in ``deep``
    all that meet it, pre-releases too.
    """

    name: str
    requirements: tuple[str, ...]
    newest: int
    deep: frozenset[str]


class Reached(NamedTuple):
    """What the walk found: releases by project with the wheel that speaks for each, None where none was to be had."""

    releases: dict[str, dict[Version, Listed | None]]
    missing: tuple[str, ...]


class _Wanted(NamedTuple):
    project: str
    extras: frozenset[str]
    specifier: str
    resolution: Resolution


def read_resolutions(path: Path) -> tuple[Resolution, ...]:
    """The resolutions a TOML file lists."""
    listed = tomllib.loads(path.read_text("utf-8"))["resolution"]
    return tuple(
        Resolution(it["name"], tuple(it["requirements"]), it.get("newest", 3), frozenset(it.get("deep", ())))
        for it in listed
    )


def walk(source: Source, resolutions: Iterable[Resolution]) -> Reached:
    """Follow every requirement that can come up in ``resolutions``."""
    waiting = deque(
        wanted for it in resolutions for wanted in _wanted(map(Requirement, it.requirements), frozenset(), it)
    )
    seen: set[tuple[str, frozenset[str], str, int, bool]] = set()
    releases: dict[str, dict[Version, Listed | None]] = defaultdict(dict)
    missing: set[str] = set()
    while waiting:
        wanted = waiting.popleft()
        deep = wanted.project in wanted.resolution.deep
        key = (wanted.project, wanted.extras, wanted.specifier, wanted.resolution.newest, deep)
        if key in seen:
            continue
        seen.add(key)
        if not source.page(wanted.project):
            missing.add(wanted.project)
        for version, wheels in _newest(source.page(wanted.project), wanted, deep=deep):
            speaking = next((wheel for wheel in wheels if source.metadata(wheel) is not None), None)
            releases[wanted.project][version] = speaking
            if speaking is not None:
                waiting += _wanted(_requirements(source.metadata(speaking)), wanted.extras, wanted.resolution)
    return Reached(dict(releases), tuple(sorted(missing)))


def _newest(page: list[Listed], wanted: _Wanted, *, deep: bool) -> Iterator[tuple[Version, list[Listed]]]:
    """For each target the newest releases that meet what is wanted, with the wheels that may speak for each."""
    wheels: dict[Version, list[Listed]] = defaultdict(list)
    for it in page:
        if it.version is not None and it.targets and it.file.yanked is None:
            wheels[it.version].append(it)
    specifier = SpecifierSet(wanted.specifier)
    chosen = set(specifier.filter(wheels, prereleases=True)) if deep else set()
    for target in _TARGETS:
        fitting = [version for version, of_it in wheels.items() if any(target in wheel.targets for wheel in of_it)]
        chosen |= set(sorted(specifier.filter(fitting), reverse=True)[: wanted.resolution.newest])
    for version in sorted(chosen, reverse=True):
        yield version, _speaking(wheels[version])


def _speaking(wheels: list[Listed]) -> list[Listed]:
    """The wheels that may speak for their release, the best first: all for the target that most tests are for."""
    ranked = sorted(wheels, key=lambda it: it.rank)
    return [it for it in ranked if it.rank[:2] == ranked[0].rank[:2]]


def _requirements(metadata: str | None) -> Iterator[Requirement]:
    fields, _ = parse_email(metadata or "")
    for line in fields.get("requires_dist", []):
        requirement = _requirement(line)
        if requirement is not None:
            yield requirement


@cache
def _requirement(line: str) -> Requirement | None:
    """The requirement, None for what a resolver skips as well: words of before the standard."""
    try:
        return Requirement(line)
    except InvalidRequirement:
        return None


def _wanted(requirements: Iterable[Requirement], extras: frozenset[str], of: Resolution) -> Iterator[_Wanted]:
    """What the requirements ask for on at least one target."""
    for it in requirements:
        if it.marker is None or _applies(it.marker, extras):
            requested = frozenset(canonicalize_name(extra) for extra in it.extras)
            yield _Wanted(canonicalize_name(it.name), requested, str(it.specifier), of)


@cache
def _applies(marker: Marker, extras: frozenset[str]) -> bool:
    environments = [_environment(target) for target in _TARGETS]
    return any(marker.evaluate({**it, "extra": extra}) for it in environments for extra in ("", *sorted(extras)))


def _environment(target: Target) -> dict[str, str]:
    return {
        **_SYSTEMS[target.machine],
        "platform_machine": target.machine,
        "python_full_version": target.python,
        "python_version": target.python.rpartition(".")[0],
        "implementation_name": "cpython",
        "implementation_version": target.python,
        "platform_python_implementation": "CPython",
        "platform_release": "",
        "platform_version": "",
    }
