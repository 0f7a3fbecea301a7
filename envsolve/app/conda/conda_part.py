"""The lock for one platform around a stack: first conda packages, then wheels.

If they cannot be solved, an exception says what to try next. These exceptions are not for users:
:mod:`envsolve.app.conda.conda_locking` handles them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from envsolve import __version__
from envsolve.app.conda.conda_refusal import Unfit
from envsolve.app.lock.existing_locks import versions_in_conda_lock
from envsolve.app.lock.lock_request import LockRequest
from envsolve.app.packages.conda_requirements import CondaRequirements, Split, requirements_of, split
from envsolve.app.packages.lock_evidence import Origin, evidence_of
from envsolve.app.request.command import recorded_command
from envsolve.app.request.own_rows import pins_are_own, stack_is_own
from envsolve.app.request.targets import Target
from envsolve.app.request.virtual_packages import virtual_packages
from envsolve.app.solve.solving import matrix_date_of
from envsolve.boundary.secrets import without_secrets
from envsolve.conda.session import CondaConflict, Listed, Question, Session
from envsolve.errors import UnsolvableError
from envsolve.frameworks import FRAMEWORK_OF_CONDA
from envsolve.lockfile.answer import Answer
from envsolve.lockfile.conda_specs import channel_name, channels_of, environment_name, with_conda_forge
from envsolve.lockfile.lock import Lock, Made, conda_lock
from envsolve.lockfile.remarks import usage_remarks
from envsolve.lockfile.stack import stack_of
from envsolve.matrix.load import Matrix
from envsolve.model.conda import CondaPackage, VirtualPackage
from envsolve.model.host import Platform
from envsolve.model.match_spec import parse_match_spec
from envsolve.model.note import Note
from envsolve.model.release import Source
from envsolve.model.request import Request
from envsolve.model.solution import Solution
from envsolve.resolve.closure.unknown_builds import is_about_cuda, is_unknown

if TYPE_CHECKING:
    from envsolve.app.conda.conda_wheels import CondaWheels
    from envsolve.app.packages.lock_indexes import Places
    from envsolve.model.package import Pin

_FREE_THREADED = "freethreading"
_USUAL_PYTHON = "python[build='^.*(_cpython|_cp3[0-9]+|h[0-9a-f]+_[0-9]+)$']"
"""The usual CPython. conda-forge also has builds without the GIL (cp313t) and of PyPy in the same versions. Only the
build string distinguishes them, and a solver chooses them if a package for the usual one is missing."""


class NotYet(Exception):  # noqa: N818  # what was learned leads on
    """The packages cannot be solved like this. Another attempt may succeed with what the exception says."""


class Conflict(NotYet):
    """The packages around a stack conflict."""

    def __init__(self, unfit: Unfit) -> None:
        super().__init__(unfit.text)
        self.unfit = unfit


class WheelsRefused(NotYet):
    """The wheels of a stack, or those around them, cannot be resolved."""

    def __init__(self, error: UnsolvableError, solution: Solution) -> None:
        super().__init__(error)
        self.error, self.solution = error, solution


class TakenFromConda(NotYet):
    """Projects without wheels for the Python of the stack must come from conda, for whatever Python it has them."""

    def __init__(self, names: frozenset[str], error: UnsolvableError) -> None:
        super().__init__(names)
        self.names, self.error = names, error


class CompanionsNeeded(NotYet):
    """Wheels require projects that must come from conda, as PyTorch does; ``names`` lists them."""

    def __init__(self, platform: Platform, names: frozenset[str]) -> None:
        super().__init__(names)
        self.platform, self.names = platform, names


class Joined(NotYet):
    """Some dependencies are frameworks; ``names`` are their names in the matrix."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(names)
        self.names = names


class Parts:
    """Makes the lock of each platform for one command. ``request`` is that of ``lock_request`` without logins.

    ``notes`` are those on the finished parts. ``of_conda`` are projects that must come from conda for whatever Python.
    ``companions`` are those that wheels need from conda, by platform.
    """

    def __init__(
        self,
        lock_request: LockRequest,
        session: Session,
        request: Request,
        on: Mapping[Platform, CondaRequirements],
        matrix: Matrix,
        environ: Mapping[str, str],
    ) -> None:
        self._lock_request, self._session, self._request, self._on = lock_request, session, request, on
        self._matrix, self._environ = matrix, environ
        given = (*lock_request.request.channels, *(channel for it in on.values() for channel in it.channels))
        self._opened_by = {without_secrets(channel): channel for channel in given}
        self._beside: CondaWheels | None = None
        self.notes: list[Note] = []
        self.of_conda: frozenset[str] = frozenset()
        self.companions: dict[Platform, frozenset[str]] = {}
        self.existing = functools.cache(lambda it: versions_in_conda_lock(lock_request.there(it), request.packages))
        """The versions in the existing lock that stay, by platform."""

    def close(self) -> None:
        """Close the connections to package indexes."""
        if self._beside is not None:
            self._beside.close()

    @property
    def given_channels(self) -> tuple[str, ...]:
        """The requested channels, without logins."""
        return tuple(self._opened_by)

    @property
    def has_logins(self) -> bool:
        """Whether a requested channel has a login."""
        return any(bare != given for bare, given in self._opened_by.items())

    @property
    def matrix_notes(self) -> tuple[Note, ...]:
        """Notes on ignored parts of the matrix."""
        return self._matrix.notes

    @property
    def index_notes(self) -> tuple[Note, ...]:
        """Notes on settings and the cache of package indexes."""
        return () if self._beside is None else self._beside.notes

    @property
    def indexes(self) -> Places | None:
        """The package indexes of the wheels; None if there are no wheels."""
        return None if self._beside is None else self._beside.where

    def channels(self, solution: Solution | None) -> tuple[str, ...]:
        """The channels that a stack is installed from, without logins."""
        return with_conda_forge(self._opened_by) if solution is None else tuple(channels_of(solution))

    def listed(self, source: Source, platform: Platform, names: frozenset[str]) -> Mapping[str, tuple[Listed, ...]]:
        """The packages with given names on the channels for builds of ``source``."""
        assert source.channel is not None
        named = map(channel_name, self._opened_by)
        own = () if source is Source.CONDA_FORGE or source.channel in named else (source.channel,)
        return self._session.packages(self._opened(with_conda_forge((*own, *self._opened_by))), platform, names)

    def solved(self, unfit: Unfit, specs: Sequence[str]) -> Sequence[CondaPackage] | None:
        """The solution for other specs than those of ``unfit``; None if there is none."""
        question = self._question(unfit.problem.platform, unfit.channels, specs, unfit.virtual_packages)
        try:
            return self._session.solve(question)
        except CondaConflict:
            return None

    def part(self, target: Target, solution: Solution | None) -> Lock:
        """The packages for one platform, without the record of how the lock was made, which :mod:`.conda_locking` adds.

        Raises Conflict, Joined, CompanionsNeeded, WheelsRefused, TakenFromConda; for users UnsolvableError and
        OutsideError.
        """
        platform = target.problem.platform
        self._lock_request.show(f"conda packages for {platform}")
        channels = self.channels(solution)
        virtual = virtual_packages(target.problem, solution, target.hosts, self._matrix.cuda, self._environ)
        opened = self._opened(channels)

        def listed(names: frozenset[str]) -> Mapping[str, tuple[Listed, ...]]:
            return self._session.packages(opened, platform, names)

        wanted = split(self._on[platform], target.problem, solution, listed, self.of_conda)
        if platform in self.companions:
            from envsolve.app.packages.conda_needs import companions

            wanted = wanted._replace(
                conda=(*wanted.conda, *companions(self.companions[platform], listed, target.request.requester))
            )
        question = self._question(platform, channels, [it.spec for it in wanted.conda], virtual)
        question = question._replace(constraints=(*question.constraints, *wanted.constraints))
        try:
            packages, pins = self._together(question, target, solution, wanted)
        except CondaConflict as conflict:
            raise Conflict(Unfit(target.problem, solution, wanted.conda, virtual, channels, conflict.text)) from None
        lock = conda_lock(packages, pins, platform, virtual, (*wanted.conda, *wanted.by_pip))
        if solution is None:
            return lock
        return lock._replace(
            stack=stack_of(solution, target.hosts, lock.versions),
            environment=environment_name(solution),
            remarks=tuple(usage_remarks(solution)),
        )

    def _opened(self, channels: Iterable[str]) -> tuple[str, ...]:
        """Channels with their logins."""
        return tuple(self._opened_by.get(channel, channel) for channel in channels)

    def _question(
        self,
        platform: Platform,
        channels: Sequence[str],
        specs: Sequence[str],
        virtual: tuple[VirtualPackage, ...],
    ) -> Question:
        return Question(
            channels=self._opened(channels),
            platform=platform,
            specs=tuple(specs),
            virtual_packages=virtual,
            constraints=() if any(map(_chooses_python, specs)) else (_USUAL_PYTHON,),
            locked=self.existing(platform).conda,
            exclude_newer=self._request.packages.exclude_newer,
        )

    def _together(
        self, question: Question, target: Target, solution: Solution | None, wanted: Split
    ) -> tuple[Sequence[CondaPackage], tuple[Pin, ...]]:
        """The conda packages and the wheels next to them. Raises CondaConflict and the errors of :meth:`part`.

        Conda packages are solved first. If wheels require other versions of these, they are solved again with these
        limits.
        """

        def solve(constraints: Sequence[str]) -> Sequence[CondaPackage]:
            constrained = question._replace(constraints=(*question.constraints, *constraints))
            packages = self._session.solve(constrained)
            _require_all_joined(target, packages)
            return packages

        if not wanted.needs_pip:
            return solve(()), ()
        if self._beside is None:
            from envsolve.app.conda.conda_wheels import CondaWheels

            self._beside = CondaWheels(
                self._lock_request.request, self._lock_request.network, self._matrix, self._environ
            )
        existing = self.existing(target.problem.platform).wheels
        try:
            packages, wheels = self._beside.with_conda(
                solve, target, solution, wanted.python, existing, self._lock_request.counted
            )
        except UnsolvableError as error:
            raise _what_next(error, wanted, solution) from error
        if wheels.frameworks:
            raise Joined(wheels.frameworks)
        needed = wheels.companions - self.companions.get(target.problem.platform, frozenset())
        if needed:
            raise CompanionsNeeded(target.problem.platform, needed)
        self.notes += wheels.notes
        return packages, tuple(map(_without_last_stroke, wheels.pins))

    def made(self, lock: Lock, targets: Sequence[Target], solution: Solution | None) -> Made:
        """The record of how ``lock`` was made with ``solution``; ``targets`` are all targets that were solved."""
        recorded = self._lock_request.recorded or self._request
        return made(recorded, self._request.packages.exclude_newer, lock, targets, solution, self._matrix)

    def answer(self, target: Target, solution: Solution | None) -> Answer | None:
        """The facts about a stack; None without one."""
        if solution is None:
            return None
        command = recorded_command(self._lock_request.recorded or self._request)
        date, own = matrix_date_of(target.problem, self._matrix), stack_is_own(self._matrix, solution)
        return Answer(solution, target.hosts, command, date, __version__, own)


def made(
    recorded: Request,
    exclude_newer: str | None,
    lock: Lock,
    targets: Sequence[Target],
    solution: Solution | None,
    matrix: Matrix,
) -> Made:
    """The record of how ``lock`` was made with ``solution``, for the request ``recorded`` and all ``targets``."""
    recorded_requirements = requirements_of(recorded, Platform(lock.platform), lock.python)
    requirements, options = recorded_requirements.as_recorded(recorded)
    return Made(
        __version__,
        recorded_command(recorded),
        requirements,
        max((matrix_date_of(it.problem, matrix) for it in targets), default=None),
        bool(targets) and pins_are_own(matrix, lock.pins, Platform(lock.platform)),
        exclude_newer,
        request_digest=recorded_requirements.digest,
        options=options,
        evidence=evidence_of(lock, solution, matrix, {it.name: Origin.UNREAD for it in lock.pins if _is_unread(it)}),
    )


def _is_unread(pin: Pin) -> bool:
    """Whether a wheel involves CUDA; wheels next to conda packages are not read."""
    return is_unknown(pin.name, pin.version, ()) and is_about_cuda(pin.name, pin.requires)


def sources_of(request: Request) -> tuple[str, ...]:
    """The files with requirements, or else the project, as a lock records them."""
    own = (request.requester.file,) if request.requester.file else ()
    return tuple(name for name in request.packages.files if name != "-") or own


def _chooses_python(spec: str) -> bool:
    """Whether ``spec`` decides which build of Python is used, if only by requesting one without the GIL."""
    parsed = parse_match_spec(spec)
    return _FREE_THREADED in parsed.name or (parsed.name == "python" and parsed.build not in ("", "*"))


def _what_next(error: UnsolvableError, wanted: Split, solution: Solution | None) -> Exception:
    """What to try if wheels cannot be resolved: conda's packages instead, another stack, or nothing."""
    if wanted.elsewhere:
        return TakenFromConda(wanted.elsewhere, error)
    if solution is not None and any(it.release.source.is_wheel for it in solution.choices):
        return WheelsRefused(error, solution)
    return error


def _without_last_stroke(pin: Pin) -> Pin:
    """``pin`` with its index without a trailing slash, so that equal indexes compare equal."""
    return pin if pin.index_url is None else pin._replace(index_url=pin.index_url.rstrip("/"))


def _require_all_joined(target: Target, packages: Sequence[CondaPackage]) -> None:
    """Raise Joined if a dependency is a framework that is not in the stack: it may be for another GPU."""
    known = {it.framework for it in target.problem.frameworks}
    came = dict.fromkeys(FRAMEWORK_OF_CONDA[it.name] for it in packages if it.name in FRAMEWORK_OF_CONDA)
    new = tuple(it for it in came if it not in known)
    if new and not target.problem.cpu:
        raise Joined(new)
