"""Note newer releases that something changeable excludes.

Another source may have a newer release that fits. Or a release needs only a newer driver, which can be installed unless
a GPU of the machine has reached its last driver branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from packaging.version import Version

from envsolve.model.note import Note
from envsolve.model.solution import Choice, NewerElsewhere, Solution
from envsolve.model.versions import DriverVersion
from envsolve.resolve.parts import Candidate, DriverCeiling, DriverFloor, Requirement, framework_identifier
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


def with_newer_drivers(solution: Solution, providers: Sequence[Provider]) -> Solution:
    """Add a note if the newest release needs only a newer driver.

    For several frameworks, or for Linux together with WSL2 and its Windows driver numbers, one driver version is not
    enough.
    """
    machines = solution.problem.machines
    numberings = {machine.windows_driver for machine in machines}
    if len(solution.choices) > 1 or len(numberings) > 1 or all(machine.driver is None for machine in machines):
        return solution
    notes = [note for choice in solution.choices for note in _waiting(choice, providers)]
    return solution._replace(notes=(*solution.notes, *notes)) if notes else solution


def _waiting(choice: Choice, providers: Sequence[Provider]) -> Iterator[Note]:
    """The newest release that needs only a newer driver, with the lowest driver that one of its builds needs.

    Versions are examined from the newest on, until one is found. Only that one of possibly hundreds is noted.
    """
    for version, builds in _newest_first(choice, providers):
        needed = [_driver_needed(provider, candidate) for provider, candidate in builds]
        floors = [floor for floor in needed if floor is not None]
        if floors and all(floor.parts for floor in floors):
            lowest = min(floors, key=lambda floor: floor.parts)
            text = f"a newer {choice.release.framework}, {version}, needs NVIDIA driver {lowest} or newer"
            note = Note("newer-needs-driver", text)
            yield note.about(framework=choice.release.framework, version=str(version), driver=str(lowest))
            return


def _newest_first(
    choice: Choice, providers: Sequence[Provider]
) -> Iterator[tuple[Version, list[tuple[Provider, Candidate]]]]:
    """The versions that are newer than the chosen one, each with its builds from all sources."""
    release = choice.release
    every = [list(provider.newer(release.framework, release.version)) for provider in providers]
    versions = {version for of_provider in every for version, _ in of_provider}
    for version in sorted(versions, reverse=True):
        yield (
            version,
            [
                (provider, Candidate(framework_identifier(release.framework), build))
                for provider, of_provider in zip(providers, every, strict=True)
                for found, builds in of_provider
                if found == version
                for build in builds
            ],
        )


def _driver_needed(provider: Provider, candidate: Candidate) -> DriverVersion | None:
    """The driver with which a build would run, if it needs nothing else. A build that runs already has no number."""
    needed = DriverVersion((), "")
    for *_, last in provider.unmet(candidate):
        if not isinstance(last.limit, DriverFloor) or not _can_rise(provider, last):
            return None
        needed = max(needed, last.limit.floor, key=lambda floor: floor.parts)
    return needed


def _can_rise(provider: Provider, floor: Requirement) -> bool:
    """Whether a driver that meets ``floor`` exists for the GPUs of its machine.

    A Jetson's driver is part of JetPack.
    """
    assert isinstance(floor.limit, DriverFloor)
    lives = [root.limit for root in provider.roots if root.identifier == floor.identifier]
    has_gpus = bool(provider.problem.machines[int(floor.identifier.split()[1])].gpus)
    ends = [limit.below for limit in lives if isinstance(limit, DriverCeiling)]
    return bool(lives or not has_gpus) and all(floor.limit.floor.parts[0] < end for end in ends)
