"""Find the releases that a resolution may read, without a resolver.

A resolver's requests depend on which answer arrives first, so no two recordings would be the same. Here each possible
requirement is followed to the newest releases that meet it: more than any resolver requests, and always the same.
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

    For each requirement the ``newest`` releases that meet it are recorded, for each target; for the projects in
    ``deep`` all that meet it, including pre-releases.
    """

    name: str
    requirements: tuple[str, ...]
    newest: int
    deep: frozenset[str]


class Reached(NamedTuple):
    """The result of the walk: releases by project with the wheel that represents each; None if there is none."""

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
    """Follow every requirement that is possible in ``resolutions``."""
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
    """The newest releases for each target that meet a requirement, with the wheels that may represent each."""
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
    """The wheels that may represent their release, the best first: all for the target of most tests."""
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
    """The requirement; None for an invalid one from before the standard, which resolvers also skip."""
    try:
        return Requirement(line)
    except InvalidRequirement:
        return None


def _wanted(requirements: Iterable[Requirement], extras: frozenset[str], of: Resolution) -> Iterator[_Wanted]:
    """The requirements that apply to at least one target."""
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
