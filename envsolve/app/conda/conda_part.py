"""The lock for one platform around a stack: conda packages first, then the wheels beside them.

Where they cannot be had, an exception says what to try instead. None of these is for users:
:mod:`envsolve.app.conda.conda_locking` goes on from them.
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
from envsolve.lockfile.remarks import use_remarks
from envsolve.lockfile.stack import stack_of
from envsolve.matrix.load import Matrix
from envsolve.model.conda import CondaPackage, VirtualPackage
from envsolve.model.host import Platform
from envsolve.model.match_spec import parse_match_spec
from envsolve.model.note import Note
from envsolve.model.release import Source
from envsolve.model.request import Request
from envsolve.model.solution import Solution
from envsolve.resolve.closure.unknown_builds import goes_with_cuda, is_unknown

if TYPE_CHECKING:
    from envsolve.app.conda.conda_wheels import CondaWheels
    from envsolve.app.packages.lock_indexes import Places
    from envsolve.model.package import Pin

_FREE_THREADED = "freethreading"
_USUAL_PYTHON = "python[build='^.*(_cpython|_cp3[0-9]+|h[0-9a-f]+_[0-9]+)$']"
"""CPython with its lock. conda-forge has builds of every version without it (cp313t) and of PyPy beside those, which
only the name of the build distinguishes, and which a solver takes where a package for the usual one is missing."""


class NotYet(Exception):  # noqa: N818  # what was learned leads on
    """The packages cannot be had like this; another attempt may do, with what was learned."""


class Conflict(NotYet):
    """The packages around a stack do not go together."""

    def __init__(self, unfit: Unfit) -> None:
        super().__init__(unfit.text)
        self.unfit = unfit


class WheelsRefused(NotYet):
    """The wheels of a stack, or those around them, cannot be had."""

    def __init__(self, error: UnsolvableError, solution: Solution) -> None:
        super().__init__(error)
        self.error, self.solution = error, solution


class TakenFromConda(NotYet):
    """Projects that have no wheels for the Python of a stack are to be conda's, for whatever Python it has them."""

    def __init__(self, names: frozenset[str], error: UnsolvableError) -> None:
        super().__init__(names)
        self.names, self.error = names, error


class CompanionsNeeded(NotYet):
    """Wheels require what has to be conda's, as PyTorch is; ``names`` are the projects."""

    def __init__(self, platform: Platform, names: frozenset[str]) -> None:
        super().__init__(names)
        self.platform, self.names = platform, names


class Joined(NotYet):
    """Frameworks came in as dependencies; ``names`` are the matrix's."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(names)
        self.names = names


class Parts:
    """Makes the lock of each platform for one command. ``request`` is the one of ``asked`` with bare addresses.

    ``notes`` are what to note of the parts that were made, ``of_conda`` the projects that are to be conda's for
    whatever Python, ``companions`` those that wheels need from conda on a platform.
    """

    def __init__(
        self,
        asked: LockRequest,
        session: Session,
        request: Request,
        on: Mapping[Platform, CondaRequirements],
        matrix: Matrix,
        environ: Mapping[str, str],
    ) -> None:
        self._asked, self._session, self._request, self._on = asked, session, request, on
        self._matrix, self._environ = matrix, environ
        given = (*asked.request.channels, *(channel for it in on.values() for channel in it.channels))
        self._opened_by = {without_secrets(channel): channel for channel in given}
        self._beside: CondaWheels | None = None
        self.notes: list[Note] = []
        self.of_conda: frozenset[str] = frozenset()
        self.companions: dict[Platform, frozenset[str]] = {}
        self.kept = functools.cache(lambda it: versions_in_conda_lock(asked.there(it), request.packages))
        """What stays of the lock that is there, by the platform."""

    def close(self) -> None:
        """End the connections to package indexes."""
        if self._beside is not None:
            self._beside.close()

    @property
    def given_channels(self) -> tuple[str, ...]:
        """The channels that were named, bare."""
        return tuple(self._opened_by)

    @property
    def has_logins(self) -> bool:
        """Whether a channel was named with what opens it."""
        return any(bare != given for bare, given in self._opened_by.items())

    @property
    def matrix_notes(self) -> tuple[Note, ...]:
        """What was ignored of the matrix."""
        return self._matrix.notes

    @property
    def index_notes(self) -> tuple[Note, ...]:
        """What to know of the settings and the cache of package indexes."""
        return () if self._beside is None else self._beside.notes

    @property
    def indexes(self) -> Places | None:
        """The package indexes that wheels are from; None if there are no wheels."""
        return None if self._beside is None else self._beside.where

    def channels(self, solution: Solution | None) -> tuple[str, ...]:
        """The channels that a stack is installed from, bare."""
        return with_conda_forge(self._opened_by) if solution is None else tuple(channels_of(solution))

    def listed(self, source: Source, platform: Platform, names: frozenset[str]) -> Mapping[str, tuple[Listed, ...]]:
        """What the channels that builds of ``source`` are installed from have of some names."""
        assert source.channel is not None
        named = map(channel_name, self._opened_by)
        own = () if source is Source.CONDA_FORGE or source.channel in named else (source.channel,)
        return self._session.packages(self._opened(with_conda_forge((*own, *self._opened_by))), platform, names)

    def solved(self, unfit: Unfit, specs: Sequence[str]) -> Sequence[CondaPackage] | None:
        """What the channels have for other specs than those of ``unfit``; None if nothing fits together."""
        question = self._question(unfit.problem.platform, unfit.channels, specs, unfit.virtual_packages)
        try:
            return self._session.solve(question)
        except CondaConflict:
            return None

    def part(self, target: Target, solution: Solution | None) -> Lock:
        """The packages for one platform, and what shaped them; who made the lock is for :mod:`.conda_locking` to add.

        Raises Conflict, Joined, CompanionsNeeded, WheelsRefused, TakenFromConda, and UnsolvableError and OutsideError
        for users.
        """
        platform = target.problem.platform
        self._asked.show(f"conda packages for {platform}")
        channels = self.channels(solution)
        virtual = virtual_packages(target.problem, solution, target.hosts, self._matrix.cuda, self._environ)
        opened = self._opened(channels)

        def listed(names: frozenset[str]) -> Mapping[str, tuple[Listed, ...]]:
            return self._session.packages(opened, platform, names)

        asked = split(self._on[platform], target.problem, solution, listed, self.of_conda)
        if platform in self.companions:
            from envsolve.app.packages.conda_needs import companions

            asked = asked._replace(
                conda=(*asked.conda, *companions(self.companions[platform], listed, target.request.asker))
            )
        question = self._question(platform, channels, [it.spec for it in asked.conda], virtual)
        question = question._replace(constraints=(*question.constraints, *asked.constraints))
        try:
            packages, pins = self._together(question, target, solution, asked)
        except CondaConflict as conflict:
            raise Conflict(Unfit(target.problem, solution, asked.conda, virtual, channels, conflict.text)) from None
        lock = conda_lock(packages, pins, platform, virtual, (*asked.conda, *asked.by_pip))
        if solution is None:
            return lock
        return lock._replace(
            stack=stack_of(solution, target.hosts, lock.versions),
            environment=environment_name(solution),
            remarks=tuple(use_remarks(solution)),
        )

    def _opened(self, channels: Iterable[str]) -> tuple[str, ...]:
        """Channels with what opens them."""
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
            held=self.kept(platform).conda,
            exclude_newer=self._request.packages.exclude_newer,
        )

    def _together(
        self, question: Question, target: Target, solution: Solution | None, asked: Split
    ) -> tuple[Sequence[CondaPackage], tuple[Pin, ...]]:
        """The conda packages and the wheels beside them; raises CondaConflict and what :meth:`part` does.

        Conda chooses first; where wheels require other versions of that, it chooses again among these.
        """

        def solve(constraints: Sequence[str]) -> Sequence[CondaPackage]:
            constrained = question._replace(constraints=(*question.constraints, *constraints))
            packages = self._session.solve(constrained)
            _require_all_joined(target, packages)
            return packages

        if not asked.needs_pip:
            return solve(()), ()
        if self._beside is None:
            from envsolve.app.conda.conda_wheels import CondaWheels

            self._beside = CondaWheels(self._asked.request, self._asked.network, self._matrix, self._environ)
        held = self.kept(target.problem.platform).wheels
        try:
            packages, wheels = self._beside.with_conda(solve, target, solution, asked.python, held, self._asked.counted)
        except UnsolvableError as error:
            raise _what_next(error, asked, solution) from error
        if wheels.frameworks:
            raise Joined(wheels.frameworks)
        needed = wheels.companions - self.companions.get(target.problem.platform, frozenset())
        if needed:
            raise CompanionsNeeded(target.problem.platform, needed)
        self.notes += wheels.notes
        return packages, tuple(map(_without_last_stroke, wheels.pins))

    def made(self, lock: Lock, targets: Sequence[Target], solution: Solution | None) -> Made:
        """How ``lock`` of ``solution`` came to be; ``targets`` are all that a stack was solved for."""
        recorded = self._asked.recorded or self._request
        return made(recorded, self._request.packages.exclude_newer, lock, targets, solution, self._matrix)

    def answer(self, target: Target, solution: Solution | None) -> Answer | None:
        """The facts of a stack; None without one."""
        if solution is None:
            return None
        command = recorded_command(self._asked.recorded or self._request)
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
    """How ``lock`` of ``solution`` came to be: for the request ``recorded``, with a stack for each of ``targets``."""
    asked = requirements_of(recorded, Platform(lock.platform), lock.python)
    requirements, options = asked.as_recorded(recorded)
    return Made(
        __version__,
        recorded_command(recorded),
        requirements,
        max((matrix_date_of(it.problem, matrix) for it in targets), default=None),
        bool(targets) and pins_are_own(matrix, lock.pins, Platform(lock.platform)),
        exclude_newer,
        asked_digest=asked.digest,
        options=options,
        evidence=evidence_of(lock, solution, matrix, {it.name: Origin.UNREAD for it in lock.pins if _is_unread(it)}),
    )


def _is_unread(pin: Pin) -> bool:
    """Whether a wheel has to do with CUDA; beside conda packages none is read."""
    return is_unknown(pin.name, pin.version, ()) and goes_with_cuda(pin.name, pin.requires)


def sources_of(request: Request) -> tuple[str, ...]:
    """The files that ask, or else the project, as a lock names them."""
    own = (request.asker.file,) if request.asker.file else ()
    return tuple(name for name in request.packages.files if name != "-") or own


def _chooses_python(spec: str) -> bool:
    """Whether ``spec`` says which build of Python is wanted, if only by asking for one without its lock."""
    parsed = parse_match_spec(spec)
    return _FREE_THREADED in parsed.name or (parsed.name == "python" and parsed.build not in ("", "*"))


def _what_next(error: UnsolvableError, asked: Split, solution: Solution | None) -> Exception:
    """What may help where wheels cannot be had: conda's packages of them, another stack, or nothing."""
    if asked.elsewhere:
        return TakenFromConda(asked.elsewhere, error)
    if solution is not None and any(it.release.source.is_wheel for it in solution.choices):
        return WheelsRefused(error, solution)
    return error


def _without_last_stroke(pin: Pin) -> Pin:
    """``pin`` with its index spelled as all others are, so that the same ones are seen to be the same."""
    return pin if pin.index_url is None else pin._replace(index_url=pin.index_url.rstrip("/"))


def _require_all_joined(target: Target, packages: Sequence[CondaPackage]) -> None:
    """Raise Joined if a framework came in that the stack does not know: it may be for another GPU."""
    known = {it.framework for it in target.problem.frameworks}
    came = dict.fromkeys(FRAMEWORK_OF_CONDA[it.name] for it in packages if it.name in FRAMEWORK_OF_CONDA)
    new = tuple(it for it in came if it not in known)
    if new and not target.problem.cpu:
        raise Joined(new)
