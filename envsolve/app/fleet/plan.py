"""The smallest number of environments for a fleet, and the benefit of newer drivers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from envsolve.app.request.channel_order import in_order, solver_of
from envsolve.app.request.command import command_of
from envsolve.app.request.refusal import refusal
from envsolve.app.request.targets import Target, targets_of
from envsolve.errors import UnsolvableError
from envsolve.fleet.inventory import nodes_of
from envsolve.fleet.node import Node
from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.request import Request
from envsolve.model.solution import Machine, Problem, Solution
from envsolve.model.versions import DriverVersion
from envsolve.resolve.fleet import Group, profiles, smallest_split
from envsolve.resolve.solver import Solver


class Planned(NamedTuple):
    """Nodes with a common stack, and the command that makes it."""

    platform: Platform
    nodes: tuple[Node, ...]
    solution: Solution
    command: str

    @property
    def labels(self) -> tuple[str, ...]:
        """The builds of its frameworks."""
        return tuple(choice.release.label for choice in self.solution.choices)


class Refused(NamedTuple):
    """Nodes without a stack, and why."""

    platform: Platform
    nodes: tuple[Node, ...]
    error: UnsolvableError


class Upgrade(NamedTuple):
    """The benefit of newer drivers on some ``nodes``: the driver for each of them, and the resulting groups."""

    platform: Platform
    nodes: tuple[tuple[Node, DriverVersion], ...]
    groups: tuple[tuple[tuple[Node, ...], Solution], ...]


class Plan(NamedTuple):
    """The groups of a fleet, the largest first."""

    groups: tuple[Planned, ...]
    refused: tuple[Refused, ...]
    upgrades: tuple[Upgrade, ...]

    @property
    def ok(self) -> bool:
        """Whether there is a stack for each node."""
        return not self.refused


def plan(request: Request, matrix: Matrix, environ: Mapping[str, str]) -> Plan:
    """The smallest number of stacks for the nodes in the ``hosts`` of a request, which are lists of nodes.

    The solver treats nodes that no rule distinguishes as one machine, so the grouping is exact. Raises UsageError if a
    list cannot be read.
    """
    nodes = dict(it for file in request.hosts for it in nodes_of(file))
    solver = solver_of(request, matrix)
    groups: list[Planned] = []
    refused: list[Refused] = []
    upgrades: list[Upgrade] = []
    for target in targets_of(in_order(request), matrix, environ):
        made = _OfPlatform(target, nodes, solver, matrix)
        groups += made.groups
        refused += made.refused
        upgrades += made.upgrade()
    return Plan(tuple(sorted(groups, key=lambda it: -len(it.nodes))), tuple(refused), tuple(upgrades))


class _OfPlatform:
    def __init__(self, target: Target, nodes: Mapping[str, Node], solver: Solver, matrix: Matrix) -> None:
        self._request, self._problem, self._platform = target.request, target.problem, target.problem.platform
        self._nodes, self._solver, self._matrix = nodes, solver, matrix
        hopeless = [it for it in self._problem.machines if not self._can_solve(it)]
        self.refused = [Refused(self._platform, self._named(it.hosts), self._why(it)) for it in hopeless]
        self._machines = tuple(it for it in self._problem.machines if it not in hopeless)
        self._split = self._of(self._machines)
        self.groups = [
            Planned(self._platform, self._of_group(it, self._machines), it.solution, self._command(it))
            for it in self._split
        ]

    def upgrade(self) -> Iterator[Upgrade]:
        """The benefit of newer drivers, if it is newer releases or fewer groups."""
        undriven = (it._replace(driver=None) for it in self._problem.machines)
        free = tuple(filter(self._can_solve, profiles(undriven, self._matrix.cuda)))
        groups = self._of(free)
        if not self._is_better(groups, free):
            return
        behind = [
            (node, needed)
            for group in groups
            for node in self._of_group(group, free)
            if (needed := group.solution.minimum_driver) is not None
            and node.host.driver is not None
            and not node.host.driver.meets(needed)
        ]
        shown = tuple((self._of_group(it, free), it.solution) for it in groups)
        if behind:
            yield Upgrade(self._platform, tuple(behind), shown)

    def _is_better(self, groups: Sequence[Group], free: Sequence[Machine]) -> bool:
        if len(groups) < len(self._split):
            return True
        now = self._releases(self._split, self._machines)
        return any(host not in now or newest > now[host] for host, newest in self._releases(groups, free).items())

    def _releases(self, groups: Iterable[Group], machines: Sequence[Machine]) -> dict[str, list[object]]:
        """The versions of the frameworks for each host."""
        return {
            host: [it.release.version for it in group.solution.choices]
            for group in groups
            for number in group.numbers
            for host in machines[number].hosts
        }

    def _of(self, machines: Sequence[Machine]) -> list[Group]:
        if not machines:
            return []
        problem = self._problem._replace(machines=tuple(machines))
        whole = self._solver.solve(self._request, problem)
        if whole is not None:
            return [Group(tuple(range(len(machines))), whole)]
        return smallest_split(self._request, problem, self._solver)

    def _can_solve(self, machine: Machine) -> bool:
        return self._solver.can_solve(self._request, self._only(machine))

    def _why(self, machine: Machine) -> UnsolvableError:
        request = self._request._replace(hosts=machine.hosts[:1])
        return refusal(request, self._only(machine), self._solver)

    def _only(self, machine: Machine) -> Problem:
        return self._problem._replace(machines=(machine,))

    def _command(self, group: Group) -> str:
        """The command. One node of each kind gives the same answer as all nodes of that kind."""
        return command_of(self._request._replace(hosts=tuple(self._machines[it].hosts[0] for it in group.numbers)))

    def _of_group(self, group: Group, machines: Sequence[Machine]) -> tuple[Node, ...]:
        return self._named(host for number in group.numbers for host in machines[number].hosts)

    def _named(self, hosts: Iterable[str]) -> tuple[Node, ...]:
        return tuple(self._nodes[it] for it in hosts)


def counted(nodes: Iterable[Node]) -> Counter[str]:
    """The number of ``nodes`` in each of their groups; "" counts those without a group."""
    return Counter(group for it in nodes for group in it.groups or ("",))
