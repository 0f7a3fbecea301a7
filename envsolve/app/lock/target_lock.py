"""The Python lock for one target: the frameworks for the GPU and all packages around them, as one answer.

Frameworks, Python, CUDA and packages are chosen together (lock_worlds). The bounds that the stack sets on other
packages (envsolve.resolve.closure.bounds) are checked afterwards. A framework that is only a dependency joins the
stack, so that it is never a build for another GPU or for the CPU.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from math import inf
from time import monotonic

from envsolve.app.lock.answer_refusal import stranger_refusal
from envsolve.app.lock.lock_notes import Notes, Resolved, gpu_notes
from envsolve.app.lock.lock_refusal import PACKAGES_CONFLICT, packages_refusal
from envsolve.app.lock.lock_request import LockRequest
from envsolve.app.lock.lock_result import Locked, Result
from envsolve.app.lock.lock_worlds import Chosen, Worlds
from envsolve.app.lock.no_lock import explained
from envsolve.app.lock.outdated import OUTDATED, require_recent
from envsolve.app.lock.stack_refusal import stack_refusal
from envsolve.app.lock.target_search import TargetSearch
from envsolve.app.packages.audit import WheelAudit
from envsolve.app.packages.lock_frameworks import with_versions
from envsolve.app.packages.lock_indexes import Connection, Places
from envsolve.app.packages.lock_stacks import Attempt, attempt_of, for_python, joined_among, with_joined
from envsolve.app.packages.requirements import Requirements
from envsolve.app.packages.stack_wheels import strangers
from envsolve.app.packages.wheel_ways import Tried, stack_text
from envsolve.app.request.command import way_out
from envsolve.app.request.targets import Target
from envsolve.errors import EnvsolveError, Hint, UnsolvableError
from envsolve.matrix.load import Matrix
from envsolve.model.need import Need
from envsolve.model.solution import Problem, Solution
from envsolve.model.versions import DriverVersion
from envsolve.resolve.closure.resolve import Conflict, finished
from envsolve.resolve.relax import drivers_for

_MAY_NEED_A_DRIVER = (PACKAGES_CONFLICT, OUTDATED)
_SECONDS = 10
"""The time to find a driver."""


class TargetLock:
    """Finds the lock for one target: the best answer whose builds the indexes have.

    Ends the search at ``end`` on the monotonic clock, or before it.
    """

    def __init__(
        self,
        lock_request: LockRequest,
        matrix: Matrix,
        target: Target,
        wanted: Requirements,
        where: Places,
        connection: Connection,
        end: float = inf,
    ) -> None:
        self._lock_request, self._connection, self._target = lock_request, connection, target
        self._result = Result(lock_request.request, lock_request.recorded, matrix, target, wanted, where)
        self._search = TargetSearch(lock_request, matrix, target, wanted, where, connection)
        self._search.end = min(self._search.end, end)
        self._audit = WheelAudit(lock_request.request, lambda: connection.wheels, lock_request.counted)
        self._passed: list[UnsolvableError] = []
        """The reasons why better builds are not available."""

    def made(self) -> Locked:
        """The lock, from the indexes. Raises UnsolvableError, OutsideError."""
        try:
            made, search = self._resolved(), self._search
        except UnsolvableError as error:
            if error.code in _MAY_NEED_A_DRIVER:
                first = next((place for place, it in enumerate(error.hints) if it.command is None), len(error.hints))
                error.hints = (*error.hints[:first], *self._newer_driver(), *error.hints[first:])
            raise
        extensions, audit = search.extensions, self._audit
        notes = Notes(made, search)
        of_gpus = gpu_notes(notes.pins, made.attempt.solution, search.request, search.problem.platform, search.matrix)
        beside = (*notes, *extensions.notes(notes.pins), *audit.notes(notes.pins), *of_gpus)
        read, progress = audit.origins(notes.pins), self._lock_request.counted
        pins = tuple(extensions.by_address(tuple(notes.pins), search.old_pins, self._connection, progress))
        unread = extensions.unread(pins)
        found = self._result.finished(made.attempt, pins, beside, self._passed, read=read, unread=unread)
        return found._replace(lock=found.lock._replace(pins=tuple(extensions.as_published(pins))))

    def tried(self) -> Tried:
        """The answer without notes. Raises as :meth:`made`, but without the reasons, which take longer to find."""
        made = self._resolved(explains=False)
        return Tried(made.attempt.solution, made.found.pins, self._search.extensions.source_of)

    def _newer_driver(self) -> Iterator[Hint]:
        """Suggest the oldest driver with which everything fits, as far as it is found within a few seconds."""
        newest = max((driver for driver, _ in self._search.newer_drivers(self._search.problem)), default=None)
        if newest is None:
            return
        end, request, machines = monotonic() + _SECONDS, self._lock_request.request, self._target.problem.machines
        found: dict[DriverVersion, Solution] = {}

        def works(driver: DriverVersion) -> bool:
            solution = self._with_driver(driver, end) if monotonic() < end else None
            if solution is not None:
                found[driver] = solution
            return solution is not None

        known = drivers_for(machines, self._result.matrix.cuda).known
        drivers = [it for it in known if it <= newest and not all(of.driver and of.driver.meets(it) for of in machines)]
        if works(newest) and len(drivers) > 1 and works(drivers[-2]):  # a driver between two majors rarely does
            bisect_left(drivers, True, key=works)
        for driver in sorted(found)[:1]:
            text = f"install NVIDIA driver {driver} or newer: everything then fits, with {stack_text(found[driver])}"
            yield way_out(text, request._replace(driver=driver), request, "other-driver")

    def _with_driver(self, driver: DriverVersion, end: float) -> Solution | None:
        """The stack of the lock with another driver, found before ``end``; None if there is none."""
        machines = tuple(it._replace(driver=driver) for it in self._target.problem.machines)
        target = self._target._replace(problem=self._target.problem._replace(machines=machines))
        found = self._result
        lock = TargetLock(self._lock_request, found.matrix, target, found.wanted, found.where, self._connection, end)
        try:
            return lock.tried().solution
        except EnvsolveError:
            return None  # a hint must not end in an error of its own

    def _resolved(self, *, explains: bool = True) -> Resolved:
        """The best answer that also holds for the contents of its wheels; why there is none if it ``explains``."""
        search = self._search
        joined: list[str] = []
        while True:
            problem = with_joined(search.problem, search.wanted, joined)
            try:
                made = self._best(problem, explains=explains)
            except UnsolvableError as error:
                error.cause = (*error.cause, *search.extensions.behind_refusal())
                raise
            if made is None:
                continue
            new = [] if search.is_plain else joined_among(made.found.pins, problem)
            if new:
                joined += new
                continue
            before = monotonic()
            search.matrix, is_suited = self._audit.learned(made.found.pins, made.attempt.solution, search.matrix)
            search.end += monotonic() - before  # reading wheels may take longer than any search
            if is_suited:
                require_recent(made, search)
                return made

    def _best(self, problem: Problem, *, explains: bool) -> Resolved | None:
        """The best answer; None to search again, as one of its builds is missing or wheels were found elsewhere.

        Raises UnsolvableError, OutsideError.
        """
        search = self._search
        best = search.best_stack(problem)
        if best is None and self._passed:
            raise self._passed[0]
        if best is None and explains:
            raise stack_refusal(search.request, problem, search.solver, search.wanted, typed=self._lock_request.request)
        if best is None:
            raise _unexplained()
        for in_part in (False, True):
            worlds = search.worlds(problem, in_part=in_part)
            try:
                chosen = search.best_in(worlds)
                seen = worlds.seen(as_source=chosen is not None)
                is_new = search.find_wheels(Need(name, (), "", "") for name in seen)
                if is_new and (chosen is None or not chosen.answer.undecided):  # one that took all the time stays
                    return None
                if chosen is not None:
                    return self._made_of(chosen, worlds, problem, best)
            finally:
                worlds.close()
            if not worlds.stack.met_what_runs_in_part:
                break
        if self._passed:
            raise self._passed[0]
        if explains:
            return explained(search, problem, worlds)
        raise _unexplained()

    def _made_of(self, chosen: Chosen, worlds: Worlds, problem: Problem, best: Attempt) -> Resolved | None:
        """The packages of the chosen answer; None if one of its builds is not available, which is left out."""
        search = self._search
        if chosen.builds:
            problem = with_versions(for_python(problem, chosen.interpreter.minor_version), search.wanted)
        attempt = Attempt(search.request, problem, None)
        if not search.is_plain:
            solved = attempt_of(chosen.builds, search.request, problem, search.solver)
            if solved is None:
                self._leave_out(it.label for it in list(chosen.builds.values())[1:])
                return None
            attempt = solved
        limits = search.limits(attempt, in_part=worlds.in_part)
        floors, newest = worlds.floors_of(chosen), worlds.newest_beside(chosen.builds, problem)
        try:
            if chosen.is_exact(limits, search.request.packages):
                found = finished(
                    chosen.answer.picks,
                    chosen.answer.provider,
                    limits,
                    newest,
                    [it.package for it in attempt.releases],
                )
            else:
                found = search.packages_around(attempt, limits, floors, newest, chosen)
        except Conflict as conflict:
            refused = packages_refusal(conflict, attempt.request, attempt.solution)
            left_out = search.absent(attempt.releases, conflict) or {it.label for it in attempt.releases}
            if not left_out:
                raise refused from None
            self._leave_out(left_out, refused)
            return None
        stranger = next(strangers(attempt.solution, found.pins, search.request.packages), None)
        if stranger is not None:
            in_folder = (it.label for it in search.in_folder(stranger[0]))
            self._leave_out(in_folder, stranger_refusal(*stranger, self._lock_request.request))
            return None
        search.rivals |= worlds.stack.rivals
        best = self._on_same_python(best, problem)
        return Resolved(attempt, best, found, floors, chosen.answer.undecided)

    def _leave_out(self, labels: Iterable[str], *reasons: UnsolvableError) -> None:
        """Search without the builds of these labels, for ``reasons``."""
        self._passed += reasons
        self._search.leave_out(labels)

    def _on_same_python(self, best: Attempt, problem: Problem) -> Attempt:
        """``best`` for the Python of ``problem``, if that supports the same versions: it tells more about an answer."""
        same = self._search.best_stack(problem)
        if same is None or [it.version for it in same.releases] != [it.version for it in best.releases]:
            return best
        return same


def _unexplained() -> UnsolvableError:
    return UnsolvableError("no-lock", "there is no lock for this request")
