"""The Python lock for one target: the frameworks for the GPU and all packages around them, as one answer.

Frameworks, Python, CUDA and packages are chosen together (lock_worlds). The bounds that the stack sets on other
packages (envsolve.resolve.closure.bounds) are checked afterwards. A framework that is only a dependency joins the
stack, so that it is never a build for another GPU or for the CPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from time import monotonic

from packaging.version import Version

from envsolve.app.lock.existing_locks import versions_in_python_lock
from envsolve.app.lock.lock_notes import Notes, Resolved, gpu_notes
from envsolve.app.lock.lock_refusal import (
    PACKAGES_CONFLICT,
    fitting_hints,
    packages_refusal,
    rank_of,
    stranger_refusal,
    unbuilt_refusal,
)
from envsolve.app.lock.lock_request import LockRequest
from envsolve.app.lock.lock_result import Locked, Result
from envsolve.app.lock.lock_worlds import Chosen, Worlds, builds_of, existing_builds
from envsolve.app.lock.outdated import refusal_of_search, require_recent
from envsolve.app.lock.stack_refusal import stack_refusal
from envsolve.app.packages.audit import WheelAudit
from envsolve.app.packages.extension_wheels import ExtensionWheels
from envsolve.app.packages.lock_evidence import UNREAD_PLACES, on_unread_places, origins_in
from envsolve.app.packages.lock_frameworks import depends_on_python
from envsolve.app.packages.lock_indexes import Connection, Places
from envsolve.app.packages.lock_stacks import (
    Attempt,
    attempt_of,
    for_python,
    joined_among,
    problem_of,
    stays,
    with_joined,
)
from envsolve.app.packages.requirements import Requirements, for_interpreter
from envsolve.app.packages.stack_in_search import StackInSearch
from envsolve.app.packages.stack_wheels import (
    Limits,
    Rivals,
    bounds_of,
    facts_beside,
    indexes_for,
    is_lockable,
    limits_around,
    needs_of,
    question_around,
    strangers,
)
from envsolve.app.packages.wheel_ways import Tried
from envsolve.app.request.targets import Target
from envsolve.errors import EnvsolveError, UnsolvableError
from envsolve.frameworks import FRAMEWORKS, needs_gpu
from envsolve.index.client import Indexes
from envsolve.index.extended import More
from envsolve.lockfile.formats import write_python_lock
from envsolve.lockfile.lock import Lock
from envsolve.lockfile.reading import lock_for
from envsolve.matrix.load import Matrix
from envsolve.matrix.tables import FrameworkTable
from envsolve.model.need import Need
from envsolve.model.package import Pin
from envsolve.model.release import Release, Source
from envsolve.model.solution import Problem, Solution
from envsolve.resolve.closure.explain import contested
from envsolve.resolve.closure.releases import Sources
from envsolve.resolve.closure.resolve import (
    Conflict,
    Found,
    end_of_search,
    failure_behind,
    finished,
    found_for,
)
from envsolve.resolve.solver import Solver

_SURROUNDINGS = ("python", "glibc", "default_index", "default_is_plain", "indexes")


class _LeftOutError(Exception):
    """A chosen build is not available; search again without it."""


class TargetLock:
    """Finds the lock for one target: the best answer whose builds the indexes have."""

    def __init__(
        self, lock_request: LockRequest, matrix: Matrix, target: Target, wanted: Requirements, where: Places
    ) -> None:
        self._lock_request, self._matrix, self._target = lock_request, matrix, target
        self._where = where
        self._result = Result(lock_request.request, lock_request.recorded, matrix, target, wanted, where)
        self._request = target.request
        self._problem = problem_of(target, wanted)
        self._solver = Solver(matrix)
        self._is_plain = self._has_no_builds()
        self._wanted = wanted._replace(needs=(*self._by_name(), *wanted.needs)) if self._is_plain else wanted
        there = lock_request.there(target.problem.platform)
        pins, locked = versions_in_python_lock(there)
        packages = lock_request.request.packages
        self._old_pins = () if there is None else there.pins
        self._versions = {it.name: it.version for it in pins if stays(packages, it.name)}
        self._locked = locked._replace(packages=tuple(it for it in locked.packages if stays(packages, it[0])))
        self._left_out: frozenset[str] = frozenset()
        """The labels of builds that are not available."""
        self._passed: list[UnsolvableError] = []
        """The reasons for that."""
        self._rivals: Rivals = {}
        self._more: More = {}
        self._extensions: ExtensionWheels | None = None
        self._end = end_of_search(builds=lock_request.request.packages.allow_builds)
        self._limit = inf

    def current(self, old: Lock) -> Locked | None:
        """The lock with the packages of ``old``; None if they are no answer for today's machines."""
        pins = old.pins
        problem = with_joined(self._problem, self._wanted, joined_among(pins, self._problem))
        builds = existing_builds(self._solver, self._request, problem, self._locked)
        if len(builds) < len(problem.frameworks) or (builds and self._locked.python is None):
            return None
        if builds:
            problem = for_python(problem, self._locked.python or "")
        attempt = attempt_of(builds, self._request, problem, self._solver)
        if attempt is None or next(strangers(attempt.solution, pins, self._request.packages), None) is not None:
            return None
        read = origins_in(old.made.evidence) if old.made is not None else {}
        unread = tuple(it for it in old.made.evidence if it[0] == UNREAD_PLACES) if old.made is not None else ()
        beside = on_unread_places(unread)
        required = tuple(self._with_requirers(pins, attempt))
        found = self._result.finished(attempt, required, beside, read=read, unread=unread)
        indexes = (None, "", found.lock.default_index, *found.lock.indexes)
        if not all(pin.index_url in indexes for pin in pins):
            return None
        format_name = self._lock_request.request.format
        now = lock_for(format_name, write_python_lock(found.lock, format_name, found.solution), problem.platform)
        return found if now is not None and self._suits_alike(now, old, attempt.solution) else None

    def _with_requirers(self, pins: Iterable[Pin], attempt: Attempt) -> Iterator[Pin]:
        """``pins`` with the packages that require them in this request."""
        wanted = self._wanted_on(attempt)
        stack = () if attempt.solution is None else needs_of(attempt.solution)
        by_name: dict[str, set[str]] = {}
        for need, origin in (*stack, *wanted.needs):
            by_name.setdefault(need.name, set()).add(origin)
        names = {pin.name for pin in pins}
        for pin in pins:
            requirers = {it for it in pin.via if it.partition("[")[0] in names}
            yield pin._replace(via=tuple(sorted(requirers | by_name.get(pin.name, set()))))

    def _suits_alike(self, now: Lock, old: Lock, solution: Solution | None) -> bool:
        """Whether Python, C library and indexes are the same, and all packages lie within the bounds of the stack."""
        if any(getattr(now, it) != getattr(old, it) for it in _SURROUNDINGS):
            return False
        if solution is None:
            return True
        bounds = bounds_of(solution, self._matrix, in_part=True)
        versions = {pin.name: pin.version for pin in old.pins}
        frameworks = {it.release.framework for it in solution.choices}
        known = (facts_beside(*it, frameworks, solution.problem.platform, self._matrix) for it in versions.items())
        return not any(any(facts.unmet(versions)) for of_package in known for facts in of_package) and all(
            limit.admits(pin.version) for pin in old.pins for limit in bounds.of(pin.name)
        )

    def made(self, connection: Connection) -> Locked:
        """The lock, from the indexes. Raises UnsolvableError, OutsideError."""
        made, extensions, audit = self._resolved(connection)
        notes = Notes(
            made,
            self._lock_request.request,
            self._wanted_on(made.attempt),
            self._solver,
            self._rivals,
            partial(self._refusal_of, connection),
            self._versions,
        )
        of_gpus = gpu_notes(notes.pins, made.attempt.solution, self._request, self._problem.platform, self._matrix)
        beside = (*notes, *extensions.notes(notes.pins), *audit.notes(notes.pins), *of_gpus)
        read, progress = audit.origins(notes.pins), self._lock_request.counted
        pins = tuple(extensions.by_address(tuple(notes.pins), self._old_pins, connection, progress))
        unread = extensions.unread(pins)
        found = self._result.finished(made.attempt, pins, beside, self._passed, read=read, unread=unread)
        return found._replace(lock=found.lock._replace(pins=tuple(extensions.as_published(pins))))

    def tried(self, connection: Connection, end: float) -> Tried:
        """The answer without notes, found before ``end`` on the monotonic clock. Raises as :meth:`made`."""
        self._end = min(self._end, end)
        made, extensions, _ = self._resolved(connection)
        return Tried(made.attempt.solution, made.found.pins, extensions.source_of)

    def _resolved(self, connection: Connection) -> tuple[Resolved, ExtensionWheels, WheelAudit]:
        """The best answer that also holds for the contents of its wheels."""
        joined: list[str] = []
        self._extensions = extensions = self._extension_wheels(connection)
        self._finds_wheels(need for need, _ in self._wanted.needs)
        audit = WheelAudit(self._lock_request.request, lambda: connection.wheels, self._lock_request.counted)
        while True:
            problem = with_joined(self._problem, self._wanted, joined)
            try:
                made = self._best(problem, connection)
            except _LeftOutError:
                continue
            except UnsolvableError as error:
                error.cause = (*error.cause, *extensions.behind_refusal())
                raise
            new = [] if self._is_plain else joined_among(made.found.pins, problem)
            if new:
                joined += new
                continue
            before = monotonic()
            self._matrix, is_suited = audit.learned(made.found.pins, made.attempt.solution, self._matrix)
            self._end += monotonic() - before  # reading wheels may take longer than any search
            if not is_suited:
                continue
            refusal_of = partial(self._refusal_of, connection)
            require_recent(made, self._wanted, self._lock_request.request, self._versions, refusal_of)
            return made, extensions, audit

    def _extension_wheels(self, connection: Connection) -> ExtensionWheels:
        """The search for GPU wheels that are not on an index."""
        problem = self._problem
        builds = {} if problem.cpu or self._is_plain else builds_of(self._solver, self._request, problem)
        stack = StackInSearch(builds, self._request, problem, self._solver, self._matrix)
        indexes = Indexes((*self._where.extra, self._where.default), connection.pool, self._where.mapped)
        return ExtensionWheels(stack, problem, indexes, self._lock_request.request)

    def _finds_wheels(self, needs: Iterable[Need]) -> bool:
        """Whether wheels for ``needs`` were found outside of the indexes. Adds them to the search and to the matrix."""
        assert self._extensions is not None
        packages = self._lock_request.request.packages
        facts = self._extensions.found(needs)
        self._matrix = self._matrix.with_builds(facts)
        self._more = self._extensions.more
        existing = self._extensions.existing_versions(self._old_pins).items()
        self._versions |= {name: version for name, version in existing if stays(packages, name)}
        return bool(facts)

    @property
    def _end_of_search(self) -> float:
        return min(self._end, self._limit)

    def _has_no_builds(self) -> bool:
        """Whether frameworks are packages like any other: no GPU, and a single index without CPU builds."""
        problem = self._problem
        only_gpu = any(needs_gpu(it.framework) for it in problem.frameworks)
        may_be = problem.cpu and self._target.fell_to_cpu and not self._where.is_plain and not only_gpu
        return may_be and bool(problem.frameworks) and self._solver.solve(self._request, problem) is None

    def _by_name(self) -> Iterator[tuple[Need, str]]:
        """The frameworks of the request, as packages."""
        requested = {it.framework for it in self._lock_request.request.frameworks}
        for it in self._problem.frameworks:
            if it.framework in requested:
                package = FRAMEWORKS[it.framework].wheels[0]
                yield Need(package, (), str(it.specifier), ""), str(self._lock_request.request.requester)

    def _best(self, problem: Problem, connection: Connection) -> Resolved:
        """The best answer. Raises _LeftOutError for a build that is not available, UnsolvableError, OutsideError."""
        best = self._best_stack(problem)
        if best is None:
            return self._explained(problem, None, connection)
        for in_part in (False, True):
            worlds = self._worlds(problem, connection, in_part=in_part)
            try:
                chosen = worlds.best(self._versions, self._locked, self._end_of_search, self._lock_request.counted)
                seen = worlds.seen(as_source=chosen is not None)
                is_beyond = self._finds_wheels(Need(name, (), "", "") for name in seen)
                if chosen is not None and not is_beyond:
                    return self._made_of(chosen, worlds, problem, best, connection)
            finally:
                worlds.close()
            if is_beyond:
                return self._best(problem, connection)
            if not worlds.stack.met_what_runs_in_part:
                break
        return self._explained(problem, worlds, connection)

    def _worlds(self, problem: Problem, connection: Connection, *, in_part: bool, as_if_built: bool = False) -> Worlds:
        requested = {it.framework for it in self._problem.frameworks}
        if self._is_plain:
            problem = problem._replace(frameworks=())
        return Worlds(
            self._request,
            problem,
            requested,
            self._wanted,
            self._solver,
            self._matrix,
            self._where,
            connection,
            more=self._more,
            in_part=in_part,
            as_if_built=as_if_built,
        )

    def _made_of(
        self, chosen: Chosen, worlds: Worlds, problem: Problem, best: Attempt, connection: Connection
    ) -> Resolved:
        """The packages of the chosen answer. Raises _LeftOutError if one of its builds is not available."""
        if chosen.builds:
            major, minor, _ = chosen.interpreter.python
            problem = for_python(problem, f"{major}.{minor}")
        attempt = Attempt(self._request, problem, None)
        if not self._is_plain:
            solved = attempt_of(chosen.builds, self._request, problem, self._solver)
            if solved is None:
                raise self._without(it.label for it in list(chosen.builds.values())[1:])
            attempt = solved
        limits = self._limits(attempt, in_part=worlds.in_part)
        floors, newest = worlds.floors_of(chosen), worlds.newest_beside(chosen)
        try:
            if chosen.is_exact(limits, self._request.packages):
                found = finished(
                    chosen.answer.picks,
                    chosen.answer.provider,
                    limits,
                    newest,
                    [it.package for it in attempt.releases],
                )
            else:
                found = self._found(attempt, limits, connection, floors, newest, chosen)
        except Conflict as conflict:
            raise self._without_builds(attempt, conflict) from None
        stranger = next(strangers(attempt.solution, found.pins, self._request.packages), None)
        if stranger is not None:
            raise self._without_folder(*stranger)
        self._rivals |= worlds.stack.rivals
        best = self._on_same_python(best, problem)
        return Resolved(attempt, best, found, floors, chosen.answer.undecided)

    def _on_same_python(self, best: Attempt, problem: Problem) -> Attempt:
        """``best`` for the Python of ``problem``, if that supports the same versions: it tells more about an answer."""
        same = self._best_stack(problem)
        if same is None or [it.version for it in same.releases] != [it.version for it in best.releases]:
            return best
        return same

    def _limits(self, attempt: Attempt, *, in_part: bool) -> Limits:
        return limits_around(attempt.solution, self._wanted_on(attempt), self._matrix, in_part=in_part)

    def _wanted_on(self, attempt: Attempt) -> Requirements:
        return for_interpreter(self._wanted, attempt.interpreter)

    def _found(
        self,
        attempt: Attempt,
        limits: Limits,
        connection: Connection,
        floors: Mapping[str, str] | None = None,
        newest: Mapping[str, str] | None = None,
        chosen: Chosen | None = None,
    ) -> Found:
        """All packages that fit a stack, none below its floor; the versions in ``chosen`` are preferred.

        Raises Conflict, OutsideError, UnsolvableError.
        """
        solution, wanted, packages = attempt.solution, self._wanted_on(attempt), self._request.packages
        most = Sources.ANY if packages.allow_builds else Sources.WITHOUT_WHEELS
        question = question_around(
            solution,
            wanted,
            attempt.interpreter,
            packages,
            self._matrix,
            limits,
            sources=most if chosen is None else chosen.sources,
            rivals=self._rivals,
            more=self._more,
        )
        question = question._replace(
            locked={} if chosen is None else chosen.versions,
            floors=floors or {},
            newest=newest or {},
            frameworks=[it.package for it in attempt.releases],
        )
        indexes = indexes_for(solution, wanted, packages, self._where, connection, self._more)
        return found_for(question, indexes, self._end, self._lock_request.counted)

    def _without_builds(self, attempt: Attempt, conflict: Conflict) -> _LeftOutError:
        """Leave out the builds that are not available. Raises UnsolvableError if there are none."""
        refused = packages_refusal(conflict, attempt.request, attempt.solution, attempt.interpreter)
        left_out = self._absent(attempt.releases, conflict) or {it.label for it in attempt.releases}
        if not left_out:
            raise refused
        self._passed.append(refused)
        return self._without(left_out)

    def _absent(self, releases: Iterable[Release], conflict: Conflict) -> set[str]:
        """The labels of missing builds, looked up folder by folder: another folder may have what one lacks."""
        world, names = conflict.provider.world, contested(conflict)
        absent: set[str] = set()
        for release in (it for it in releases if it.package in names):
            found = world.releases(release.package)
            if found is None or found.position(str(release.full_version)) is None:
                alike = (it for it in self._in_folder(release) if it.package == release.package)
                absent |= {it.label for it in alike if found is None or found.position(str(it.full_version)) is None}
        return absent

    def _without_folder(self, release: Release, stranger: Pin) -> _LeftOutError:
        self._passed.append(stranger_refusal(release, stranger, self._lock_request.request))
        return self._without(it.label for it in self._in_folder(release))

    def _in_folder(self, release: Release) -> Iterator[Release]:
        table = self._matrix.framework(release.framework, release.platform)
        return (it for it in table.releases if _folder(it) == _folder(release))

    def _without(self, labels: Iterable[str]) -> _LeftOutError:
        self._left_out = self._left_out.union(labels)
        self._solver = Solver(self._matrix, self._there)
        return _LeftOutError()

    def _there(self, table: FrameworkTable) -> FrameworkTable:
        return table._replace(releases=tuple(it for it in table.releases if it.label not in self._left_out))

    def _refusal_of(
        self, connection: Connection, attempt: Attempt, floors: Mapping[str, str]
    ) -> UnsolvableError | None:
        """A RefusalOf, see envsolve.app.lock.lock_notes."""
        search = partial(self._found, attempt, self._limits(attempt, in_part=False), connection, floors)
        return refusal_of_search(search, attempt)

    def _explained(self, problem: Problem, worlds: Worlds | None, connection: Connection) -> Resolved:
        """Raise UnsolvableError with the most informative reason why there is no answer.

        Returns the answer if there turns out to be one. Raises OutsideError if a build failed or a necessary file is
        missing.
        """
        if self._passed:
            raise self._passed[0]
        if worlds is None:
            on_python = depends_on_python(self._wanted)
            raise stack_refusal(
                self._request,
                problem,
                self._solver,
                self._wanted,
                typed=self._lock_request.request,
                on_python=on_python,
            )
        conflicts = self._require_builds(problem, connection) if worlds.have_to_build else worlds.conflicts
        refused: list[tuple[tuple[bool, ...], EnvsolveError, Conflict]] = []
        by_python = {it.provider.world.wanted.interpreter: it for it in conflicts}  # those with source come last
        plain = {interpreter: it for interpreter, it in by_python.items() if not worlds.is_about_builds(it)}
        for interpreter, conflict in plain.items():
            refusal = packages_refusal(conflict, self._request, None, interpreter)
            refused.append((rank_of(conflict, refusal), failure_behind(conflict) or refusal, conflict))
        known = {it.python[:2] for it in plain}
        some: Sequence[Version | None] = worlds.pythons or (None,)
        for python in some:
            if python is not None and python.release[:2] in known:
                continue
            narrowed = problem if python is None else for_python(problem, str(python))
            while (attempt := self._next_stack(narrowed, refused)) is not None:
                try:
                    found = self._found(attempt, self._limits(attempt, in_part=True), connection)
                    return Resolved(attempt, self._best_stack(problem) or attempt, found, {})
                except Conflict as conflict:
                    refusal = packages_refusal(conflict, self._request, attempt.solution, attempt.interpreter)
                    refused.append((rank_of(conflict, refusal), refusal, conflict))
                    absent = self._absent(attempt.releases, conflict)
                    if not absent:
                        break
                    self._without(absent)
        _, error, behind = min(refused, key=lambda it: it[0])
        if error.code == PACKAGES_CONFLICT:
            error.hints = (*fitting_hints(behind, self._request), *error.hints)
        raise error

    def _next_stack(self, problem: Problem, refused: Sequence[object]) -> Attempt | None:
        """The best stack. After others were ``refused``, one that a lock cannot have is no reason, and gives None."""
        stack = self._best_stack(problem)
        return None if refused and stack is not None and not all(map(is_lockable, stack.releases)) else stack

    def _require_builds(self, problem: Problem, connection: Connection) -> Sequence[Conflict]:
        """Raise UnsolvableError with all packages that must be built. Returns the conflicts if builds do not help."""
        worlds = self._worlds(problem, connection, in_part=True, as_if_built=True)
        try:
            chosen = worlds.best(self._versions, self._locked, self._end_of_search, self._lock_request.counted)
            if chosen is not None and chosen.unbuilt:
                raise unbuilt_refusal(chosen.unbuilt, chosen.interpreter, self._lock_request.request, self._wanted)
        finally:
            worlds.close()
        return worlds.conflicts

    def _best_stack(self, problem: Problem) -> Attempt | None:
        """The best stack regardless of packages; None if there is none."""
        if not problem.frameworks or self._is_plain:
            return Attempt(self._request, problem, None)
        solution = self._solver.solve(self._request, problem)
        return None if solution is None else Attempt(self._request, problem, solution)


def _folder(release: Release) -> tuple[Source, str]:
    return release.source, release.build if release.source is Source.PYTORCH else ""
