"""Why a target has no Python lock."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.version import Version

from envsolve.app.lock.answer_refusal import unbuilt_refusal
from envsolve.app.lock.lock_notes import Resolved
from envsolve.app.lock.lock_refusal import PACKAGES_CONFLICT, fitting_hints, packages_refusal, rank_of
from envsolve.app.lock.lock_worlds import Worlds
from envsolve.app.lock.target_search import TargetSearch
from envsolve.app.packages.lock_stacks import for_python
from envsolve.app.packages.stack_wheels import is_lockable
from envsolve.errors import EnvsolveError
from envsolve.model.solution import Problem
from envsolve.resolve.closure.resolve import Conflict, failure_behind


def explained(search: TargetSearch, problem: Problem, worlds: Worlds) -> Resolved:
    """Raise UnsolvableError with the most informative reason why ``worlds`` have no answer to ``problem``.

    Returns the answer if there turns out to be one. Raises OutsideError if a build failed or a necessary file is
    missing.
    """
    conflicts = _require_builds(search, problem) if worlds.have_to_build else worlds.conflicts
    refused: list[tuple[tuple[bool, ...], EnvsolveError, Conflict]] = []
    by_python = {it.provider.world.wanted.interpreter: it for it in conflicts}  # those with source come last
    plain = {interpreter: it for interpreter, it in by_python.items() if not worlds.is_about_builds(it)}
    for interpreter, conflict in plain.items():
        refusal = packages_refusal(conflict, search.request, None, interpreter)
        refused.append((rank_of(conflict, refusal), failure_behind(conflict) or refusal, conflict))
    known = {it.python[:2] for it in plain}
    some: Sequence[Version | None] = worlds.pythons or (None,)
    for python in some:
        if python is not None and python.release[:2] in known:
            continue
        narrowed = problem if python is None else for_python(problem, str(python))
        while (attempt := search.best_stack(narrowed)) is not None:
            if refused and not all(map(is_lockable, attempt.releases)):
                break  # that a lock cannot have this stack is no reason after others
            try:
                newest = worlds.newest_beside({it.framework: it for it in attempt.releases})
                found = search.packages_around(attempt, search.limits(attempt, in_part=True), newest=newest)
                return Resolved(attempt, search.best_stack(problem) or attempt, found, {})
            except Conflict as conflict:
                refusal = packages_refusal(conflict, search.request, attempt.solution, attempt.interpreter)
                refused.append((rank_of(conflict, refusal), refusal, conflict))
                absent = search.absent(attempt.releases, conflict)
                if not absent:
                    break
                search.leave_out(absent)
    _, error, behind = min(refused, key=lambda it: it[0])
    if error.code == PACKAGES_CONFLICT:
        error.hints = (*fitting_hints(behind, search.request), *error.hints)
    raise error


def _require_builds(search: TargetSearch, problem: Problem) -> Sequence[Conflict]:
    """Raise UnsolvableError with all packages that must be built. Returns the conflicts if builds do not help."""
    worlds = search.worlds(problem, in_part=True, as_if_built=True)
    try:
        chosen = search.best_in(worlds)
        if chosen is not None and chosen.unbuilt:
            raise unbuilt_refusal(chosen.unbuilt, chosen.interpreter, search.lock_request.request, search.wanted)
    finally:
        worlds.close()
    return worlds.conflicts
