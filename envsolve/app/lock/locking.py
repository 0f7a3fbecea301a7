"""Python locks from package indexes, one for each platform. Locks that are still current stay unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf

from envsolve.app.lock.current_lock import current_lock
from envsolve.app.lock.existing_locks import LockFor, stays, versions_in_python_lock
from envsolve.app.lock.lock_refusal import NEWER_GLIBC, PACKAGES_CONFLICT
from envsolve.app.lock.lock_request import LockRequest
from envsolve.app.lock.lock_result import Locked
from envsolve.app.lock.target_lock import TargetLock
from envsolve.app.packages.audit import read_before, with_read
from envsolve.app.packages.compiling import HOW_TO_COMPILE, cpu_by_default, how_to_compile
from envsolve.app.packages.direct_packages import with_direct
from envsolve.app.packages.lock_evidence import Origin
from envsolve.app.packages.lock_frameworks import holding_on, require_wheels, with_frameworks
from envsolve.app.packages.lock_indexes import Start, is_of_pytorch, places, settings_of, start
from envsolve.app.packages.requirements import Requirements, as_in_lock, read_requirements
from envsolve.app.packages.wheel_ways import Tried, are_published, stack_text, ways_to_wheels
from envsolve.app.request.command import way_out
from envsolve.app.request.targets import Target, targets_of
from envsolve.app.solve.solving import Solved, request_without_secrets
from envsolve.app.status.lock_satisfies import differences
from envsolve.errors import EnvsolveError, Hint, OutsideError, UnsolvableError
from envsolve.index.store import store_at
from envsolve.lockfile.formats import require_linux_for_image, write_python_lock
from envsolve.lockfile.lock import Made
from envsolve.matrix.load import Matrix
from envsolve.model.need import parse_need
from envsolve.model.note import Note
from envsolve.model.prose import sentence_list
from envsolve.model.release import Source
from envsolve.model.request import Audit, Request
from envsolve.resolve.solver import Solver

WHEELS_ELSEWHERE = "extension-wheels-elsewhere"
"""The code of the note on a change of the request that gives a wheel instead of source; ``way`` has the change."""


def lock(lock_request: LockRequest, matrix: Matrix, environ: Mapping[str, str]) -> Solved:
    """The Python lock for each platform of the request, in its format.

    Raises UsageError; UnsolvableError if no stack or no set of packages fits; OutsideError if an index fails.
    """
    request, hidden = request_without_secrets(lock_request.request)
    with start(lock_request.request, lock_request.network, environ) as began:
        try:
            locks = [it.made() for it in _locks_of(lock_request, began, matrix, environ)]
            ways = tuple(_notes_on_source(locks, lock_request, began, matrix, environ))
        except UnsolvableError as error:
            if not any(it.kind == NEWER_GLIBC for it in error.hints):
                names = _requested(began) if error.code == PACKAGES_CONFLICT else {it.name for it in error.refused}
                first = tuple(_ways(names, lock_request, began, matrix, environ))
                there = {it.command for it in first}
                error.hints = (*first, *(it for it in error.hints if it.command is None or it.command not in there))
            raise
        except OutsideError as error:
            error.hints = (*_without_pytorch_index(error, lock_request, began, matrix, environ), *error.hints)
            raise
    return _solved(request, locks, (*ways, *began.wanted.notes, *began.where.notes, *began.connection.notes, *hidden))


def _locks_of(
    lock_request: LockRequest, began: Start, matrix: Matrix, environ: Mapping[str, str], end: float = inf
) -> list[TargetLock]:
    """The locks to make before ``end``, one for each platform. Raises UsageError, OutsideError."""
    request, _ = request_without_secrets(lock_request.request)
    wanted, where, connection = began
    require_wheels(request)
    targets = [with_frameworks(target, wanted, where) for target in targets_of(request, matrix, environ)]
    require_linux_for_image([it.problem.platform for it in targets], request.format)
    holds = holding_on(it.problem for it in targets)
    wanted = with_direct(wanted, connection, request.format, holds, _commits(lock_request, targets))
    return [TargetLock(lock_request, matrix, target, wanted, where, connection, end) for target in targets]


def _without_pytorch_index(
    error: OutsideError, lock_request: LockRequest, began: Start, matrix: Matrix, environ: Mapping[str, str]
) -> Iterator[Hint]:
    """Suggest the package index alone if PyTorch's index failed and the other has builds for the request."""
    request = lock_request.request
    if request.sources or not is_of_pytorch(error, request):
        return
    instead, solver = request._replace(sources=(Source.PYPI,)), Solver(matrix)
    targets = (with_frameworks(it, began.wanted, began.where) for it in targets_of(instead, matrix, environ))
    if all(solver.can_solve(it.request, it.problem) for it in targets):
        yield way_out("the package index alone has builds for this request", instead, request)


def _requested(began: Start) -> set[str]:
    """The names of the requested packages, without those given by address."""
    return {need.name for need, _ in began.wanted.needs if not need.url}


def _ways(
    names: Iterable[str], lock_request: LockRequest, began: Start, matrix: Matrix, environ: Mapping[str, str]
) -> Iterator[Hint]:
    """Changes of the request with which those of ``names`` get wheels that are published outside of the indexes."""

    def attempt(request: Request, wanted: Requirements, end: float) -> list[Tried] | None:
        changed_request, changed_start = lock_request._replace(request=request), began._replace(wanted=wanted)
        try:
            return [it.tried() for it in _locks_of(changed_request, changed_start, matrix, environ, end)]
        except EnvsolveError:
            return None  # a hint must not end in an error of its own

    published = are_published(names)
    if published and not lock_request.request.packages.allow_builds:
        yield from ways_to_wheels(published, lock_request.request, began.wanted, attempt)


def _notes_on_source(
    locks: Sequence[Locked], lock_request: LockRequest, began: Start, matrix: Matrix, environ: Mapping[str, str]
) -> Iterator[Note]:
    """Which stack has wheels for packages that are locked as source, and how to compile those."""
    source = {
        pin.name: (pin, it.solution)
        for it in locks
        if it.solution is not None
        for pin in it.lock.pins
        if not pin.files[0].is_wheel
    }
    names = are_published(_requested(began) & source.keys())
    what = sentence_list(f"{it} {source[it][0].version}" for it in names)
    for hint in _ways(names, lock_request, began, matrix, environ):
        text = f"no wheel of {what} was found for {stack_text(source[names[0]][1])}; {hint.text}"
        yield Note(WHEELS_ELSEWHERE, text, hint.command).about(names=" ".join(names), way=hint.text)
    for pin, solution in source.values():
        of_cpu = cpu_by_default(pin.name, pin.version, solution)
        if of_cpu is not None:
            yield of_cpu
        for step in how_to_compile(pin.name, pin.version, solution):
            yield Note(HOW_TO_COMPILE, step.text, step.command).about(name=pin.name, version=pin.version)


def current_locks(
    lock_request: LockRequest, there: LockFor, matrix: Matrix, environ: Mapping[str, str]
) -> Solved | None:
    """The existing locks as :func:`lock` would write them if it chose the same packages.

    Queries no index: only the stack is solved, and the packages are those of the locks. None if a lock is missing,
    comes from another tool, leaves versions open, was edited, does not meet the request, or has packages that do not
    fit today's stack.
    """
    request, hidden = request_without_secrets(lock_request.request)
    recorded, _ = request_without_secrets(lock_request.recorded or request)
    wanted = read_requirements(lock_request.request.packages)
    where = places(lock_request.request, wanted, settings_of(environ))
    require_wheels(request)
    targets = targets_of(request, matrix, environ)
    require_linux_for_image([it.problem.platform for it in targets], request.format)
    network = lock_request.network
    is_audited = request.packages.audit is not Audit.OFF and not network.no_cache
    shelf = store_at(network.cache_directory, environ) if is_audited else None
    locks: list[Locked] = []
    for target in targets:
        old = there(target.problem.platform)
        if old is None or old.open or old.made is None or None in (old.made.packages_digest, old.made.request):
            return None
        if not all(it.is_met for it in differences(old, recorded, target)) or _reads_more(old.made, request):
            return None
        now = as_in_lock(wanted, old.addresses)
        platform = target.problem.platform
        known = matrix if shelf is None else with_read(matrix, read_before(matrix, old.pins, shelf), platform)
        again = current_lock(old, lock_request, known, with_frameworks(target, now, where), now, where)
        if again is None:
            return None
        locks.append(again)
    return _solved(request, locks, (*wanted.notes, *where.notes, *hidden))


def _reads_more(made: Made, request: Request) -> bool:
    """Whether the request reads wheels that were not read for the lock."""
    recorded, audit = made.option("audit") or (Audit.AUTO.value,), request.packages.audit
    return audit is not Audit.OFF and recorded != (audit.value,) and Origin.UNREAD in dict(made.evidence)


def _commits(lock_request: LockRequest, targets: Iterable[Target]) -> dict[str, str]:
    """The commits in the existing locks that stay, by the requested address."""
    there = (lock_request.there(target.problem.platform) for target in targets)
    found = (it for lock in there for it in versions_in_python_lock(lock)[1].commits)
    needs = ((parse_need(text), url) for text, url in found)
    return {need.url: url for need, url in needs if stays(lock_request.request.packages, need.name)}


def _solved(request: Request, locks: Sequence[Locked], beside: Iterable[Note]) -> Solved:
    texts = tuple((made.platform, write_python_lock(made.lock, request.format, made.solution)) for made in locks)
    notes = (*(note for made in locks for note in made.notes), *beside)
    answers = tuple(made.answer for made in locks if made.answer is not None)
    return Solved(texts, tuple(dict.fromkeys(notes)), answers, tuple(made.lock for made in locks))
