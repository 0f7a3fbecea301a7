"""Why a target has no Python lock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from packaging.specifiers import SpecifierSet

from envsolve.app.lock.answer_refusal import unbuilt_refusal
from envsolve.app.lock.lock_notes import Resolved
from envsolve.app.lock.lock_refusal import PACKAGES_CONFLICT, fitting_hints, packages_refusal, rank_of
from envsolve.app.lock.lock_worlds import Worlds
from envsolve.app.lock.stack_refusal import stack_refusal
from envsolve.app.lock.target_search import TargetSearch
from envsolve.app.packages.lock_frameworks import with_versions
from envsolve.app.packages.lock_stacks import for_python
from envsolve.app.packages.stack_wheels import is_lockable
from envsolve.app.request.refusal import refusal
from envsolve.errors import EnvsolveError
from envsolve.frameworks import FRAMEWORK_OF_WHEEL
from envsolve.model.solution import Problem
from envsolve.resolve.closure.resolve import Conflict, failure_behind


def explained(search: TargetSearch, problem: Problem, worlds: Worlds) -> Resolved:
    """Raise UnsolvableError with the most informative reason why ``worlds`` have no answer to ``problem``.

    Returns the answer if there turns out to be one. Raises OutsideError if a build failed or a necessary file is
    missing.
    """
    conflicts = _require_builds(search, problem) if worlds.have_to_build else worlds.conflicts
    problems = {it: for_python(problem, it) if worlds.pythons else problem for it in conflicts}
    final = {python: it for python, it in conflicts.items() if worlds.is_final(it)}
    refused: list[tuple[tuple[bool, ...], EnvsolveError, Conflict]] = []
    for python, conflict in final.items():
        attempt = search.best_stack(problems[python])
        solution = None if attempt is None else attempt.solution
        facts = tuple(_without_stack(conflict, search, problem))
        why = packages_refusal(conflict, search.request, solution, facts)
        refused.append((rank_of(conflict, why), failure_behind(conflict) or why, conflict))
    for python in (it for it in conflicts if it not in final):
        while (attempt := search.best_stack(problems[python])) is not None:
            if refused and not all(map(is_lockable, attempt.releases)):
                break  # that a lock cannot have this stack is no reason after others
            try:
                newest = worlds.newest_beside({it.framework: it for it in attempt.releases}, attempt.problem)
                found = search.packages_around(attempt, search.limits(attempt, in_part=True), newest=newest)
                return Resolved(attempt, search.best_stack(problem) or attempt, found, {})
            except Conflict as conflict:
                facts = tuple(_without_stack(conflict, search, problem))
                why = packages_refusal(conflict, search.request, attempt.solution, facts)
                refused.append((rank_of(conflict, why), why, conflict))
                absent = search.absent(attempt.releases, conflict)
                if not absent:
                    break
                search.leave_out(absent)
    if not refused:  # no Python has a stack for the versions that markers require on it
        limited = with_versions(next(iter(problems.values()), problem), search.wanted)
        raise stack_refusal(search.request, limited, search.solver, search.wanted, typed=search.lock_request.request)
    _, error, behind = min(refused, key=lambda it: it[0])
    if error.code == PACKAGES_CONFLICT:
        error.hints = (*fitting_hints(behind, search.lock_request.request), *error.hints)
    raise error


def _without_stack(conflict: Conflict, search: TargetSearch, problem: Problem) -> Iterator[str]:
    """Why the versions of a framework that a package requires have no stack for the machine."""
    frameworks = {it.framework: it for it in problem.frameworks}
    for requirement, parent in conflict.causes:
        requested = frameworks.get(FRAMEWORK_OF_WHEEL.get(requirement.name, ""))
        if requested is None or parent is None or parent.name in conflict.provider.world.virtual:
            continue
        needed = requested._replace(specifier=requested.specifier & SpecifierSet(requirement.specifier))
        others = tuple(it for it in problem.frameworks if it is not requested)
        limited = problem._replace(frameworks=(*others, needed))
        if not needed.specifier.is_unsatisfiable() and search.best_stack(limited) is None:
            yield refusal(search.request._replace(frameworks=limited.frameworks), limited, search.solver).message


def _require_builds(search: TargetSearch, problem: Problem) -> Mapping[str, Conflict]:
    """Raise UnsolvableError with all packages that must be built; return the conflicts if builds do not help."""
    worlds = search.worlds(problem, in_part=True, as_if_built=True)
    try:
        chosen = search.best_in(worlds)
        if chosen is not None and chosen.unbuilt:
            raise unbuilt_refusal(chosen.unbuilt, chosen.interpreter, search.lock_request.request, search.wanted)
    finally:
        worlds.close()
    return worlds.conflicts
