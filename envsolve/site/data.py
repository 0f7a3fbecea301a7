"""Every outcome on the site, computed on all processors, and looked up by machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from functools import cache
from itertools import accumulate, combinations, groupby, product
from multiprocessing import get_context
from operator import attrgetter
from typing import NamedTuple

from packaging.version import Version

from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.versions import DriverVersion
from envsolve.site.answers import Outcome, PatientSolver, Query, Refusal, Stack, by_driver
from envsolve.site.machines import PLATFORMS, GpuKind, all_driver_steps, gpu_kinds

KINDS = (("environment", "pixi"), ("requirements",))
"""The formats of one stack, by what installs it: conda or pip."""


Runs = tuple[tuple[int, Outcome], ...]
"""Outcomes, each with the number of driver ranges that have it: from the oldest driver on, then that of an unknown
driver.
"""
Case = tuple[tuple[str, ...], Platform, tuple[str, ...], GpuKind | None]
"""Frameworks on a platform in one kind of files, for a kind of GPU, or for none."""


class Part(NamedTuple):
    """The answers that one process computes at a time: those of all sets of frameworks for GPUs of one capability.

    Refusing three frameworks needs the answers to two of them on the same machine.
    """

    directory: str
    sets: tuple[tuple[str, ...], ...]
    platform: Platform
    kinds: tuple[GpuKind | None, ...]


def parts(directory: str, names: Iterable[str], together: int) -> list[Part]:
    """Every part for up to ``together`` of the frameworks ``names`` at once."""
    of_one = groupby(gpu_kinds(Matrix(directory))[0], key=attrgetter("capability"))
    kinds: list[tuple[GpuKind | None, ...]] = [(None,), *(tuple(same) for _, same in of_one)]
    sets = tuple(them for size in range(1, together + 1) for them in combinations(sorted(names), size))
    return [Part(directory, sets, platform, same) for platform in PLATFORMS for same in kinds]


def find_outcomes(part: Part) -> list[tuple[Case, Runs]]:
    """The outcomes of one part."""
    matrix, solver, steps = _known(part.directory)
    solver.forget()
    found: list[tuple[Case, Runs]] = []
    for frameworks, formats in product(part.sets, KINDS):
        query = Query(matrix, solver, frameworks, part.platform, formats)
        for kind in part.kinds:
            runs = () if kind is None else by_driver(query, kind, steps[part.platform])
            found.append(((frameworks, part.platform, formats, kind), (*runs, (1, query.outcome(kind, None)))))
    return found


@cache
def _known(directory: str) -> tuple[Matrix, PatientSolver, Mapping[Platform, tuple[tuple[int, ...], ...]]]:
    """What all parts of a process share."""
    matrix = Matrix(directory)
    kinds, _ = gpu_kinds(matrix)
    return matrix, PatientSolver(matrix), {it: all_driver_steps(kinds, matrix, it) for it in PLATFORMS}


def all_outcomes(every: list[Part], on_progress: Callable[[int, int], None]) -> dict[Case, Runs]:
    """The outcomes of all parts, on every processor; ``on_progress`` gets the number of finished parts, and of all."""
    found: dict[Case, Runs] = {}
    with get_context("spawn").Pool(os.cpu_count()) as pool:
        for number, runs in enumerate(pool.imap(find_outcomes, every), 1):
            found.update(runs)
            on_progress(number, len(every))
    return found


class Answers:
    """The outcomes of all parts, by machine."""

    def __init__(self, matrix: Matrix, outcomes: Mapping[Case, Runs]) -> None:
        self.matrix, self._outcomes = matrix, outcomes
        self.kinds, self.ambiguous = gpu_kinds(matrix)
        self.sets = tuple(dict.fromkeys(frameworks for frameworks, *_ in outcomes))
        self.frameworks = tuple(sorted({name for them in self.sets for name in them}))
        self._days = {
            name: {it.version: it.released for it in matrix.framework(name, None).releases if it.released}
            for name in self.frameworks
        }
        self._steps = {it: all_driver_steps(self.kinds, matrix, it) for it in PLATFORMS}

    def runs(self, case: Case) -> Runs:
        """The outcomes of one case by driver."""
        return self._outcomes[case]

    def steps(self, platform: Platform) -> tuple[tuple[int, ...], ...]:
        """The first driver of each range that matters for any GPU."""
        return self._steps[platform]

    def days_behind(self, framework: str, version: str) -> int | None:
        """How many days older than the newest release a release is; None if its date is unknown."""
        days = self._days[framework]
        day = days.get(Version(version))
        return None if day is None else (date.fromisoformat(max(days.values())) - date.fromisoformat(day)).days

    def newest(
        self, framework: str, kind: GpuKind, driver: DriverVersion | None, platform: Platform
    ) -> tuple[str, Stack | Refusal]:
        """The newest release of a framework that runs on a machine, or why there is none, with the package manager."""
        found = [
            (manager, self.outcome((framework,), platform, formats, kind, driver))
            for manager, formats in (("pip", KINDS[1]), ("conda", KINDS[0]))
        ]
        return max(found, key=lambda it: [Version(version) for version, _ in it[1].releases])

    def outcome(
        self,
        frameworks: tuple[str, ...],
        platform: Platform,
        formats: tuple[str, ...],
        kind: GpuKind,
        driver: DriverVersion | None,
    ) -> Outcome:
        """The outcome for one machine; a driver of None is unknown."""
        *runs, (_, unknown) = self._outcomes[frameworks, platform, formats, kind]
        if driver is None:
            return unknown
        step = sum(driver.meets(DriverVersion(it, "")) for it in self._steps[platform]) - 1
        ends = accumulate(count for count, _ in runs)
        return next(outcome for end, (_, outcome) in zip(ends, runs, strict=True) if step < end)
