"""Conda locks: the stack for the GPU from the builds on the channels, then all packages around it, including wheels.

The stack is solved among the builds that the channels have, and passed to the solver of conda packages as match specs.
If the packages around it cannot be solved, the next best stack is tried. A framework that is only a dependency joins
the stack, so that it is never a build for another GPU or for the CPU. Packages that no channel has come from package
indexes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from packaging.specifiers import SpecifierSet

from envsolve.app.conda.conda_part import (
    CompanionsNeeded,
    Conflict,
    Joined,
    NotYet,
    Parts,
    TakenFromConda,
    WheelsRefused,
    sources_of,
)
from envsolve.app.conda.conda_refusal import Unfit, conda_refusal, not_on_channels
from envsolve.app.conda.conda_stacks import leave_out_wheels, narrow, other_toolkit
from envsolve.app.lock.lock_request import LockRequest
from envsolve.app.packages.channel_builds import ChannelBuilds
from envsolve.app.packages.conda_requirements import (
    refuse_overrides,
    requirements_on,
    with_cuda,
    with_frameworks,
    with_stack,
)
from envsolve.app.packages.lock_indexes import name_index
from envsolve.app.request.targets import Target, targets_of
from envsolve.app.solve.solving import Solved, notes_of, request_without_secrets, solutions_of
from envsolve.conda.session import Session
from envsolve.errors import OutsideError, UnsolvableError
from envsolve.lockfile.conda_specs import channels_of
from envsolve.lockfile.formats import write_conda_lock
from envsolve.lockfile.lock import Lock
from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.note import Note
from envsolve.model.request import Policy
from envsolve.model.solution import Solution
from envsolve.resolve.solver import Solver, source_groups

_MOST_ATTEMPTS = 16
"""The number of stacks that are tried if the packages around them cannot be solved."""
_FEW = 4

Stack = tuple[Target, Solution | None]
"""A target and its stack; None without frameworks."""


def lock_conda(lock_request: LockRequest, session: Session, matrix: Matrix, environ: Mapping[str, str]) -> Solved:
    """The lock for every platform of the request. ``session`` is the session of the solver of conda packages.

    Raises UsageError; UnsolvableError if no stack or no set of packages fits; OutsideError if a channel or an index
    fails.
    """
    locking = _Locking(lock_request, session, matrix, environ)
    try:
        return locking.made()
    except OutsideError as error:
        name_index(error, lock_request.request, locking.parts.indexes)
        raise
    finally:
        locking.parts.close()


class _Locking:
    """One request, until its packages are solved."""

    def __init__(self, lock_request: LockRequest, session: Session, matrix: Matrix, environ: Mapping[str, str]) -> None:
        self._lock_request, self._matrix = lock_request, matrix
        self._request, self._hidden = request_without_secrets(lock_request.request)
        refuse_overrides(self._request)
        targets = targets_of(self._request, matrix, environ)
        self._on = {
            it.problem.platform: requirements_on(lock_request.request.packages, it.problem.platform) for it in targets
        }
        for on in self._on.values():
            if on.python is not None:
                from envsolve.app.packages.requirements import require_sources_in

                require_sources_in(on.python, self._request.format, beside_conda=bool(on.conda))
        self.parts = Parts(lock_request, session, self._request, self._on, matrix, environ)
        channels = self.parts.given_channels
        self._targets = tuple(with_stack(it, self._on[it.problem.platform], channels) for it in targets)
        sources = {source for it in self._targets for group in source_groups(it.request) for source in group}
        self._builds = ChannelBuilds(self.parts.listed, sources)
        self._toolkits: dict[Platform, SpecifierSet] = {}
        self._first: UnsolvableError | None = None

    def made(self) -> Solved:
        """See lock_conda."""
        for _ in range(_MOST_ATTEMPTS):
            attempted = tuple(with_cuda(it, self._toolkits.get(it.problem.platform)) for it in self._targets)
            try:
                self.parts.notes.clear()
                stacks, differing = self._stacks(attempted)
                made = tuple(self.parts.part(target, solution) for target, solution in stacks)
            except NotYet as trouble:
                self._learn(trouble, attempted)
            except UnsolvableError as error:
                raise self._first or error from None
            else:
                return self._finished(made, stacks, differing)
        assert self._first is not None
        raise self._first

    def _learn(self, trouble: NotYet, attempted: Sequence[Target]) -> None:
        """Prepare the next attempt. Raises UnsolvableError if there is none."""
        is_with_own_toolkit, self._toolkits = not self._toolkits, {}
        match trouble:
            case Joined(names=names):
                self._targets = tuple(with_frameworks(it, names) for it in self._targets)
            case CompanionsNeeded(platform=platform, names=names):
                known = self.parts.companions
                known[platform] = known.get(platform, frozenset()) | names
            case WheelsRefused(error=error, solution=solution):
                self._first = self._first or error
                leave_out_wheels(self._builds, solution, error)
            case TakenFromConda(names=names, error=error):
                self._first = self._first or error
                self.parts.of_conda |= names
            case Conflict(unfit=unfit):
                self._first = self._first or conda_refusal(unfit, self._request)
                self._toolkits = self._other_toolkit(unfit, attempted) if is_with_own_toolkit else {}
                if not self._toolkits and not narrow(self._builds, unfit, partial(self.parts.solved, unfit)):
                    raise self._first

    def _other_toolkit(self, unfit: Unfit, targets: Sequence[Target]) -> dict[Platform, SpecifierSet]:
        """The toolkit, by platform, with which the builds of ``unfit`` are available and run; empty if none."""
        platform = unfit.problem.platform
        target = next(it for it in targets if it.problem.platform is platform)
        solver = Solver(self._matrix, self._builds)
        for cuda in other_toolkit(unfit, partial(self.parts.solved, unfit)):
            other = with_cuda(target, cuda)
            if solver.can_solve(other.request, other.problem):
                return {platform: cuda}
        return {}

    def _stacks(self, targets: tuple[Target, ...]) -> tuple[tuple[Stack, ...], tuple[Note, ...]]:
        """The best stack for each target on the channels, with a preference for existing locks."""
        involved = tuple(it for it in targets if it.problem.frameworks)
        if not involved:
            return tuple((target, None) for target in targets), ()
        narrowed = tuple(map(self._near_existing, involved))
        try:
            solutions, differing = solutions_of(narrowed, Solver(self._matrix, self._builds))
        except UnsolvableError:
            raise self._not_there(involved) from None  # without the preference for the existing lock
        found = iter(zip(narrowed, map(self._builds.with_python_reason, solutions), strict=True))
        return tuple(next(found) if it.problem.frameworks else (it, None) for it in targets), differing

    def _near_existing(self, target: Target) -> Target:
        existing = self.parts.existing(target.problem.platform).stack
        if not existing.packages or target.request.prefer is not Policy.NEWEST_FRAMEWORK:
            return target
        return target._replace(request=target.request._replace(prefer=Policy.LOCKED, locked=existing))

    def _not_there(self, targets: tuple[Target, ...]) -> UnsolvableError:
        """Why the channels have no stack: because there is none at all, or because they lack its packages."""
        try:
            solutions, _ = solutions_of(targets, Solver(self._matrix))
        except UnsolvableError as error:
            return error
        return not_on_channels(solutions[0], channels_of(solutions[0]), self._request)

    def _finished(
        self,
        made: tuple[Lock, ...],
        stacks: Sequence[Stack],
        differing: tuple[Note, ...],
    ) -> Solved:
        request, indexes = self._request, self.parts.indexes
        solved = [target for target, solution in stacks if solution is not None]
        channels = tuple(dict.fromkeys(it for _, solution in stacks for it in self.parts.channels(solution)))
        sources = sources_of(request)
        variables = tuple(dict(pair for it in self._on.values() for pair in it.variables).items())
        locks = tuple(
            lock._replace(
                made=self.parts.made(lock, solved, solution),
                channels=channels,
                sources=sources,
                variables=variables,
                default_index="" if indexes is None else indexes.default_shown,
                default_is_plain=indexes is None or indexes.is_plain,
            )
            for lock, (_, solution) in zip(made, stacks, strict=True)
        )
        notes = dict.fromkeys((*self._notes(stacks), *differing))
        answers = (self.parts.answer(*it) for it in stacks)
        files = (
            [] if not self._lock_request.writes else [[lock] for lock in locks] if self._lock_request.apart else [locks]
        )
        texts = (it for group in files for it in write_conda_lock(group, request.format))
        return Solved(tuple(texts), tuple(notes), tuple(filter(None, answers)), locks)

    def _left_out(self, target: Target, solution: Solution | None) -> Iterator[Note]:
        wanted = self._on[target.problem.platform].python
        if wanted is not None:
            from envsolve.app.packages.lock_frameworks import left_out_of_stack
            from envsolve.app.packages.lock_stacks import interpreter_of

            there = set() if solution is None else {it.release.framework for it in solution.choices}
            yield from left_out_of_stack(wanted, there, interpreter_of(target.problem, solution))

    def _notes(self, stacks: Sequence[Stack]) -> Iterator[Note]:
        better = self._first
        if better is not None:
            text = f"this is not the newest stack: {better.message} ({'; '.join(better.cause[:_FEW])})"
            yield Note("not-newest-stack", text).about(refusal=better.code, because=better.message)
        yield from notes_of([target for target, _ in stacks], [solution for _, solution in stacks])
        for target, solution in stacks:
            yield from self._left_out(target, solution)
        for requirements in self._on.values():
            yield from requirements.notes
        yield from self.parts.notes
        yield from self.parts.matrix_notes
        yield from self.parts.index_notes
        yield from self._hidden
        if self.parts.has_logins and not self._hidden:
            yield Note("logins-left-out", "logins and tokens in channel URLs are not written")
