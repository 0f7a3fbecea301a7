"""The environment.yml or pixi.toml of a request: of its stack or, for a dependent framework, of its lock.

Such a file pins only frameworks. Each release of a dependent framework, such as vLLM, requires one release of its
framework. So if a file pinned the newest framework, the installer would find no vLLM, or a very old one. For these
requests envsolve makes a lock, and the file gets the stack of the lock and its version of that package.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from envsolve.app.any_lock.lock_kind import CONDA_FORMAT, PYTHON_FORMAT
from envsolve.app.any_lock.request_lock import make_lock
from envsolve.app.lock.lock_request import LockRequest
from envsolve.app.request.channel_order import solver_of
from envsolve.app.request.targets import Target
from envsolve.app.solve.solving import ExistingVersions, Solved, solve_as_locked, solve_request, stacks_of
from envsolve.frameworks import DEPENDENT_FRAMEWORKS
from envsolve.matrix.load import Matrix
from envsolve.model.fact import Fact
from envsolve.model.solution import Solution

if TYPE_CHECKING:
    from envsolve.lockfile.lock import Lock
    from envsolve.model.note import Note

_ABOUT_VERSIONS = ("held-back", "older-cuda", "newer-needs-glibc", "build-passed-over", "not-newest-stack")
"""The notes of a lock on versions that the file has too."""


def environment_file(
    lock_request: LockRequest, matrix: Matrix, environ: Mapping[str, str], existing: ExistingVersions | None = None
) -> Solved:
    """The file for each platform of the request. Only a request for a dependent framework uses the network.

    Raises the same errors as :func:`envsolve.app.solve.solving.solve_request`; for a dependent framework
    UnsolvableError if no stack fits it, and OutsideError if an index or a channel does not respond.
    """
    request = lock_request.request
    locked = stacks_with_locks(lock_request, matrix, environ, existing)
    if locked is None:
        return solve_request(request, matrix, environ, existing, recorded=lock_request.recorded)
    return solve_as_locked(request, locked.found, locked.about_versions, matrix, recorded=lock_request.recorded)


class LockedStacks(NamedTuple):
    """The stack of each target with its lock, and the notes of the locks on versions that the file has too."""

    found: tuple[tuple[Target, Solution, Lock], ...]
    about_versions: tuple[Note, ...]


def stacks_with_locks(
    lock_request: LockRequest, matrix: Matrix, environ: Mapping[str, str], existing: ExistingVersions | None = None
) -> LockedStacks | None:
    """The stacks of a request for a dependent framework, and the locks that they are from; None for other requests.

    Raises as :func:`environment_file`.
    """
    request = lock_request.request
    if not request.packages.are_named:
        return None
    from envsolve.app.solve.unpinned import needs_lock

    targets, (first, *_), _ = stacks_of(request, matrix, environ, solver_of(request, matrix), existing)
    if not needs_lock(targets):
        return None
    of_wheels = all(it.release.source.is_wheel for it in first.choices)
    sources = tuple(it for it in request.sources if it.is_wheel) if of_wheels else request.sources
    of_lock = request._replace(format=PYTHON_FORMAT if of_wheels else CONDA_FORMAT, sources=sources)
    locked = make_lock(lock_request._replace(request=of_lock), matrix, environ)
    solutions = {it.problem.platform: it for it in locked.solutions}
    locks = {it.platform: it for it in locked.locks}
    stacks = [_as_locked(it, solutions[it.problem.platform]) for it in targets]
    found = tuple((target, solution, locks[target.problem.platform]) for target, solution in stacks)
    pinned = {it.release.package for _, solution in stacks for it in solution.choices} | DEPENDENT_FRAMEWORKS.keys()
    about = (it for it in locked.notes if it.code in _ABOUT_VERSIONS and it.fields.get("name") in (None, *pinned))
    return LockedStacks(found, tuple(about))


def _as_locked(target: Target, solution: Solution) -> tuple[Target, Solution]:
    """``target`` as the lock has it, and the stack of the lock for that target.

    Without a GPU here, a lock for packages that need one is for any GPU. Its packages decide its Python.
    """
    problem = solution.problem._replace(python=target.problem.python)
    solution = solution._replace(request=target.request, problem=problem)
    if problem.python is None:
        text = f"Python {solution.python} is the one of the lock with these packages"
        fact = Fact(text, "the lock of this request")
        solution = solution._replace(because=(*solution.because[:-1], fact))
    if target.fell_to_cpu and not problem.cpu:
        target = target._replace(notes=(), fell_to_cpu=False)
    return target._replace(problem=problem), solution
