"""Whether an existing Python lock still answers its request, without querying an index."""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.app.lock.existing_locks import versions_in_python_lock
from envsolve.app.lock.lock_request import LockRequest
from envsolve.app.lock.lock_result import Locked, Result
from envsolve.app.lock.lock_worlds import existing_builds
from envsolve.app.packages.lock_evidence import UNREAD_PLACES, on_unread_places, origins_in
from envsolve.app.packages.lock_indexes import Places
from envsolve.app.packages.lock_stacks import Attempt, attempt_of, for_python, joined_among, problem_of, with_joined
from envsolve.app.packages.requirements import Requirements, for_interpreter
from envsolve.app.packages.stack_wheels import bounds_of, facts_beside, needs_of, strangers
from envsolve.app.request.targets import Target
from envsolve.lockfile.formats import write_python_lock
from envsolve.lockfile.lock import Lock
from envsolve.lockfile.reading import lock_for
from envsolve.matrix.load import Matrix
from envsolve.model.package import Pin
from envsolve.model.solution import Solution
from envsolve.resolve.solver import Solver

_SURROUNDINGS = ("python", "glibc", "default_index", "default_is_plain", "indexes")


def current_lock(
    old: Lock, lock_request: LockRequest, matrix: Matrix, target: Target, wanted: Requirements, where: Places
) -> Locked | None:
    """The lock with the packages of ``old``; None if they are no answer for today's machines."""
    request, problem, solver = target.request, problem_of(target, wanted), Solver(matrix)
    _, locked = versions_in_python_lock(old)
    problem = with_joined(problem, wanted, joined_among(old.pins, problem))
    builds = existing_builds(solver, request, problem, locked)
    if len(builds) < len(problem.frameworks) or (builds and locked.python is None):
        return None
    if builds:
        problem = for_python(problem, locked.python or "")
    attempt = attempt_of(builds, request, problem, solver)
    if attempt is None or next(strangers(attempt.solution, old.pins, request.packages), None) is not None:
        return None
    evidence = () if old.made is None else old.made.evidence
    unread = tuple(it for it in evidence if it[0] == UNREAD_PLACES)
    found = Result(lock_request.request, lock_request.recorded, matrix, target, wanted, where).finished(
        attempt,
        tuple(_with_requirers(old, attempt, wanted)),
        on_unread_places(unread),
        read=origins_in(evidence),
        unread=unread,
    )
    indexes = (None, "", found.lock.default_index, *found.lock.indexes)
    if not all(pin.index_url in indexes for pin in old.pins):
        return None
    format_name = lock_request.request.format
    now = lock_for(format_name, write_python_lock(found.lock, format_name, found.solution), problem.platform)
    if now is None or any(getattr(now, it) != getattr(old, it) for it in _SURROUNDINGS):
        return None
    return found if attempt.solution is None or _lies_within_bounds(old, attempt.solution, matrix) else None


def _with_requirers(old: Lock, attempt: Attempt, wanted: Requirements) -> Iterator[Pin]:
    """The pins of ``old`` with the packages that require them in this request."""
    stack = () if attempt.solution is None else needs_of(attempt.solution)
    by_name: dict[str, set[str]] = {}
    for need, origin in (*stack, *for_interpreter(wanted, attempt.interpreter).needs):
        by_name.setdefault(need.name, set()).add(origin)
    names = {pin.name for pin in old.pins}
    for pin in old.pins:
        requirers = {it for it in pin.via if it.partition("[")[0] in names}
        yield pin._replace(via=tuple(sorted(requirers | by_name.get(pin.name, set()))))


def _lies_within_bounds(old: Lock, solution: Solution, matrix: Matrix) -> bool:
    """Whether all packages of ``old`` lie within the bounds that the stack sets on them."""
    bounds = bounds_of(solution, matrix, in_part=True)
    versions = {pin.name: pin.version for pin in old.pins}
    frameworks = {it.release.framework for it in solution.choices}
    known = (facts_beside(*it, frameworks, solution.problem.platform, matrix) for it in versions.items())
    return not any(any(facts.unmet(versions)) for of_package in known for facts in of_package) and all(
        limit.admits(pin.version) for pin in old.pins for limit in bounds.of(pin.name)
    )
