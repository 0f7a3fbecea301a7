"""Solve for many machines: merge equivalent machines, and split those that share no stack into groups.

A driver matters only by the limits that it meets: the floors of toolkits, the drivers that support a toolkit in full,
the first and last branches of GPUs. So 10,000 machines reduce to a few dozen profiles before anything is solved.

For the smallest split, each stack corresponds to the set of profiles that it serves: those on which its builds, its
toolkit and its cuDNN run. Only the largest of these sets matter. A small search over bits finds the fewest sets that
cover every profile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from envsolve.matrix.tables import CudaTable
from envsolve.model.release import Architecture
from envsolve.model.request import Request
from envsolve.model.solution import Machine, Problem, Solution
from envsolve.model.versions import DriverVersion
from envsolve.resolve.agreement import SHARED, every_sharing
from envsolve.resolve.parts import CUDA, CUDNN, framework_identifier
from envsolve.resolve.provider import Provider
from envsolve.resolve.solver import Solver


class Group(NamedTuple):
    """Machines that one stack serves, by their numbers in the problem, and that stack."""

    numbers: tuple[int, ...]
    solution: Solution


def profiles(machines: Iterable[Machine], cuda: CudaTable) -> tuple[Machine, ...]:
    """Return one machine for each set of equivalent machines, in the order of the first.

    ``hosts`` lists the members.
    """
    limits = {windows: driver_limits(cuda, cuda.architectures, windows=windows) for windows in (False, True)}
    classes: dict[tuple[bool, DriverVersion | None], tuple[bool, ...]] = {}
    found: dict[tuple[object, ...], list[Machine]] = {}
    for machine in machines:
        driver = (machine.windows_driver, machine.driver)
        if driver not in classes:
            classes[driver] = _class_of(machine.driver, limits[machine.windows_driver])
        gpus = tuple(gpu for gpu, _ in machine.gpus)
        found.setdefault((*driver[:1], classes[driver], gpus, machine.glibc), []).append(machine)
    return tuple(
        same[0]._replace(hosts=tuple(host for machine in same for host in machine.hosts)) for same in found.values()
    )


def driver_limits(cuda: CudaTable, lives: Iterable[Architecture], *, windows: bool) -> list[DriverVersion]:
    """Every driver version that some rule compares with, for GPUs of ``lives``, oldest first."""
    named = {toolkit.floor(windows=windows) for toolkit in cuda.toolkits}
    named |= {full for toolkit in cuda.toolkits if (full := toolkit.full(windows=windows)) is not None}
    first = {branch.branch: branch.first(windows=windows) for branch in cuda.branches}
    for life in lives:
        ends = [] if life.last_branch is None else [cuda.after(life.last_branch)]
        begins = [] if life.first_branch is None else [life.first_branch]
        named |= {first[number] for number in begins if number in first}
        named |= {DriverVersion((number,), str(number)) for number in (*begins, *ends)}
    return sorted(named, key=lambda driver: driver.parts)


def _class_of(driver: DriverVersion | None, limits: Sequence[DriverVersion]) -> tuple[bool, ...]:
    return () if driver is None else tuple(map(driver.meets, limits))


def smallest_split(request: Request, problem: Problem, solver: Solver) -> list[Group]:
    """Return the fewest groups of machines of ``problem`` such that each has a stack; empty if some machine has none.

    The groups are disjoint. The group with the newest stack comes first.
    """
    served = _served_sets(request, problem, solver)
    every = (1 << len(problem.machines)) - 1
    sizes = range(1, len(problem.machines) + 1) if _union(served) == every else ()
    cover = next((found for size in sizes if (found := _cover(every, size, served)) is not None), [])
    return list(_groups(cover, request, problem, solver))


def _cover(left: int, size: int, served: Sequence[int]) -> list[int] | None:
    """At most ``size`` sets that together contain every bit of ``left``, or None if that takes more."""
    if not left:
        return []
    if not size:
        return None
    lowest = left & -left
    for one in sorted((it for it in served if it & lowest), key=lambda it: -(it & left).bit_count()):
        rest = _cover(left & ~one, size - 1, served)
        if rest is not None:
            return [one, *rest]
    return None


def _union(sets: Iterable[int]) -> int:
    return reduce(or_, sets, 0)


def _groups(cover: Sequence[int], request: Request, problem: Problem, solver: Solver) -> Iterator[Group]:
    """The groups of a cover. A machine that several stacks serve gets the newest of them."""
    stacks = [(served, _solved(served, request, problem, solver)) for served in cover]
    stacks.sort(key=lambda stack: [choice.release.version for choice in stack[1].choices], reverse=True)
    left = (1 << len(problem.machines)) - 1
    for served, solution in stacks:
        own = served & left
        left &= ~served
        yield Group(_numbers(own), solution if own == served else _solved(own, request, problem, solver))


def _solved(served: int, request: Request, problem: Problem, solver: Solver) -> Solution:
    solution = solver.solve(request, _with_machines(problem, _numbers(served)))
    assert solution is not None, "a set of machines that a stack serves has one"
    return solution


def _numbers(served: int) -> tuple[int, ...]:
    return tuple(number for number in range(served.bit_length()) if served & 1 << number)


def _with_machines(problem: Problem, numbers: Iterable[int]) -> Problem:
    return problem._replace(machines=tuple(problem.machines[number] for number in numbers))


def _served_sets(request: Request, problem: Problem, solver: Solver) -> list[int]:
    """The largest sets of machines that some stack serves, one bit for each machine, larger sets first."""
    alone = [_with_machines(problem, [number]) for number in range(len(problem.machines))]
    found: set[int] = set()
    for number, provider in enumerate(solver.providers(request, problem._replace(machines=()))):
        by_machine = [solver.providers(request, one)[number] for one in alone]
        found |= set(_served_from(provider, by_machine))
    largest = [one for one in found if not any(one != other and one & other == one for other in found)]
    return sorted(largest, key=lambda served: (-served.bit_count(), served))


def _served_from(free: Provider, by_machine: Sequence[Provider]) -> Iterator[int]:
    """The machines that the stacks of one group of sources serve. ``free`` has no machine and so excludes nothing."""
    states = {((-1,) * len(SHARED), (1 << len(by_machine)) - 1)}
    for requested in free.problem.frameworks:
        identifier = framework_identifier(requested.framework)
        ways = _ways(free, by_machine, identifier)
        joined = (
            (tuple(one & other for one, other in zip(admits, more, strict=True)), served & also)
            for admits, served in states
            for more, also in ways
        )
        states = {(admits, served) for admits, served in joined if all(admits) and served}
    toolkits, cudnns = (_serving(free, by_machine, thing) for thing in (CUDA, CUDNN))
    cuda_place, cudnn_place = SHARED.index(CUDA), SHARED.index(CUDNN)
    for admits, served in states:
        for with_toolkit in _narrowed(served, admits[cuda_place], toolkits):
            yield from _narrowed(with_toolkit, admits[cudnn_place], cudnns)


def _ways(free: Provider, by_machine: Sequence[Provider], identifier: str) -> set[tuple[tuple[int, ...], int]]:
    """For the builds of a framework: what they admit of the shared things, and the machines they run on."""
    running: dict[int, int] = {}
    for number, provider in enumerate(by_machine):
        for candidate in provider.running(identifier) if provider.roots_hold() else ():
            running[id(candidate.thing)] = running.get(id(candidate.thing), 0) | 1 << number
    return {
        (sharing.admits, running[id(sharing.release)])
        for sharing in every_sharing(free, identifier)
        if id(sharing.release) in running
    }


def _serving(free: Provider, by_machine: Sequence[Provider], thing: str) -> list[int]:
    """The machines that each toolkit, or each cuDNN release, runs on."""
    running: dict[int, int] = {}
    for number, provider in enumerate(by_machine):
        for candidate in provider.running(thing):
            running[id(candidate.thing)] = running.get(id(candidate.thing), 0) | 1 << number
    return [running.get(id(candidate.thing), 0) for candidate in free.offered(thing)]


def _narrowed(served: int, admitted: int, serving: Sequence[int]) -> set[int]:
    """What is left of ``served`` with each admitted thing, or all of it if nothing of the kind is needed."""
    if admitted == -1:
        return {served}
    distinct = {machines for number, machines in enumerate(serving) if admitted & 1 << number}
    return {served & machines for machines in distinct} - {0}
