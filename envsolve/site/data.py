"""Every outcome that the site has, found on all processors, and looked up by machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from datetime import date
from functools import cache
from itertools import accumulate, combinations
from multiprocessing import get_context
from typing import NamedTuple

from packaging.version import Version

from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.versions import DriverVersion
from envsolve.site.answers import Asking, Outcome, PatientSolver, Refusal, Stack, by_driver
from envsolve.site.machines import PLATFORMS, GpuKind, all_driver_steps, gpu_kinds

KINDS = (("environment", "pixi"), ("requirements",))
"""The formats that one stack is written in, by who installs it: conda or pip."""


class Part(NamedTuple):
    """The answers that one process finds at a time: those of some frameworks on one platform, in one kind of files."""

    directory: str
    frameworks: tuple[str, ...]
    platform: Platform
    formats: tuple[str, ...]


Runs = tuple[tuple[int, Outcome], ...]
"""Outcomes, each with how many kinds of drivers have it: from the oldest driver on, and last that of an unknown one."""


def parts(directory: str, names: Iterable[str], together: int) -> list[Part]:
    """Every part for up to ``together`` of the frameworks ``names`` at once."""
    sets = [them for size in range(1, together + 1) for them in combinations(sorted(names), size)]
    return [Part(directory, them, platform, kind) for them in sets for platform in PLATFORMS for kind in KINDS]


def find_outcomes(part: Part) -> list[Runs]:
    """The outcomes of one part for each kind of GPU."""
    matrix, solver, kinds = _known(part.directory)
    asking = Asking(matrix, solver, part.frameworks, part.platform, part.formats)
    solver.forget()
    steps = all_driver_steps(kinds, matrix, part.platform)
    found: dict[object, Runs] = {}
    runs = []
    for kind in kinds:
        key = kind.capability, kind.forward and part.platform.is_linux
        if key not in found:
            found[key] = (*by_driver(asking, kind, steps), (1, asking.outcome(kind, None)))
        runs.append(found[key])
    return runs


@cache
def _known(directory: str) -> tuple[Matrix, PatientSolver, tuple[GpuKind, ...]]:
    """What serves every part of a process."""
    matrix = Matrix(directory)
    return matrix, PatientSolver(matrix), gpu_kinds(matrix)[0]


def all_outcomes(every: list[Part], on_progress: Callable[[int, int], None]) -> list[list[Runs]]:
    """The outcomes of each part, on every processor; ``on_progress`` gets how many parts are done, and of how many."""
    found = []
    with get_context("spawn").Pool(os.cpu_count()) as pool:
        for number, runs in enumerate(pool.imap(find_outcomes, every), 1):
            found.append(runs)
            on_progress(number, len(every))
    return found


class Answers:
    """The outcomes of every part, found by machine."""

    def __init__(self, matrix: Matrix, every: list[Part], outcomes: list[list[Runs]]) -> None:
        self.matrix, self.parts, self.outcomes = matrix, every, outcomes
        self.kinds, self.ambiguous = gpu_kinds(matrix)
        self.frameworks = tuple(sorted({name for it in every for name in it.frameworks}))
        self._days = {
            name: {it.version: it.released for it in matrix.framework(name, None).releases if it.released}
            for name in self.frameworks
        }
        self._by_part = dict(zip((it[1:] for it in every), outcomes, strict=True))
        self._steps = {it: all_driver_steps(self.kinds, matrix, it) for it in PLATFORMS}

    def steps(self, platform: Platform) -> tuple[tuple[int, ...], ...]:
        """The first driver of each range that any GPU distinguishes."""
        return self._steps[platform]

    def days_behind(self, framework: str, version: str) -> int | None:
        """How many days a release is older than the newest; None where its day is not known."""
        days = self._days[framework]
        day = days.get(Version(version))
        return None if day is None else (date.fromisoformat(max(days.values())) - date.fromisoformat(day)).days

    def newest(
        self, framework: str, kind: GpuKind, driver: DriverVersion | None, platform: Platform
    ) -> tuple[str, Stack | Refusal]:
        """The newest release of a framework that a machine runs, or why there is none, with the manager for it."""
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
        """The outcome for one machine; None is an unknown driver."""
        *runs, (_, unknown) = self._by_part[frameworks, platform, formats][self.kinds.index(kind)]
        if driver is None:
            return unknown
        step = sum(driver.meets(DriverVersion(it, "")) for it in self._steps[platform]) - 1
        ends = accumulate(count for count, _ in runs)
        return next(outcome for end, (_, outcome) in zip(ends, runs, strict=True) if step < end)
