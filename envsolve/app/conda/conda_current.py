"""Whether existing conda locks already meet a request. No channel or index is queried.

Only the stack is solved again, with a preference for the locked versions. The packages around it were checked when they
were locked, and still fit if neither they nor the request changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from packaging.version import Version

from envsolve.app.conda.conda_part import made, sources_of
from envsolve.app.lock.existing_locks import versions_in
from envsolve.app.packages.conda_requirements import (
    CondaRequirements,
    requirements_on,
    split,
    with_frameworks,
    with_stack,
)
from envsolve.app.request.targets import Target, targets_of
from envsolve.app.request.virtual_packages import virtual_packages
from envsolve.app.solve.solving import notes_of, request_without_secrets
from envsolve.app.status.lock_satisfies import differences, holds
from envsolve.boundary.secrets import without_secrets
from envsolve.conda.session import Listed
from envsolve.lockfile.lock import Lock, RequestedSpec
from envsolve.lockfile.remarks import usage_remarks
from envsolve.lockfile.stack import stack_of
from envsolve.matrix.load import Matrix
from envsolve.model.conda import VirtualPackage
from envsolve.model.host import Platform
from envsolve.model.note import Note
from envsolve.model.request import Policy, Request
from envsolve.model.solution import Solution
from envsolve.resolve.solver import Solver

_OF_DRIVER = "__cuda"
_WITH_REASONS = "environment"
"""A format that records what requires each package, which is not read back."""


class CurrentLocks(NamedTuple):
    """The locks by platform, their stacks, and notes.

    ``is_recorded`` says that the locks record exactly this request; otherwise they must be written again.
    """

    locks: Mapping[Platform, Lock]
    solutions: tuple[Solution, ...]
    notes: tuple[Note, ...]
    is_recorded: bool


def current_conda_locks(
    request: Request,
    recorded: Request,
    there: Callable[[Platform], Lock | None],
    matrix: Matrix,
    environ: Mapping[str, str],
) -> CurrentLocks | None:
    """The locks of ``there`` and their stacks if they meet ``request``; None if that is not certain.

    ``recorded`` is the request that they should record. Raises the same UsageErrors as locking.
    """
    bare, hidden = request_without_secrets(request)
    as_recorded, _ = request_without_secrets(recorded)
    targets, solutions, notes = [], [], list(hidden)
    locks: dict[Platform, Lock] = {}
    specs: dict[Platform, tuple[RequestedSpec, ...]] = {}
    is_recorded = True
    for target in targets_of(bare, matrix, environ):
        platform = target.problem.platform
        lock, requirements = there(platform), requirements_on(request.packages, platform)
        if lock is None or not _is_whole(lock):
            return None
        found = differences(lock, as_recorded, target)
        if not all(it.is_met for it in found):
            return None
        channels = tuple(dict.fromkeys(map(without_secrets, (*bare.channels, *requirements.channels))))
        wanted = with_stack(target, requirements, channels)
        solution = _stack_again(wanted, lock, matrix)
        if solution is None and (lock.stack is not None or wanted.problem.frameworks):
            return None
        now = virtual_packages(target.problem, solution, target.hosts, matrix.cuda, environ)
        if not _is_still_for(lock.virtual_packages, now):
            return None
        is_recorded = is_recorded and not found
        specs[platform] = _specs(lock, requirements, wanted, solution)
        locks[platform] = lock
        targets.append(wanted)
        solutions.append(solution)
        notes += requirements.notes
    if not is_recorded:
        if request.format == _WITH_REASONS or not all(holds(lock, specs[it]) for it, lock in locks.items()):
            return None
        again = zip(locks.items(), targets, solutions, strict=True)
        locks = {
            platform: _made_for(as_recorded, lock, target, solution, matrix)._replace(requested=specs[platform])
            for (platform, lock), target, solution in again
        }
    return CurrentLocks(locks, tuple(filter(None, solutions)), (*notes_of(targets, solutions), *notes), is_recorded)


def _specs(
    lock: Lock, requirements: CondaRequirements, target: Target, solution: Solution | None
) -> tuple[RequestedSpec, ...]:
    """The requirements for conda and pip if the channels have exactly the packages of ``lock``."""
    there = {it.name: (Listed(it.version, it.build, it.depends),) for it in lock.conda}
    found = split(requirements, target.problem, solution, lambda _: there, frozenset())
    return (*found.conda, *found.by_pip)


def _made_for(request: Request, lock: Lock, target: Target, solution: Solution | None, matrix: Matrix) -> Lock:
    """``lock`` as if made for ``request``."""
    targets = () if solution is None else (target,)
    how = made(request, request.packages.exclude_newer, lock, targets, solution, matrix)
    lock = lock._replace(made=how, sources=sources_of(request))
    if solution is None:
        return lock
    return lock._replace(stack=stack_of(solution, target.hosts, lock.versions), remarks=tuple(usage_remarks(solution)))


def _is_whole(lock: Lock) -> bool:
    """Whether it is complete: no open versions, and a record of its packages and its request."""
    made = lock.made
    return made is not None and not lock.open and None not in (made.packages_digest, made.request_digest)


def _stack_again(target: Target, lock: Lock, matrix: Matrix) -> Solution | None:
    """The best stack with a preference for the versions in ``lock``, if it is the locked one; None otherwise."""
    if lock.stack is None:
        return None
    known = {it.framework for it in target.problem.frameworks}
    target = with_frameworks(target, [it.framework for it in lock.stack.frameworks if it.framework not in known])
    request = target.request
    if request.prefer is Policy.NEWEST_FRAMEWORK:
        request = request._replace(prefer=Policy.LOCKED, locked=versions_in(lock))
    solution = Solver(matrix).solve(request, target.problem)
    if solution is None:
        return None
    found = stack_of(solution, target.hosts, lock.versions)
    floor = found.minimum_driver if found.capabilities != lock.stack.capabilities else lock.stack.minimum_driver
    before = lock.stack._replace(machines=found.machines, capabilities=found.capabilities, minimum_driver=floor)
    return solution if found == before else None


def _is_still_for(assumed: tuple[VirtualPackage, ...], now: tuple[VirtualPackage, ...]) -> bool:
    """Whether the machines are those that were assumed. A driver with a newer CUDA is accepted."""
    return dict(_others(assumed)) == dict(_others(now)) and _cuda_in(assumed) <= _cuda_in(now)


def _others(packages: tuple[VirtualPackage, ...]) -> Iterator[tuple[str, VirtualPackage]]:
    for it in packages:
        if it.name != _OF_DRIVER:
            yield it.name, it


def _cuda_in(packages: tuple[VirtualPackage, ...]) -> Version:
    try:
        return next((Version(it.version) for it in packages if it.name == _OF_DRIVER), Version("0"))
    except ValueError:
        return Version("0")
