"""Every question of a grid (framework, source, platform, driver branch, GPU) has the answer of exhaustive search.

    .venv-test/bin/python -m tests.resolve.test_grid [EVERY]

prints how the whole grid comes out, or each EVERYth question of it.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import cache, partial
from typing import NamedTuple

import pytest
from packaging.specifiers import SpecifierSet

from envsolve.frameworks import FRAMEWORKS
from envsolve.matrix import Matrix, find_matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.release import Source
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.solution import Machine, Problem
from envsolve.model.versions import DriverVersion
from envsolve.resolve.solver import Solver
from tests.resolve.reference import Cause, Shelf, Stack

PLATFORMS = (Platform.LINUX_64, Platform.LINUX_AARCH64, Platform.WIN_64)
LEAST_CELLS = 20_000
SHOWN = 20


class Part(NamedTuple):
    """The part of the grid for one process at a time."""

    framework: str
    platform: Platform
    source: Source
    rows: int


class Mismatch(NamedTuple):
    """One question with two different answers."""

    part: Part
    gpu: ComputeCapability
    driver: DriverVersion | None
    expected: Stack | Cause
    answered: Stack | None

    def __str__(self) -> str:
        driver = f"driver {self.driver}" if self.driver else "an unknown driver"
        cell = f"{self.part.framework} from {self.part.source} on {self.part.platform}, {self.gpu} with {driver}"
        return f"{cell}:\n    reference: {self.expected!r}\n    solver:    {self.answered!r}"


class Outcome(NamedTuple):
    """The result of a part of the grid, or of all of it; ``causes`` as the reference sees them, times in seconds."""

    solvable: int
    causes: Counter[Cause]
    wrong: int
    mismatches: list[Mismatch]
    reference_time: float
    solver_time: float

    @property
    def cells(self) -> int:
        """The number of questions."""
        return self.solvable + self.causes.total()


@cache
def shipped() -> Matrix:
    """The shipped matrix, once for each process."""
    return Matrix(find_matrix())


@cache
def solver_of(matrix: Matrix) -> Solver:
    """The solver of a matrix, used for every question, with its caches."""
    return Solver(matrix)


def ask(solver: Solver, part: Part, gpu: ComputeCapability, driver: DriverVersion | None) -> Stack | None:
    """The solver's answer; the only call of it."""
    frameworks = (FrameworkRequest(part.framework, SpecifierSet()),)
    machine = Machine(driver, ((gpu, ""),), None, windows_driver=part.platform.is_windows)
    problem = Problem(frameworks, part.platform, (machine,), cpu=False, python=None, cuda=None)
    solution = solver.solve(Request(frameworks, format="requirements", sources=(part.source,)), problem)
    if solution is None:
        return None
    build = solution.choices[0].release
    return Stack(
        version=str(build.version),
        source=build.source.value,
        build=build.build,
        package=build.package,
        toolkit=str(solution.toolkit.version if solution.toolkit else None),
        cudnn=str(solution.cudnn.version) if solution.cudnn else None,
        python=str(solution.python),
    )


def drivers(platform: Platform) -> list[DriverVersion | None]:
    """The first driver of each branch on that system, the bare branch if it is unknown, and an unknown driver."""
    known: list[DriverVersion | None] = [None]
    for branch in shipped().cuda.branches:
        first = branch.first_windows if platform.is_windows else branch.first_linux
        known.append(first or DriverVersion.parse(str(branch.branch)))
    return known


def parts(matrix: Matrix) -> Iterator[Part]:
    """The grid in parts: every source that has GPU builds of a framework for a platform."""
    for framework in FRAMEWORKS:
        for platform in PLATFORMS:
            builds = [it.source for it in matrix.framework(framework, platform).releases if it.cuda is not None]
            yield from (Part(framework, platform, source, rows) for source, rows in Counter(builds).items())


def compare(part: Part, every: int = 1) -> Outcome:
    """Ask the reference and the solver each ``every``th question of a part."""
    numbers = drivers(part.platform)
    gpus = [row.capability for row in shipped().cuda.architectures]
    start = time.perf_counter()
    shelf = Shelf(shipped(), part.framework, part.platform, part.source)
    known = [None if driver is None else driver.parts for driver in numbers]
    expected = [(gpu, answer) for gpu in gpus for answer in shelf.answers(gpu, known)][::every]
    given = [driver for _ in gpus for driver in numbers][::every]
    between = time.perf_counter()
    answers = [ask(solver_of(shipped()), part, gpu, driver) for (gpu, _), driver in zip(expected, given, strict=True)]
    end = time.perf_counter()
    wrong = [
        Mismatch(part, gpu, driver, right, answer)
        for (gpu, right), driver, answer in zip(expected, given, answers, strict=True)
        if answer != (right if isinstance(right, Stack) else None)
    ]
    causes = Counter(right for _, right in expected if isinstance(right, Cause))
    solvable = len(expected) - causes.total()
    return Outcome(solvable, causes, len(wrong), wrong[:SHOWN], between - start, end - between)


def compare_grid(every: int = 1) -> Outcome:
    """Compare all parts, the largest first, on every processor of the machine."""
    largest_first = sorted(parts(shipped()), key=lambda part: part.rows, reverse=True)
    with multiprocessing.get_context("spawn").Pool(os.cpu_count()) as pool:
        outcomes = list(pool.imap_unordered(partial(compare, every=every), largest_first, chunksize=1))
    return Outcome(
        solvable=sum(it.solvable for it in outcomes),
        causes=sum((it.causes for it in outcomes), Counter()),
        wrong=sum(it.wrong for it in outcomes),
        mismatches=[mismatch for it in outcomes for mismatch in it.mismatches][:SHOWN],
        reference_time=sum(it.reference_time for it in outcomes),
        solver_time=sum(it.solver_time for it in outcomes),
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    "every",
    [pytest.param(1, marks=pytest.mark.thorough, id="the whole grid"), pytest.param(11, id="an eleventh of it")],
)
def test_the_solver_agrees_with_exhaustive_search(every: int) -> None:
    grid = compare_grid(every)
    assert grid.cells * every >= LEAST_CELLS
    shown = "\n".join(str(mismatch) for mismatch in grid.mismatches)
    assert grid.wrong == 0, f"{grid.wrong} of {grid.cells} answers differ, such as\n{shown}"


def main(every: int) -> None:
    """Print the result of the grid."""
    start = time.perf_counter()
    grid = compare_grid(every)
    seconds = time.perf_counter() - start
    lines = [
        f"{grid.cells:,} cells in {seconds:.1f} s on {os.cpu_count()} processors",
        f"{grid.reference_time / grid.cells / every * 1000:.3f} ms a cell for the reference, which takes all of them",
        f"{grid.solver_time / grid.cells * 1000:.2f} ms a cell for the solver",
        f"{grid.solvable:6,} solvable",
        *(f"{grid.causes[cause]:6,} not: {cause}" for cause in Cause),
        f"{grid.wrong:6,} answers of the solver differ",
        *map(str, grid.mismatches),
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
