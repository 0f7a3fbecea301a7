"""Note newer releases that something changeable excludes.

Another source may have a newer release that fits. Or a release needs only another Python than the requested one, or a
newer driver, which can be installed unless a GPU of the machine has reached its last driver branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.model.note import Note
from envsolve.model.prose import sentence_list
from envsolve.model.release import Release
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.solution import NewerElsewhere, Solution
from envsolve.model.versions import DriverVersion
from envsolve.resolve.parts import (
    Candidate,
    DriverCeiling,
    DriverFloor,
    PythonAmong,
    Requirement,
    framework_identifier,
    minor_lies_in,
)
from envsolve.resolve.provider import Provider


def with_newer_elsewhere(solution: Solution, others: Sequence[Solution]) -> Solution:
    """Add a note if another source has a newer release that also fits."""
    found = []
    for other in others:
        for here, there in zip(solution.choices, other.choices, strict=True):
            if there.release.version > here.release.version:
                way = solution.request.requester.setting("sources", there.release.source)
                text = f"{there.release.label} is newer than {here.release.label} and also fits: use {way} to choose it"
                note = Note("newer-elsewhere", text).about(
                    framework=there.release.framework,
                    version=str(there.release.version),
                    source=there.release.source.value,
                    taken=str(here.release.version),
                )
                found.append(NewerElsewhere(there.release.framework, note))
    return solution._replace(newer_elsewhere=tuple(found)) if found else solution


def with_newer_releases(solution: Solution, providers: Sequence[Provider]) -> Solution:
    """Add a note if the newest release of the only framework needs only a newer driver, another Python, or both.

    Only a Python that the request excludes counts. For Linux together with WSL2 and its Windows driver numbers, one
    driver version is not enough.
    """
    machines, request = solution.problem.machines, solution.request
    of_drivers = len({machine.windows_driver for machine in machines}) == 1
    if request.python is None and all(machine.driver is None for machine in machines):
        return solution
    note = _waiting(solution.choices[0].release, request, providers, of_drivers=of_drivers)
    return solution if note is None else solution._replace(notes=(*solution.notes, note))


def with_newer_for_another_python(
    solution: Solution, freed: Solution, can_solve: Callable[[tuple[FrameworkRequest, ...]], bool]
) -> Solution:
    """Add a note for each of several frameworks that only needs another Python than the request allows.

    ``freed`` is the stack if any Python is allowed; it must have no older release. ``can_solve`` returns whether there
    is a stack for these frameworks with the Python of the request. A release that is not newer than one of another
    source is not noted.
    """
    pairs = [(it.release, other.release) for it, other in zip(solution.choices, freed.choices, strict=True)]
    elsewhere = [(it.framework, Version(str(it.note.fields["version"]))) for it in solution.newer_elsewhere]
    if any(there.version < here.version for here, there in pairs):
        return solution
    notes = []
    for number, (here, there) in enumerate(pairs):
        requested = list(solution.problem.frameworks)
        requested[number] = FrameworkRequest(there.framework, SpecifierSet(f"=={there.version}"))
        known = max([here.version, *(version for framework, version in elsewhere if framework == here.framework)])
        if there.version > known and not can_solve(tuple(requested)):
            named = solution.request.requester.name_of("python")
            text = f"a newer {there.framework}, {there.version}, needs another Python than {named} allows, such as "
            note = Note("newer-needs-python", f"{text}{freed.python}")
            notes.append(note.about(framework=there.framework, version=str(there.version), pythons=str(freed.python)))
    return solution._replace(notes=(*solution.notes, *notes))


class _Changes(NamedTuple):
    """What must change for a build to run: the driver, of which "" stays, and the Python, of which none stays."""

    driver: DriverVersion
    pythons: tuple[str, ...] = ()

    @property
    def cost(self) -> tuple[int, tuple[int, ...]]:
        """How many things must change, and the driver."""
        return bool(self.driver.parts) + bool(self.pythons), self.driver.parts


def _waiting(release: Release, request: Request, providers: Sequence[Provider], *, of_drivers: bool) -> Note | None:
    """The newest release that needs only these changes, with the fewest changes that one of its builds needs.

    Versions are examined from the newest on, until one is found. Only that one of possibly hundreds is noted.
    """
    builds: dict[Version, list[tuple[Provider, Candidate]]] = {}
    identifier = framework_identifier(release.framework)
    for provider in providers:
        for version, newer in provider.newer(release.framework, release.version):
            builds.setdefault(version, []).extend((provider, Candidate(identifier, it)) for it in newer)
    for version in sorted(builds, reverse=True):
        every = [_changes(*build, request, of_drivers=of_drivers) for build in builds[version]]
        found = [changes for changes in every if changes is not None]
        least = min(found, key=lambda it: it.cost, default=None)
        if least is None or least.cost[0] == 0:
            continue
        pythons = sorted({it for of in found if of.cost == least.cost for it in of.pythons}, key=Version)
        needed = [f"NVIDIA driver {least.driver} or newer"] if least.driver.parts else []
        needed += [f"Python {sentence_list(pythons, 'or')}"] if pythons else []
        text = f"a newer {release.framework}, {version}, needs {sentence_list(needed)}"
        text += f", which {request.requester.name_of('python')} excludes" if pythons else ""
        note = Note("newer-needs-python" if pythons else "newer-needs-driver", text)
        facts = {"driver": str(least.driver)} if least.driver.parts else {}
        facts |= {"pythons": " ".join(pythons)} if pythons else {}
        return note.about(framework=release.framework, version=str(version), **facts)
    return None


def _changes(provider: Provider, candidate: Candidate, request: Request, *, of_drivers: bool) -> _Changes | None:
    """The changes with which a build would run; None if it needs others. A build that runs already needs none."""
    needed = _Changes(DriverVersion((), ""))
    for *_, last in provider.unmet(candidate):
        limit = last.limit
        if isinstance(limit, PythonAmong) and _are_excluded(limit.pythons, request):
            needed = needed._replace(pythons=limit.pythons)
        elif of_drivers and isinstance(limit, DriverFloor) and _can_rise(provider, last):
            needed = needed._replace(driver=max(needed.driver, limit.floor, key=lambda floor: floor.parts))
        else:
            return None
    return needed


def _are_excluded(pythons: Iterable[str], request: Request) -> bool:
    """Whether the request, not only the problem that was made of it, excludes all of these Pythons."""
    return request.python is not None and not any(minor_lies_in(Version(it), request.python) for it in pythons)


def _can_rise(provider: Provider, floor: Requirement) -> bool:
    """Whether a driver that meets ``floor`` exists for the GPUs of its machine.

    A Jetson's driver is part of JetPack.
    """
    assert isinstance(floor.limit, DriverFloor)
    lives = [root.limit for root in provider.roots if root.identifier == floor.identifier]
    has_gpus = bool(provider.problem.machines[int(floor.identifier.split()[1])].gpus)
    ends = [limit.below for limit in lives if isinstance(limit, DriverCeiling)]
    return bool(lives or not has_gpus) and all(floor.limit.floor.parts[0] < end for end in ends)
