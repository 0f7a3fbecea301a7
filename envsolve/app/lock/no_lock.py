"""Why a target has no Python lock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from envsolve.app.lock.answer_refusal import unbuilt_refusal
from envsolve.app.lock.lock_notes import Resolved
from envsolve.app.lock.lock_refusal import MOST_CAUSES, PACKAGES_CONFLICT, fitting_hints, packages_refusal, rank_of
from envsolve.app.lock.lock_worlds import Worlds
from envsolve.app.lock.target_search import TargetSearch
from envsolve.app.packages.lock_stacks import for_python
from envsolve.app.packages.stack_wheels import is_lockable
from envsolve.app.request.refusal import refusal
from envsolve.errors import ConflictStep, EnvsolveError, UnsolvableError
from envsolve.frameworks import FRAMEWORK_OF_WHEEL
from envsolve.model.need import specifier_of
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
        why_not = packages_refusal(conflict, search.request, None if attempt is None else attempt.solution)
        refused.append((rank_of(conflict, why_not), failure_behind(conflict) or why_not, conflict))
    for python in (it for it in conflicts if it not in final):
        while (attempt := search.best_stack(problems[python])) is not None:
            if refused and not all(map(is_lockable, attempt.releases)):
                break  # that a lock cannot have this stack is no reason after others
            try:
                newest = worlds.newest_beside({it.framework: it for it in attempt.releases})
                found = search.packages_around(attempt, search.limits(attempt, in_part=True), newest=newest)
                return Resolved(attempt, search.best_stack(problem) or attempt, found, {})
            except Conflict as conflict:
                why_not = packages_refusal(conflict, search.request, attempt.solution)
                refused.append((rank_of(conflict, why_not), why_not, conflict))
                absent = search.absent(attempt.releases, conflict)
                if not absent:
                    break
                search.leave_out(absent)
    _, error, behind = min(refused, key=lambda it: it[0])
    if isinstance(error, UnsolvableError) and error.code == PACKAGES_CONFLICT:
        error.hints = (*fitting_hints(behind, search.request), *error.hints)
        python = behind.provider.world.wanted.interpreter.minor_version
        why = list(islice(_without_builds(behind, search, problems.get(python, problem)), 1))
        error.cause = (*error.cause[:2], *why, *error.cause[2:])[:MOST_CAUSES]
        error.conflict = (*error.conflict, *(ConflictStep(it, "", "") for it in why))
    raise error


def _without_builds(conflict: Conflict, search: TargetSearch, problem: Problem) -> Iterator[str]:
    """Why no build runs of the versions of frameworks that packages in ``conflict`` require."""
    for requirement, parent in conflict.causes:
        framework = FRAMEWORK_OF_WHEEL.get(requirement.name)
        if parent is None or framework is None or parent.name in conflict.provider.world.virtual:
            continue
        limited = tuple(
            it._replace(specifier=specifier_of(requirement.specifier)) if it.framework == framework else it
            for it in problem.frameworks
        )
        request, narrowed = search.request._replace(frameworks=limited), problem._replace(frameworks=limited)
        if search.solver.solve(request, narrowed) is None:
            yield refusal(request, narrowed, search.solver).message


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
