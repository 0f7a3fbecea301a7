"""Python locks: the stack for the GPU, then everything it and the requirements need, from package indexes.

The best stack by itself is the answer where everything that was asked for by name is at its newest beside it. Where it
is not, frameworks, Python and CUDA are chosen together with the packages (envsolve.app.lock_choice), and the stack for
that choice bounds the packages around it (envsolve.resolve.closure.bounds). Where nothing is to be chosen, as an index
lacks the build itself, the next best stack is tried. A framework that only turns up as a dependency joins the stack, so
that it is never one for another GPU or for none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve import __version__
from envsolve.app.asked_packages import Given, for_target, given
from envsolve.app.command import recorded_command, recorded_options
from envsolve.app.lock_choice import Choosing
from envsolve.app.lock_frameworks import left_out, require_wheels, with_frameworks
from envsolve.app.lock_indexes import Lines, Places, name_index, places, settings_of
from envsolve.app.lock_stacks import Attempt, Stacks, stays
from envsolve.app.lock_start import Start, start
from envsolve.app.network import Network
from envsolve.app.solving import Solved, matrix_date_of, request_without_secrets
from envsolve.app.stack_wheels import (
    Limits,
    bounds_of,
    index_of,
    indexes_for,
    needs_of,
    notes_of,
    places_of,
    required_by_builds,
    runs_in_part,
    strangers,
)
from envsolve.app.targets import Target, targets_of
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import OutsideError, UnsolvableError
from envsolve.frameworks import FRAMEWORK_OF_CPU_WHEEL, FRAMEWORKS
from envsolve.index.fitting import newest_glibc
from envsolve.lockfile.answer import Answer
from envsolve.lockfile.formats import require_platforms, write_python_lock
from envsolve.lockfile.lock import Lock, Made
from envsolve.lockfile.stack import stack_of
from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.need import Markers, Need
from envsolve.model.note import Note
from envsolve.model.package import Pin
from envsolve.model.request import Held, Request
from envsolve.model.solution import Solution
from envsolve.resolve.closure.behind import Behind
from envsolve.resolve.closure.releases import Wanted
from envsolve.resolve.closure.resolve import Conflict, Found, Progress, Question, found_for
from envsolve.resolve.stack import SHARED_DEPENDENCIES

PYTHON_CHOSEN = "python-chosen"
"""The code of the note that says which Python was chosen."""
_MOST_STACKS = 24
_FEW = 4
_FEW_MONTHS = 6
_MANY_MONTHS = 18
_SURROUNDINGS = ("python", "glibc", "default_index", "default_is_plain", "indexes")
_UPPER = re.compile(r"(?:^|,)\s*(?:<|==|~=)")
"""A clause that keeps versions out because they are newer."""


class LockRequest(NamedTuple):
    """A request for a Python lock. ``held`` are the pins of the lock that is there already, for a platform.

    ``recorded`` is the request that the lock says it was made for, where that is another one.
    """

    request: Request
    network: Network = Network()
    held: Callable[[Platform], tuple[tuple[Pin, ...], Held]] = lambda _: ((), Held())
    progress: Progress | None = None
    recorded: Request | None = None


def lock(asked: LockRequest, matrix: Matrix, environ: Mapping[str, str], started: Start | None = None) -> Solved:
    """The Python lock for each platform of the request, in its format; with what was ``started`` for it before.

    Raises UsageError, UnsolvableError where no stack or no set of packages fits, OutsideError where an index fails.
    """
    request, hidden = request_without_secrets(asked.request)
    wanted, where, lines = started or start(asked.request, asked.network, environ)
    try:
        require_wheels(request)
        targets = [with_frameworks(target, wanted, where) for target in targets_of(request, matrix, environ)]
        require_platforms([it.problem.platform for it in targets], request.format)
        locks = [_Lock(asked, matrix, target, wanted, where).made(lines) for target in targets]
    except OutsideError as error:
        name_index(error, asked.request, where)
        raise
    finally:
        lines.close()
    return _solved(request, locks, (*where.notes, *lines.notes, *hidden))


def locked_again(
    asked: LockRequest, there: Callable[[Platform], Lock | None], matrix: Matrix, environ: Mapping[str, str]
) -> Solved | None:
    """The locks that are ``there`` as :func:`lock` would write them if it came to the same packages.

    No index is asked: the stack alone is solved, and the packages are those of the locks. None where they cannot be an
    answer: one is missing or of another tool, leaves something open, was changed since it was written, does not meet
    the request, or holds what the stack of today does not go with.
    """
    from envsolve.app.lock_satisfies import differences

    request, hidden = request_without_secrets(asked.request)
    recorded, _ = request_without_secrets(asked.recorded or request)
    wanted = given(asked.request.packages)
    where = places(asked.request, wanted, settings_of(environ))
    require_wheels(request)
    targets = targets_of(request, matrix, environ)
    require_platforms([it.problem.platform for it in targets], request.format)
    locks: list[_Locked] = []
    for target in targets:
        held = there(target.problem.platform)
        if held is None or held.open or held.made is None or None in (held.made.packages_digest, held.made.request):
            return None
        if not all(it.is_met for it in differences(held, recorded, target)):
            return None
        again = _Lock(asked, matrix, with_frameworks(target, wanted, where), wanted, where).again(held)
        if again is None:
            return None
        locks.append(again)
    return _solved(request, locks, (*where.notes, *hidden))


def _solved(request: Request, locks: Sequence[_Locked], beside: Iterable[Note]) -> Solved:
    texts = tuple((made.platform, write_python_lock(made.lock, request.format, made.answer)) for made in locks)
    solutions = tuple(made.solution for made in locks if made.solution is not None)
    notes = (*(note for made in locks for note in made.notes), *beside)
    return Solved(texts, tuple(dict.fromkeys(notes)), solutions, tuple(made.lock for made in locks))


class _Locked(NamedTuple):
    platform: Platform
    lock: Lock
    answer: Answer | None
    solution: Solution | None
    notes: tuple[Note, ...]


class _Lock:
    """The lock for one target: tries stacks until the packages around one can be had."""

    def __init__(self, asked: LockRequest, matrix: Matrix, target: Target, wanted: Given, where: Places) -> None:
        self._asked, self._matrix, self._target = asked, matrix, target
        self._wanted, self._where = wanted, where
        self._stacks = Stacks(target, wanted, matrix, asked.request, only_index=not where.is_plain)
        self._pins, self._held = asked.held(target.problem.platform)
        self._newest: dict[str, str] = {}
        """The newest versions of what was asked for, as far as they are known."""
        self._refused: UnsolvableError | None = None
        """Why these do not go together."""

    def again(self, held: Lock) -> _Locked | None:
        """The lock with the packages of ``held``; None where the best stack near to them goes with other ones."""
        pins = held.pins
        try:
            attempt = self._stacks.first(self._held)
            while (joined := self._stacks.joined(attempt, pins)) is not None:
                attempt = self._stacks.solved(*joined)
        except UnsolvableError:
            return None
        solution = attempt.solution
        if next(strangers(solution, pins, attempt.request.packages), None) is not None:
            return None
        versions = {pin.name: pin.version for pin in pins}
        stack = () if solution is None else solution.choices
        if any(versions.get(it.release.package) != str(it.release.full_version) for it in stack):
            return None
        found = self._finished(attempt, tuple(self._asked_now(pins, attempt)), None, ())
        indexes = (None, "", found.lock.default_index, *found.lock.indexes)
        if not all(pin.index_url in indexes for pin in pins):
            return None
        now = found.lock.restricted_to(self._asked.request.format)
        return found if self._suits_alike(now, held, solution) else None

    def _asked_now(self, pins: Iterable[Pin], attempt: Attempt) -> Iterator[Pin]:
        """``pins`` with who asks for each of them now."""
        wanted = for_target(self._wanted, Markers(attempt.interpreter.marker_values()))
        stack = self._named(attempt) if attempt.solution is None else needs_of(attempt.solution)
        askers: dict[str, set[str]] = {}
        for need, origin in (*stack, *wanted.needs):
            askers.setdefault(need.name, set()).add(origin)
        names = {pin.name for pin in pins}
        for pin in pins:
            requirers = {it for it in pin.via if it.partition("[")[0] in names}
            yield pin._replace(via=tuple(sorted(requirers | askers.get(pin.name, set()))))

    def _suits_alike(self, now: Lock, held: Lock, solution: Solution | None) -> bool:
        """Whether Python, C library and indexes are the same, and other GPUs set no bound that a package breaks."""
        if any(getattr(now, it) != getattr(held, it) for it in _SURROUNDINGS):
            return False
        if solution is None or (now.stack and now.stack.capabilities) == (held.stack and held.stack.capabilities):
            return True
        bounds = bounds_of(solution, self._matrix, in_part=True)
        return all(
            SpecifierSet(limit.specifier).contains(pin.version, prereleases=True) is not limit.is_exclusion
            for pin in held.pins
            for limit in bounds.of(pin.name)
        )

    def made(self, lines: Lines) -> _Locked:
        """The lock, from what the indexes say over ``lines``. Raises UnsolvableError, OutsideError."""
        first: UnsolvableError | None = None
        asked = False
        passed: list[UnsolvableError] = []
        attempt: Attempt | None = self._stacks.first(self._held)
        packages = self._asked.request.packages
        keeps = any(stays(packages, pin.name) for pin in self._pins)
        best = None if keeps or attempt is None else self._best(attempt, lines)
        if best is not None:
            return best
        for _ in range(_MOST_STACKS):
            if attempt is None:
                break
            try:
                found = self._packages(attempt, lines, in_part=True)
            except Conflict as conflict:
                from envsolve.app.lock_refusal import NOT_ON_INDEX, is_asked, packages_refusal

                stack = attempt.request, attempt.solution, attempt.interpreter
                refused = packages_refusal(conflict, *stack)
                if first is None or (first.code == NOT_ON_INDEX != refused.code) or (is_asked(conflict) and not asked):
                    first, asked = refused, is_asked(conflict)
                passed += [refused] if refused.code == NOT_ON_INDEX else []
                attempt = self._stacks.after(attempt, conflict)
                continue
            except UnsolvableError as error:
                raise first or error from None
            stranger = next(strangers(attempt.solution, found.pins, attempt.request.packages), None)
            if stranger is not None:
                from envsolve.app.lock_refusal import stranger_refusal

                refused = stranger_refusal(*stranger, attempt.request)
                first = first or refused
                passed.append(refused)
                attempt = self._stacks.without_folder(attempt, stranger[0])
                continue
            joined = self._stacks.joined(attempt, found.pins)
            if joined is None:
                self._require_recent(found, attempt, lines)
                return self._finished(attempt, found.pins, first, passed)
            attempt = self._stacks.solved(*joined)
        assert first is not None
        raise first

    def _best(self, first: Attempt, lines: Lines) -> _Locked | None:
        """The lock in which what was asked for is as new as it can be; None where that does not decide anything.

        Raises UnsolvableError where that is too old.
        """
        base = first
        for _ in range(_MOST_STACKS):
            choosing = Choosing(
                base.request,
                base.problem,
                self._wanted,
                self._stacks.solver,
                self._matrix,
                self._where,
                lines,
            )
            if not choosing.names and len(base.problem.frameworks) <= 1:
                return None
            try:
                attempt, found = self._chosen(base, choosing, lines)
            except UnsolvableError:
                return None
            if next(strangers(attempt.solution, found.pins, attempt.request.packages), None) is not None:
                return None
            joined = self._stacks.joined(base, found.pins)
            if joined is None:
                self._require_recent(found, attempt, lines)
                return self._finished(attempt, found.pins, None, (), self._held_back(found, attempt, lines))
            try:
                base = self._stacks.solved(*joined)
            except UnsolvableError:
                return None
        return None

    def _chosen(self, base: Attempt, choosing: Choosing, lines: Lines) -> tuple[Attempt, Found]:
        """The stack for the best choice, and its packages.

        Raises OutsideError, and UnsolvableError where there is no choice.
        """
        newest = choosing.newest(base.interpreter, base.solution)
        choices = () if base.solution is None else base.solution.choices
        of_stack = {choice.release.package: str(choice.release.full_version) for choice in choices}
        self._newest = choosing.versions(newest) | of_stack
        found = self._found(base, lines, newest)
        if isinstance(found, Found):
            return base, found
        refused, self._refused = found, self._refused or found
        choice = choosing.choice()
        if choice is None:
            raise refused
        attempt = self._stacks.solved(*choice.narrowed(base.request, base.problem))
        found = self._found(attempt, lines, choice.floors)
        if isinstance(found, Found):
            return attempt, found
        raise refused

    def _found(self, attempt: Attempt, lines: Lines, floors: Mapping[str, int]) -> Found | UnsolvableError:
        """Every package that goes with a stack, none below its floor, or why there are none. Raises OutsideError."""
        try:
            return self._packages(attempt, lines, floors)
        except Conflict as conflict:
            from envsolve.app.lock_refusal import packages_refusal

            return packages_refusal(conflict, attempt.request, attempt.solution, attempt.interpreter)
        except UnsolvableError as error:
            return error

    def _held_back(self, found: Found, attempt: Attempt, lines: Lines) -> Iterator[Note]:
        """What is not at its newest and what keeps it there: a framework in any case, others after half a year."""
        choices = () if attempt.solution is None else attempt.solution.choices
        of_stack = {choice.release.package for choice in choices}
        for it in found.behind:
            months = it.months or 0
            if it.name not in of_stack and months < _FEW_MONTHS:
                continue
            age = f" is {months:.0f} months older than" if months >= _FEW_MONTHS else " is taken, not"
            refused = (
                self._refused if it.name in of_stack else None if it.held_by else self._against(it, attempt, lines)
            )
            because = " and ".join(it.held_by[:_FEW]) or (_said(refused) if refused else "newer ones do not fit")
            told = Note("held-back", f"{it.name} {it.version}{age} {it.newest}: {because}")
            yield told.about(name=it.name, version=it.version, newest=it.newest, months=round(months), because=because)

    def _against(self, it: Behind, attempt: Attempt, lines: Lines) -> UnsolvableError | None:
        """Why the newest version does not go with the rest, found out by asking for it."""
        try:
            found = self._found(attempt, lines, it.floor)
        except OutsideError:
            return self._refused  # what only explains an answer does not end it
        return found if isinstance(found, UnsolvableError) else self._refused

    def _require_recent(self, found: Found, attempt: Attempt, lines: Lines) -> None:
        """Raise UnsolvableError where the newest that fits of what was asked for is long out of date.

        What a package requires in an older version is right so, and what the request bounds may be old because of it.
        """
        choices = () if attempt.solution is None else attempt.solution.choices
        of_stack = {choice.release.package for choice in choices}
        old = [
            it for it in found.behind if (it.months or 0) > _MANY_MONTHS and not it.held_by and it.name not in of_stack
        ]
        if old and not self._is_bounded():
            from envsolve.app.lock_refusal import outdated

            raise outdated(old[0], self._against(old[0], attempt, lines), self._asked.request)

    def _is_bounded(self) -> bool:
        """Whether the request says that something may not be newer."""
        request = self._asked.request
        typed = [need.specifier for need, _ in (*self._wanted.needs, *self._wanted.constraints)]
        typed += [str(it.specifier) for it in request.frameworks]
        limits = (request.python, request.cuda, request.packages.exclude_newer)
        return any(it is not None for it in limits) or any(_UPPER.search(it) for it in typed)

    def _packages(
        self, attempt: Attempt, lines: Lines, floors: Mapping[str, int] | None = None, *, in_part: bool = False
    ) -> Found:
        """Every package that goes with a stack; with ``in_part`` also what loses something with its CUDA.

        Raises Conflict, OutsideError, UnsolvableError.
        """
        solution = attempt.solution
        interpreter = attempt.interpreter
        wanted = for_target(self._wanted, Markers(interpreter.marker_values()))
        stack = list(self._named(attempt) if solution is None else needs_of(solution))
        places = () if solution is None or solution.toolkit is None else places_of(self._matrix)
        question = Question(
            asked=(*stack, *wanted.needs),
            wanted=Wanted(
                interpreter,
                attempt.request.packages.exclude_newer,
                attempt.request.packages.allow_builds,
                wanted.hashes,
            ),
            limits=Limits(None if solution is None else bounds_of(solution, self._matrix, in_part=in_part), wanted),
            held={it.name: it.version for it in self._pins if stays(attempt.request.packages, it.name)},
            judge=required_by_builds(self._matrix, places),
            virtual=places,
            floors=floors or {},
            newest=self._newest,
        )
        indexes = indexes_for(solution, wanted, self._target.request.packages, self._where, lines)
        return found_for(question, indexes, self._asked.progress)

    def _named(self, attempt: Attempt) -> Iterator[tuple[Need, str]]:
        """The frameworks that are asked for as such, as packages, where no stack is solved."""
        asked = {it.framework for it in self._asked.request.frameworks}
        for it in attempt.problem.frameworks:
            if it.framework in asked:
                package = FRAMEWORKS[it.framework].wheels[0]
                yield Need(package, (), str(it.specifier), ""), str(self._asked.request.asker)

    def _finished(
        self,
        attempt: Attempt,
        pins: tuple[Pin, ...],
        better: UnsolvableError | None,
        passed: Sequence[UnsolvableError],
        beside: Iterable[Note] = (),
    ) -> _Locked:
        solution, interpreter = attempt.solution, attempt.interpreter
        request = self._asked.request
        bare, _ = request_without_secrets(self._asked.recorded or request)
        now = for_target(self._wanted, Markers(interpreter.marker_values()))
        needs, constraints = now.as_recorded
        answer = matrix_date = None
        if solution is not None:
            matrix_date = matrix_date_of(solution.problem, self._matrix)
            answer = Answer(
                solution,
                self._target.hosts,
                recorded_command(bare),
                matrix_date,
                __version__,
                own_matrix=not self._matrix.is_shipped,
            )
        default = without_secrets(self._where.default).rstrip("/")
        used = {pin.index_url.rstrip("/") for pin in pins if pin.index_url is not None}
        others = tuple(url for url in self._in_order(solution) if url != default and url in used)
        made = Made(
            __version__,
            recorded_command(bare),
            tuple(dict.fromkeys((*map(str, request.frameworks), *needs))),
            matrix_date,
            answer is not None and answer.own_matrix,
            request.packages.exclude_newer,
            asked_digest=now.digest,
            options=(*recorded_options(bare), *constraints),
        )
        locked = Lock(
            pins,
            interpreter.platform,
            interpreter.full_version,
            newest_glibc(interpreter),
            None if answer is None else stack_of(answer, {pin.name: pin.version for pin in pins}),
            made,
            default_index=default,
            default_is_plain=self._where.is_plain,
            indexes=others,
        )
        told = left_out(self._wanted, pins, interpreter)
        in_part = () if solution is None else runs_in_part(pins, solution, self._matrix)
        notes = (*beside, *self._notes(attempt), *in_part, *told, *(note for pin in pins for note in notes_of(pin)))
        if not attempt.problem.cpu and attempt.problem.gpus:
            notes = (*notes, *_for_the_cpu(pins))
        if better is not None and better not in passed:
            said = Note("not-newest-stack", f"this is not the newest stack: {_said(better)}")
            notes = (said.about(refusal=better.code, because=better.message), *notes)
        if passed:
            more = f", and {len(passed) - 1} more after it" if len(passed) > 1 else ""
            text = f"a build was passed over{more}: {_said(passed[0])}{_instead(solution)}"
            notes = (Note("build-passed-over", text).about(count=len(passed), because=passed[0].message), *notes)
        return _Locked(attempt.problem.platform, locked, answer, solution, notes)

    def _in_order(self, solution: Solution | None) -> list[str]:
        packages = self._target.request.packages
        own = [index_of(choice.release, packages) for choice in (solution.choices if solution else ())]
        urls = (*filter(None, own), *self._where.mapped.values(), *self._where.extra)
        return list(dict.fromkeys(without_secrets(url).rstrip("/") for url in urls))

    def _notes(self, attempt: Attempt) -> tuple[Note, ...]:
        solution = attempt.solution
        if solution is None:
            return tuple(_of_default_builds(attempt))
        notes = [] if self._target.fell_to_cpu and not attempt.problem.cpu else list(self._target.notes)
        if self._asked.request.python is None:
            named = attempt.request.asker.named("python")
            text = f"the lock is for Python {solution.python}; {named} names another one"
            notes.append(Note(PYTHON_CHOSEN, text).about(python=str(solution.python)))
        return (*notes, *(it for it in solution.notes if it.code != SHARED_DEPENDENCIES))


def _for_the_cpu(pins: Iterable[Pin]) -> Iterator[Note]:
    for pin in pins:
        framework = FRAMEWORKS.get(FRAMEWORK_OF_CPU_WHEEL.get(pin.name, ""))
        if framework is not None:
            other = framework.wheels[0]
            text = f"{pin.name} is a build for the CPU, asked for by that name: {other} is the one for this GPU"
            yield Note("build-for-cpu", text).about(name=pin.name, for_gpu=other)


def _said(error: UnsolvableError) -> str:
    return f"{error.message} ({'; '.join(error.cause[:_FEW])})"


def _instead(solution: Solution | None) -> str:
    choices = () if solution is None else solution.choices
    held = " and ".join(f"{it.release.package} {it.release.full_version}" for it in choices)
    return f"; the lock has {held}" if held else ""


def _of_default_builds(attempt: Attempt) -> Iterator[Note]:
    """What to know where there is no GPU, and one index that has no builds for that."""
    problem = attempt.problem
    if problem.frameworks:
        yield Note(
            "default-builds",
            "no NVIDIA GPU was found, and the index that is named has no CPU build: these are the default builds, "
            "which run without a GPU as well and bring CUDA libraries along",
        )
    if any(it.framework == "pytorch" for it in problem.frameworks):
        naming = attempt.request.asker.saying("pytorch-index-url", "https://download.pytorch.org/whl")
        yield Note("index-of-cpu-builds", f"PyTorch's CPU builds are in its own index: {naming}")
