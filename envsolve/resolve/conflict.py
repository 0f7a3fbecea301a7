"""Find a minimal conflict: a smallest set of constraints of a request and its machines that has no stack.

Every constraint in the set matters: without any one of them there is a stack. Each is tested by solving without it, so
nothing is blamed that has no part in the failure. If several smallest sets exist, the order of removal decides. Facts
about machines that cannot change are removed first if others suffice. A driver is removed before the GPU behind it,
because a newer driver gives a GPU no code. What the user typed is removed last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeVar

from packaging.specifiers import SpecifierSet

from envsolve.model.capability import ComputeCapability
from envsolve.model.request import FrameworkRequest, Request, versions_text
from envsolve.model.solution import Machine, Problem
from envsolve.model.words import day_of

T = TypeVar("T")


class Kind(StrEnum):
    """What a constraint is about."""

    FRAMEWORK = "framework"
    VERSION = "version"
    SOURCE = "source"
    PYTHON = "python"
    CUDA = "cuda"
    DATE = "date"
    DRIVER = "driver"
    GPU = "gpu"
    GLIBC = "glibc"


class Constraint(NamedTuple):
    """One demand of a request or a machine.

    ``number`` is the number of the framework or machine it is about. For a GPU there is also which one.
    """

    kind: Kind
    number: int = 0
    gpu: ComputeCapability | None = None

    def text(self, request: Request, problem: Problem) -> str:
        """The constraint as a message names it."""
        if self.kind in (Kind.FRAMEWORK, Kind.VERSION):
            requested = problem.frameworks[self.number]
            return requested.framework if self.kind is Kind.FRAMEWORK else str(requested)
        if self.kind is Kind.SOURCE:
            return f"from {' or '.join(request.sources)}"
        if self.kind is Kind.DATE:
            return released_before(request)
        if self.kind in (Kind.PYTHON, Kind.CUDA):
            return _typed("Python", problem.python) if self.kind is Kind.PYTHON else _typed("CUDA", problem.cuda)
        machine = problem.machines[self.number]
        of = f" of {machine.name}" if machine.hosts else ""
        if self.kind is Kind.GPU:
            assert self.gpu is not None
            return f"{machine.gpu_label(self.gpu)}{of}"
        return f"driver {machine.driver}{of}" if self.kind is Kind.DRIVER else f"glibc {machine.glibc}{of}"


def released_before(request: Request) -> str:
    """The requirement of ``exclude_newer`` on a version, in words."""
    moment = request.packages.exclude_newer
    return "" if moment is None else f"released before {day_of(moment)}"


def _typed(what: str, versions: SpecifierSet | None) -> str:
    return what if versions is None else f"{what} {versions_text(versions)}"


def constraints_of(request: Request, problem: Problem) -> Iterator[Constraint]:
    """Yield every constraint of a request, in the order of removal."""
    machines = list(enumerate(problem.machines))[::-1]
    yield from (Constraint(Kind.GLIBC, number) for number, machine in machines if machine.glibc is not None)
    frameworks = list(enumerate(problem.frameworks))[::-1]
    yield from (Constraint(Kind.FRAMEWORK, number) for number, _ in frameworks)
    if request.sources:
        yield Constraint(Kind.SOURCE)
    yield from (Constraint(Kind.DRIVER, number) for number, machine in machines if machine.driver is not None)
    if problem.python is not None:
        yield Constraint(Kind.PYTHON)
    if problem.cuda is not None:
        yield Constraint(Kind.CUDA)
    if request.packages.exclude_newer is not None:
        yield Constraint(Kind.DATE)
    for number, machine in machines:
        yield from (Constraint(Kind.GPU, number, gpu) for gpu, _ in machine.gpus)
    yield from (Constraint(Kind.VERSION, number) for number, requested in frameworks if requested.specifier)


def restricted(request: Request, problem: Problem, kept: Collection[Constraint]) -> tuple[Request, Problem]:
    """Return the request and the problem with only the constraints in ``kept``."""
    frameworks = tuple(
        requested if Constraint(Kind.VERSION, number) in kept else FrameworkRequest(requested.framework, SpecifierSet())
        for number, requested in enumerate(problem.frameworks)
        if Constraint(Kind.FRAMEWORK, number) in kept
    )
    machines = tuple(_machine(number, machine, kept) for number, machine in enumerate(problem.machines))
    limited = problem._replace(
        frameworks=frameworks,
        machines=tuple(machine for machine in machines if _matters(machine)) or machines[:1],
        python=problem.python if frameworks and Constraint(Kind.PYTHON) in kept else None,
        cuda=problem.cuda if Constraint(Kind.CUDA) in kept else None,
    )
    if Constraint(Kind.SOURCE) not in kept:
        request = request._replace(sources=(), also=request.sources)
    if Constraint(Kind.DATE) not in kept:
        request = up_to(None, request)
    return request._replace(frameworks=frameworks), limited


def up_to(moment: str | None, request: Request) -> Request:
    """Return ``request`` with another ``exclude_newer``."""
    return request._replace(packages=request.packages._replace(exclude_newer=moment))


def minimal_conflict(
    request: Request, problem: Problem, can_solve: Callable[[Request, Problem], bool]
) -> tuple[Constraint, ...]:
    """Return the constraints of a smallest set that has no stack. ``problem`` itself must have none."""
    every = list(constraints_of(request, problem))
    return tuple(_shrunk(every, lambda kept: not can_solve(*restricted(request, problem, frozenset(kept)))))


def _machine(number: int, machine: Machine, kept: Collection[Constraint]) -> Machine:
    return machine._replace(
        driver=machine.driver if Constraint(Kind.DRIVER, number) in kept else None,
        gpus=tuple(entry for entry in machine.gpus if Constraint(Kind.GPU, number, entry[0]) in kept),
        glibc=machine.glibc if Constraint(Kind.GLIBC, number) in kept else None,
    )


def _matters(machine: Machine) -> bool:
    return machine.driver is not None or bool(machine.gpus) or machine.glibc is not None


def _shrunk(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """Remove the items that ``fails`` does not need, from the front, in growing strides.

    An item stays only if the rest no longer fails without it. Removing an item that mattered cannot make the rest fail
    again, so all items that remain are needed.
    """
    kept, position, stride = list(items), 0, 1
    while position < len(kept):
        without = kept[:position] + kept[position + stride :]
        if fails(without):
            kept, stride = without, 2 * stride
        elif stride > 1:
            stride = max(1, stride // 4)
        else:
            position += 1
    return kept
