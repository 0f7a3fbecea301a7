"""Why there is no stack, and what to type instead. Imported only in that case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from envsolve.app.request.command import command_of, way_out
from envsolve.errors import Hint, HostGroup, UnsolvableError
from envsolve.fleet.cloud import machine_of
from envsolve.model.prose import sentence_list
from envsolve.model.request import Request
from envsolve.model.solution import Machine, Problem
from envsolve.resolve.conflict import Constraint, Kind
from envsolve.resolve.explain import explain
from envsolve.resolve.fleet import Group, smallest_split
from envsolve.resolve.reasons import Conflict
from envsolve.resolve.relax import WayOut, ways_out
from envsolve.resolve.solver import Solver

OTHER_VERSIONS = ("other-version", "any-release")
"""The kinds of hints that suggest another version of a framework than the request has."""
_MOST_WAYS_OUT = 4
_MOST_NAMED = 3
_OF_MACHINES = (Kind.DRIVER, Kind.GPU, Kind.GLIBC)


def refusal(request: Request, problem: Problem, solver: Solver) -> UnsolvableError:
    """Why ``solver`` has no stack for ``problem``, as an error."""
    error = _refusal(request, problem, solver)
    if problem.cpu and problem.platform.has_cuda and not request.hosts and request.gpus in ((), ("auto",)):
        error.cause = (*error.cause, "no NVIDIA GPU was found: the request is for the CPU")
        error.hints = (Hint(f"to solve for a GPU, name it with {request.requester.name_of('gpus')}"), *error.hints)
    return error


def _refusal(request: Request, problem: Problem, solver: Solver) -> UnsolvableError:
    hopeless = _hopeless_machine(request, problem, solver)
    if hopeless is not None:  # no other machine is involved, and groups would not help
        return _refusal_of_one(hopeless, request, problem, solver)
    conflict = explain(request, problem, solver)
    if len(_machines_in(conflict.minimal)) > 1:
        return _several_stacks(request, problem, conflict, solver)
    error = _error(conflict.code, conflict.message, conflict)
    ways = ways_out(request, problem, conflict.minimal, solver)[:_MOST_WAYS_OUT]
    error.hints = tuple(_hint(way, request, solver) for way in ways)
    return error


def _refusal_of_one(number: int, request: Request, problem: Problem, solver: Solver) -> UnsolvableError:
    """Why one of several machines has no stack. Hints apply to all machines, or say that they are for one."""
    machine = problem.machines[number]
    by_itself = problem._replace(machines=(machine,))
    conflict = explain(request, by_itself, solver)
    error = _error(conflict.code, conflict.message, conflict)
    minimal = [it._replace(number=number) if it.kind in _OF_MACHINES else it for it in conflict.minimal]
    ways = [way for way in ways_out(request, problem, minimal, solver) if not way.request.wants_cpu]
    error.hints = tuple(_hint(way, request, solver) for way in ways[:_MOST_WAYS_OUT])
    if not ways:
        alone = ways_out(_request_for(request, [machine]), by_itself, conflict.minimal, solver)[:_MOST_WAYS_OUT]
        hints = (_hint(way, request, solver) for way in alone)
        error.hints = tuple(hint._replace(text=f"for {_name_of(machine)} alone: {hint.text}") for hint in hints)
    return error


def _error(code: str, message: str, conflict: Conflict) -> UnsolvableError:
    causes = tuple(step.requirement for step in conflict.steps)
    error = UnsolvableError(code, message, causes, conflict=conflict.steps)
    error.constraints = conflict.spelled
    if conflict.unknown is not None:
        error.unknown = (conflict.unknown.framework, str(conflict.unknown.specifier))
    return error


def _hopeless_machine(request: Request, problem: Problem, solver: Solver) -> int | None:
    """The index of the first of several machines that has no stack even by itself; None if there is none."""
    if len(problem.machines) == 1:
        return None
    by_itself = (problem._replace(machines=(machine,)) for machine in problem.machines)
    return next((number for number, one in enumerate(by_itself) if not solver.can_solve(request, one)), None)


def _machines_in(minimal: Sequence[Constraint]) -> list[int]:
    return sorted({constraint.number for constraint in minimal if constraint.kind in _OF_MACHINES})


def _hint(way: WayOut, original: Request, solver: Solver) -> Hint:
    """The hint with its command. If another host needs a new driver, its host file must be written again."""
    if way.on and (any(it.name == way.on[0] for it in original.named_hosts) or machine_of(way.on[0]) is not None):
        return Hint(f"{way.text}; then set it with {original.requester.name_of('driver')}", kind=way.kind)
    if way.on and not Path(way.on[0]).exists():  # FILE:NODE
        return Hint(f"{way.text}; then list the nodes again", kind=way.kind)
    if way.on:
        command = f"envsolve detect --json > {way.on[0]}"
        return Hint(f"{way.text}; then write its host file again", command, way.kind)
    return way_out(way.text, _on_each_platform(way, solver), original, way.kind)


def _on_each_platform(way: WayOut, solver: Solver) -> Request:
    """The request of a way out for all its platforms if each has an answer, else for the one that was solved."""
    request, solved = way.request, way.solution.problem
    problem = solved._replace(frameworks=request.frameworks, python=request.python, cuda=request.cuda)
    for platform in request.platforms:
        machines = tuple(it._replace(windows_driver=platform.is_windows) for it in problem.machines)
        if not solver.can_solve(request, problem._replace(platform=platform, machines=machines)):
            return request._replace(platforms=(problem.platform,))
    return request


def _several_stacks(request: Request, problem: Problem, conflict: Conflict, solver: Solver) -> UnsolvableError:
    """Each machine has a stack, but not all the same one: the smallest number of stacks, and the reason."""
    groups = smallest_split(request, problem, solver)
    machines = [problem.machines[number] for number in _machines_in(conflict.minimal)]
    what = "hosts" if request.hosts else "GPUs"
    message = f"no stack runs on all {what}: {sentence_list(map(_name_of, machines))} have none in common"
    error = _error("hosts-need-several-stacks", message, conflict)
    error.groups = tuple(_host_group(request, problem, group) for group in groups)
    forcing = _forcing(request, problem, conflict.minimal, solver)
    error.forced_by = tuple(map(_name_of, forcing))
    hints = list(_group_hints(request, problem, groups))
    if forcing:
        without = ", or without ".join(map(_name_of, forcing))
        hints.append(Hint(f"without {without}, one stack runs on all the others"))
    error.hints = tuple(hints)
    return error


def _forcing(request: Request, problem: Problem, minimal: Sequence[Constraint], solver: Solver) -> list[Machine]:
    """The machines in the conflict without any one of which the others have a common stack."""
    if len(problem.machines) <= 2:  # noqa: PLR2004  # of two, each forces the other
        return []
    machines = problem.machines
    return [
        machines[number]
        for number in _machines_in(minimal)
        if solver.can_solve(request, problem._replace(machines=(*machines[:number], *machines[number + 1 :])))
    ]


def _host_group(request: Request, problem: Problem, group: Group) -> HostGroup:
    machines = [problem.machines[number] for number in group.numbers]
    hosts = [name for machine in machines for name in machine.hosts or (_name_of(machine),)]
    labels = tuple(choice.release.label for choice in group.solution.choices)
    return HostGroup(tuple(hosts), labels, command_of(_request_for(request, machines)))


def _group_hints(request: Request, problem: Problem, groups: Sequence[Group]) -> Iterator[Hint]:
    for group in groups:
        machines = [problem.machines[number] for number in group.numbers]
        labels = " with ".join(choice.release.label for choice in group.solution.choices)
        yield way_out(f"for {_listed(machines)}: {labels}", _request_for(request, machines), request, "fewer-machines")


def _request_for(request: Request, machines: Sequence[Machine]) -> Request:
    """The request for some of its machines. One host of each profile gives the same answer as all of them."""
    if request.hosts:
        return request._replace(hosts=tuple(machine.hosts[0] for machine in machines))
    return request._replace(gpus=tuple(name or str(gpu) for machine in machines for gpu, name in machine.gpus))


def _listed(machines: Sequence[Machine]) -> str:
    named = [_name_of(machine) for machine in machines[:_MOST_NAMED]]
    left = sum(max(len(machine.hosts), 1) for machine in machines[_MOST_NAMED:])
    more = [f"{left} more host{'s' if left > 1 else ''}"] if left else []
    return ", ".join((*named, *more))


def _name_of(machine: Machine) -> str:
    """The host files, or the GPUs if these were given instead."""
    return machine.name if machine.hosts else sentence_list(machine.gpu_label(gpu) for gpu, _ in machine.gpus)
