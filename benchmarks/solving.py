"""What finding a stack costs: beside trying everything, and as the matrix and the number of machines grow.

    .venv-test/bin/python -m benchmarks.solving [RUNS]

Figures are medians in one warm process whose tables are read: the cost of an answer alone, without start-up. Trying
everything is the plain search that needs no solver: every build with every toolkit, cuDNN and Python, of which the best
is kept, by the rules of ``tests/resolve/reference.py``. "Kept" is the same search with what the machine does not change
found before.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import ParamSpec

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.app.request.refusal import refusal
from envsolve.errors import UnsolvableError
from envsolve.matrix import Matrix, find_matrix
from envsolve.matrix.tables import FrameworkTable
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.release import CudnnRelease, Release, Source, Toolkit
from envsolve.model.request import FrameworkRequest, Request, parse_framework
from envsolve.model.solution import Machine, Problem, Solution
from envsolve.model.versions import DriverVersion
from envsolve.resolve.fleet import profiles
from envsolve.resolve.solver import Solver
from tests.resolve.reference import (
    Cause,
    Driver,
    Shelf,
    Stack,
    allowed,
    code_for,
    cudnn_serves,
    floors_of,
    full_drivers,
    in_full,
    is_known_bad,
    life_of,
    lives,
    rank_of,
    requires_cudnn,
    requires_toolkit,
    toolkit_serves,
)

LINUX = Platform.LINUX_64
ONE = ("pytorch",)
THREE = ("tensorflow", "pytorch", "jax")
NAIVE = (("tensorflow", Source.PYPI), ("pytorch", Source.PYTORCH), ("jax", Source.PYPI), ("cupy", Source.PYPI))
GPUS = ("7.5", "8.0", "8.6", "8.9", "9.0")
SHARES = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
MACHINES = (1, 4, 16, 40)
FLEETS = (40, 1_000, 10_000)
BRANCHES = range(525, 581)
Arguments = ParamSpec("Arguments")


class ScaledMatrix(Matrix):
    """The shipped matrix with a share of its rows, or with all of them and repetitions under made-up older versions."""

    def __init__(self, directory: Path, share: float) -> None:
        super().__init__(directory)
        self._share = share
        self._scaled: dict[tuple[str, Platform | None], FrameworkTable] = {}

    def framework(self, name: str, platform: Platform | None) -> FrameworkTable:
        """The table of one framework, grown or cut down."""
        key = (name, platform)
        if key not in self._scaled:
            table = super().framework(name, platform)
            self._scaled[key] = table._replace(releases=tuple(scaled(table.releases, self._share)))
        return self._scaled[key]


def scaled(rows: Sequence[Release], share: float) -> Iterator[Release]:
    """Rows drawn by chance, the same ones each time, or all rows and their older repetitions."""
    if share < 1:
        drawn = sorted(random.Random(0).sample(range(len(rows)), round(len(rows) * share)))  # noqa: S311  # no secret
        yield from (rows[number] for number in drawn)
        return
    yield from rows
    for repetition in range(1, round(share)):
        yield from (row._replace(version=Version(f"0.0.{repetition}.{row.version}")) for row in rows)


@cache
def solver_of(matrix: Matrix) -> Solver:
    """The solver of a matrix: one for all questions, as in a process that asks several."""
    return Solver(matrix)


def ask(
    frameworks: Sequence[str], machines: Sequence[Machine], matrix: Matrix, sources: tuple[Source, ...] = ()
) -> Solution | None:
    """What the solver answers; the only place that knows how it is called."""
    requests = tuple(FrameworkRequest(name, SpecifierSet()) for name in frameworks)
    problem = Problem(requests, LINUX, tuple(machines), cpu=False, python=None, cuda=None)
    return solver_of(matrix).solve(Request(requests, format="json", sources=sources), problem)


def machine(gpu: str, driver: str) -> Machine:
    """A Linux machine with one kind of GPU."""
    return Machine(DriverVersion.parse(driver), ((ComputeCapability.parse(gpu), ""),), None)


def distinct_machines(matrix: Matrix) -> list[Machine]:
    """Machines of which no two are alike, with drivers of ``BRANCHES`` and GPUs from Turing to Hopper, shuffled."""
    drivers = [branch.first(windows=False).text for branch in matrix.cuda.branches if branch.branch in BRANCHES]
    machines = [machine(gpu, driver) for driver in drivers for gpu in GPUS]
    random.Random(0).shuffle(machines)  # noqa: S311  # no secret
    return machines


def try_everything(
    matrix: Matrix, framework: str, source: Source, gpu: ComputeCapability, driver: Driver
) -> Stack | None:
    """The best of all combinations that pass every rule."""
    table = matrix.framework(framework, LINUX)
    life, full = life_of(matrix.cuda, gpu, windows=False), full_drivers(matrix.cuda, windows=False)
    if not lives(driver, life):
        return None
    best = None
    for number, build in enumerate(sorted(table.releases, key=lambda it: (it.build, it.package))):
        if build.source is not source or build.cuda is None:
            continue
        if is_known_bad(build, table.known_bad, None) or is_known_bad(build, table.known_bad, gpu):
            continue
        code = code_for(build, gpu, full)
        if code is None or not allowed(driver, life.ceiling, code[1]):
            continue
        rank = rank_of(build, driver, full, machine_code=code[0])
        for toolkit, cudnn, python in combinations(matrix, build, gpu, driver):
            fit = (in_full(toolkit.version, driver, full), toolkit.version == build.cuda, toolkit.version)
            key = (build.version, rank, -number, fit, cudnn.version if cudnn else Version("0"), Version(python))
            if best is None or key > best[0]:
                best = key, build, toolkit, cudnn, python
    if best is None:
        return None
    _, build, toolkit, cudnn, python = best
    names = (str(build.version), build.source.value, build.build, build.package)
    return Stack(*names, str(toolkit.version), str(cudnn.version) if cudnn else None, python)


def combinations(
    matrix: Matrix, build: Release, gpu: ComputeCapability, driver: Driver
) -> Iterator[tuple[Toolkit, CudnnRelease | None, str]]:
    """Every toolkit, cuDNN and Python that go with ``build`` on that machine."""
    floors = floors_of(matrix.cuda, windows=False)
    cudnns = (None,) if build.cudnn_requires is None else matrix.cudnn
    for toolkit in matrix.cuda.toolkits:
        met = allowed(driver, None, floors[toolkit.version])
        if met and requires_toolkit(build, toolkit) and toolkit_serves(toolkit, gpu):
            for cudnn in cudnns:
                if cudnn is None or (requires_cudnn(build, cudnn) and cudnn_serves(cudnn, gpu, LINUX)):
                    yield from ((toolkit, cudnn, python) for python in build.pythons)


def from_shelf(shelf: Shelf, gpu: ComputeCapability, driver: Driver) -> Stack | Cause:
    """The same answer where all that does not depend on the machine is kept."""
    return next(shelf.answers(gpu, [driver]))


def milliseconds(
    runs: int, action: Callable[Arguments, object], *arguments: Arguments.args, **named: Arguments.kwargs
) -> float:
    """The median time of ``action``, after one uncounted run."""
    action(*arguments, **named)
    taken = []
    for _ in range(runs):
        start = time.perf_counter()
        action(*arguments, **named)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken) * 1000


def table_of(*heads: str) -> None:
    """Print the head of a Markdown table."""
    print("\n| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))


def row_of(*cells: str | float) -> None:
    """Print a row of it, times in milliseconds."""
    print("| " + " | ".join(cell if isinstance(cell, str) else f"{cell:.2f}" for cell in cells) + " |")


def beside_trying_everything(matrix: Matrix, runs: int) -> None:
    """One framework from one source: plain search, the same search with what is kept, the solver."""
    gpu, driver = ComputeCapability.parse("8.9"), DriverVersion.parse("580.65.06")
    table_of("one framework, 8.9 with 580.65.06", "builds", "trying everything, ms", "kept, ms", "solver, ms", "ratio")
    for framework, source in NAIVE:
        shelf = Shelf(matrix, framework, LINUX, source)
        if try_everything(matrix, framework, source, gpu, driver.parts) != from_shelf(shelf, gpu, driver.parts):
            sys.exit(f"{framework} from {source}: the two searches differ")
        naive = milliseconds(runs, try_everything, matrix, framework, source, gpu, driver.parts)
        kept = milliseconds(runs, from_shelf, shelf, gpu, driver.parts)
        own = milliseconds(runs, ask, (framework,), (machine("8.9", driver.text),), matrix, (source,))
        row_of(f"{framework} ({source})", str(len(shelf.builds)), naive, kept, own, f"{naive / own:.1f}")


def with_the_matrix(runs: int) -> None:
    """How the solver's time grows with the rows of the matrix."""
    new, old = (machine("8.9", "580.65.06"),), (machine("7.0", "410.48"),)
    table_of("rows", "builds for linux-64", "pytorch, ms", "three frameworks, ms", "pytorch, V100 with 410.48, ms")
    for share in SHARES:
        matrix = ScaledMatrix(find_matrix(), share)
        builds = sum(len(matrix.framework(name, LINUX).releases) for name in THREE)
        questions = ((ONE, new), (THREE, new), (ONE, old))
        row_of(f"{share:.0%}", str(builds), *(timed(runs, names, machines, matrix) for names, machines in questions))


def with_the_machines(matrix: Matrix, runs: int) -> None:
    """How the solver's time grows with the machines that one stack must run on."""
    machines = distinct_machines(matrix)
    table_of("distinct machines", "pytorch, ms", "three frameworks, ms")
    for count in MACHINES:
        row_of(str(count), *(timed(runs, names, machines[:count], matrix) for names in (ONE, THREE)))


def with_a_fleet(matrix: Matrix, runs: int) -> None:
    """Machines of which most are like others: their number costs what telling them apart costs."""
    profile = distinct_machines(matrix)
    table_of("hosts of 40 kinds", "told apart, ms", "and solved for pytorch, ms", "and for three frameworks, ms")
    for count in FLEETS:
        hosts = [profile[number % len(profile)]._replace(hosts=(f"{number}.json",)) for number in range(count)]
        told = milliseconds(runs, profiles, hosts, matrix.cuda)
        solved = (milliseconds(runs, ask_fleet, names, hosts, matrix) for names in (ONE, THREE))
        row_of(f"{count:,}", told, *solved)


def ask_fleet(frameworks: Sequence[str], hosts: Sequence[Machine], matrix: Matrix) -> Solution | None:
    """The stack for many hosts, told apart first."""
    return ask(frameworks, profiles(hosts, matrix.cuda), matrix)


def first_and_next(matrix: Matrix, runs: int) -> None:
    """What the first answer of a process costs beside the next, and an answer that is a no."""
    one, three = posed(ONE, "8.9", "580.65.06"), posed(THREE, "8.9", "580.65.06")
    table_of("request, default sources", "first answer of a solver, ms", "next, ms")
    for name, request in (("pytorch", one), ("three frameworks", three)):
        fresh = milliseconds(runs, lambda it: Solver(matrix).solve(*it), request)
        row_of(name, fresh, milliseconds(runs, lambda it: solver_of(matrix).solve(*it), request))
    for name, request in (
        ("a no: pytorch==2.15.* on R550", posed(("pytorch==2.15.*",), "8.9", "550.163.01")),
        ("a no: two frameworks without a CUDA in common", posed(("tensorflow", "pytorch==2.15.*"), "8.9", "580.65.06")),
    ):
        fresh = milliseconds(runs, lambda it: refused(Solver(matrix), it), request)
        row_of(name, fresh, milliseconds(runs, lambda it: refused(solver_of(matrix), it), request))


def posed(frameworks: Sequence[str], gpu: str, driver: str) -> tuple[Request, Problem]:
    """A request for one machine."""
    requests = tuple(FrameworkRequest(*parse_framework(text)) for text in frameworks)
    problem = Problem(requests, LINUX, (machine(gpu, driver),), cpu=False, python=None, cuda=None)
    return Request(requests, format="json"), problem


def refused(solver: Solver, request: tuple[Request, Problem]) -> UnsolvableError:
    """Why there is no stack, with the ways out."""
    if solver.solve(*request) is not None:
        sys.exit("a request that is to be refused has an answer")
    return refusal(*request, solver)


def timed(runs: int, frameworks: Sequence[str], machines: Sequence[Machine], matrix: Matrix) -> str:
    """The solver's time, marked where there is no answer."""
    found = ask(frameworks, machines, matrix)
    taken = milliseconds(runs, ask, frameworks, machines, matrix)
    return f"{taken:.2f}" if found else f"{taken:.2f} (no answer)"


def main(runs: int) -> None:
    """Measure and print everything."""
    matrix = Matrix(find_matrix())
    beside_trying_everything(matrix, runs)
    with_the_matrix(runs)
    with_the_machines(matrix, runs)
    with_a_fleet(matrix, runs)
    first_and_next(matrix, runs)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
