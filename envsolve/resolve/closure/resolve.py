"""From requirements to a closure, or to the requirements that conflict."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import NamedTuple

from resolvelib import BaseReporter, ResolutionImpossible
from resolvelib.resolvers import Criterion, RequirementInformation, ResolutionTooDeep
from resolvelib.structs import State

from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, OutsideError, UnsolvableError
from envsolve.index.client import Indexes, package_file
from envsolve.index.metadata import Metadata
from envsolve.model.need import Need
from envsolve.model.package import Pin, Present
from envsolve.model.versions import LibcVersion
from envsolve.resolve.closure.backjumping import BackjumpingResolution
from envsolve.resolve.closure.behind import Behind, Unlimited, behind, beyond_glibc, months_of, unlimited
from envsolve.resolve.closure.bounds import THE_STACK
from envsolve.resolve.closure.provider import Pick, Provider, Requirement
from envsolve.resolve.closure.releases import Wanted
from envsolve.resolve.closure.settle import Reached, settled
from envsolve.resolve.closure.shared import narrow
from envsolve.resolve.closure.virtual import Virtual
from envsolve.resolve.closure.world import Judge, Limits, World

SHORT = 3000
"""The number of rounds for a search that is one of several and may have no answer."""
_SECONDS = 60
_SECONDS_WITH_BUILDS = 300
"""The time limit of a search. Building the metadata of one package takes some seconds."""
_FEW = 5
_MANY_CONFLICTS = 8
"""After these, and each time their number has doubled, the search looks for what every answer has in common."""
_TOO_MANY_CONFLICTS = 256
_FEW_TO_READ = 2
"""Metadata files of a project to fetch for that until there are too many conflicts. They cost more than most
searches."""
_MOST_CONTESTED = 200
"""After this number of projects in conflicts, the search only continues."""

Root = tuple[Need, str]
"""A requirement, and where the user wrote it: ``-r requirements.in``."""
Cause = RequirementInformation[Requirement, Pick]


Progress = Callable[[int, str], None]
"""Called with the number of packages picked, and the last of them."""


class Conflict(Exception):  # noqa: N818 - an answer, not an error: the caller decides what it means
    """No set of versions meets all requirements. ``causes`` are the last that could not be met together."""

    def __init__(self, causes: Iterable[Cause], provider: Provider) -> None:
        super().__init__("no set of versions meets all requirements")
        self.causes = tuple(causes)
        self.provider = provider


class TooLongError(Exception):
    """A search did not end within its rounds."""


class TimeUpError(Exception):
    """The search of ``provider`` reached its time limit."""

    def __init__(self, provider: Provider) -> None:
        super().__init__("the time is over")
        self.provider = provider


class Question(NamedTuple):
    """The input of a search. ``locked`` are the versions of an existing lock, which are preferred if they fit.

    ``roots`` are the requirements. ``present`` are the projects that are installed already, by normalized name: a
    requirement on one is met by its version or not at all, and its own requirements are met. ``judge`` adds what
    metadata leaves out. ``virtual`` are projects in these requirements that no index has. ``floors`` are the oldest
    versions of projects that may be used. ``newest`` are the newest versions of the requested packages, ``frameworks``
    the packages of frameworks.
    """

    roots: tuple[Root, ...]
    wanted: Wanted
    limits: Limits
    locked: Mapping[str, str]
    present: Mapping[str, Present] = {}
    judge: Judge | None = None
    virtual: tuple[Virtual, ...] = ()
    floors: Mapping[str, str] = {}
    newest: Mapping[str, str] = {}
    frameworks: Collection[str] = ()


class Found(NamedTuple):
    """Every package that a question needs, by name, without present ones.

    ``bare`` are the required extras of present projects, with their names: conda has no extras. ``behind`` are
    requested packages that are not at their newest version. ``read`` is the metadata of each package. ``beyond_glibc``
    are newer versions of requested packages, each with the C library that it needs. ``months`` is how much older each
    package is than its newest release for any platform. ``unlimited`` are packages that are much older than a framework
    that they admit. ``replaced`` are requirements that an override replaces, each with the package that has it.
    """

    pins: tuple[Pin, ...]
    bare: tuple[tuple[str, str], ...]
    behind: tuple[Behind, ...] = ()
    read: tuple[tuple[str, Metadata], ...] = ()
    beyond_glibc: tuple[tuple[str, str, LibcVersion], ...] = ()
    months: Mapping[str, float] = {}
    unlimited: tuple[Unlimited, ...] = ()
    replaced: tuple[tuple[str, Need], ...] = ()


def found_for(question: Question, indexes: Indexes, end: float, progress: Progress | None = None) -> Found:
    """Return every package that the question needs.

    Raises Conflict, OutsideError, and UnsolvableError ``search-too-long`` at ``end``, a time of the monotonic clock.
    """
    world = World(indexes, question.wanted, question.limits, question.present, question.virtual, question.judge)
    try:
        roots = tuple(it for it in question.roots if world.markers.holds(it[0].marker))
        world.look_ahead(tuple(need for need, _ in roots))
        make = partial(Provider, world, roots, question.locked, _positions(question.floors, world))
        try:
            try:
                provider, picks = resolved_and_built(make, end, progress, most_rounds=SHORT)
            except TooLongError:  # narrowing is faster, and says less about a conflict
                provider, picks = resolved_and_built(make, end, progress, narrows=True)
        except TimeUpError as error:
            raise too_long(error.provider) from None
        except Conflict as conflict:
            raise failure_behind(conflict) or conflict from None
        return finished(picks, provider, question.limits, question.newest, question.frameworks)
    finally:
        world.close()


def failure_behind(conflict: Conflict) -> OutsideError | None:
    """Return the error of a project in a conflict, a missing file or a failed build, or None."""
    world, names = conflict.provider.world, {requirement.name for requirement, _ in conflict.causes}
    failed = (*sorted(world.missing.items()), *sorted(world.failed_builds.items()))
    return next((error for (name, _), error in failed if name in names), None)


def _positions(floors: Mapping[str, str], world: World) -> dict[str, int]:
    found = {name: world.releases(name) for name in floors}
    return {name: it.first(floors[name]) for name, it in found.items() if it is not None}


def finished(
    picks: Mapping[str, Pick],
    provider: Provider,
    limits: Limits,
    newest: Mapping[str, str],
    frameworks: Collection[str] = (),
) -> Found:
    """Return the picks as the packages of a lock, each the best version next to the others. Raises OutsideError."""
    picks, reached = settled(picks, provider)
    _require_files(picks, reached, provider)
    late = tuple(behind(picks, reached, newest, limits))
    world = provider.world
    there = [it for name, it in sorted(picks.items()) if name not in world.virtual and name not in world.present]
    read = tuple((it.label, world.metadata(it.releases, it.fit.best)) for it in there)
    beyond = tuple(beyond_glibc(picks, provider, newest))
    months = {name: months_of(picks[name]) for name in newest if name in picks and name not in world.virtual}
    early = tuple(unlimited(picks, reached, newest, frameworks, provider))
    pins, bare = _pins(picks, reached, provider, limits), tuple(_bare(reached, world))
    return Found(pins, bare, late, read, beyond, months, early, tuple(_replaced(picks, reached, world)))


def resolved(
    provider: Provider,
    end: float,
    progress: Progress | None = None,
    *,
    most_rounds: int = sys.maxsize,
    narrows: bool = False,
) -> Mapping[str, Pick]:
    """Return the picks by name. The search restarts when a conflict shows which projects to decide early.

    Pages, metadata and dead ends stay cached, so a restart costs little. ``narrows`` makes a search faster, and its
    conflicts have fewer causes (envsolve.resolve.closure.shared).

    Raises Conflict, OutsideError, TooLongError after ``most_rounds``, and TimeUpError at ``end``.
    """
    while True:
        provider.first_parent.clear()
        try:
            resolution = BackjumpingResolution(provider, _Counting(provider, end, progress, narrows=narrows))
            found = resolution.resolve(provider.roots, max_rounds=most_rounds).mapping
            return {pick.name: pick for pick in found.values()}
        except _Again:
            continue
        except ResolutionImpossible as impossible:
            raise Conflict(_whole(impossible.causes, provider), provider) from None
        except ResolutionTooDeep:
            raise TooLongError from None


def resolved_and_built(
    make_provider: Callable[[], Provider],
    end: float,
    progress: Progress | None = None,
    *,
    most_rounds: int = sys.maxsize,
    narrows: bool = False,
) -> tuple[Provider, Mapping[str, Pick]]:
    """Return the picks after building every pick whose requirements only a build reports; see :func:`resolved`.

    Nothing is built for a search that has no answer whatever a build reports.
    """
    while True:
        provider = make_provider()
        picks = resolved(provider, end, progress, most_rounds=most_rounds, narrows=narrows)
        world = provider.world
        there = (it for name, it in sorted(picks.items()) if name not in world.virtual and name not in world.present)
        if not world.build((it.releases, it.fit.best) for it in there):
            return provider, picks


def too_long(provider: Provider, because: Sequence[str] = ()) -> UnsolvableError:
    """Return the error if the time ends before there is an answer.

    ``provider`` is that of the last search. ``because`` says why the newest versions conflict, if that is known.
    """
    names = sorted(provider.troubled - provider.world.virtual)[:_FEW]
    causes = [f"the newest versions conflict: {'; '.join(because)}"] if because else []
    causes += [f"versions of {', '.join(names)} were still being tried"] if names else []
    hint = Hint("limit the versions of the main packages, for example 'name>=2'")
    limit = f"{_SECONDS} seconds ({_SECONDS_WITH_BUILDS} with --allow-builds)"
    return UnsolvableError("search-too-long", f"no answer was found in {limit}", tuple(causes), (hint,))


def end_of_search(*, builds: bool) -> float:
    """Return the time of the monotonic clock at which a search that starts now ends."""
    return monotonic() + (_SECONDS_WITH_BUILDS if builds else _SECONDS)


def _require_files(picks: Mapping[str, Pick], reached: Reached, provider: Provider) -> None:
    """Raise OutsideError if a version would have been picked but the index does not have its file."""
    for (name, version), error in sorted(provider.world.missing.items()):
        pick = picks.get(name)
        position = None if pick is None else pick.releases.position(version)
        if pick is None or position is None or position <= pick.position:
            continue
        masks = (
            requirement.mask
            for requirements in reached.values()
            for requirement, by in requirements
            if requirement.name == name and by != name
        )
        if all(mask >> position & 1 for mask in (provider.root_mask(name), *masks)):
            raise error


def _whole(causes: Collection[Cause], provider: Provider) -> list[Cause]:
    """``causes`` with the reasons why the versions they are about were excluded before they were tried."""
    found = list(causes)
    found += [Cause(*it) for it in provider.dead_ends([requirement for requirement, _ in causes])]
    names = {requirement.name for requirement, _ in found}
    known = {id(requirement) for requirement, _ in found}
    whole = [
        *found,
        *(
            Cause(requirement, None)
            for requirement in provider.roots
            if requirement.name in names and id(requirement) not in known
        ),
    ]
    return [it for it in whole if not provider.is_met_by_present(it.requirement)]


def _pins(picks: Mapping[str, Pick], reached: Reached, provider: Provider, limits: Limits) -> tuple[Pin, ...]:
    world = provider.world
    via: dict[str, set[str]] = {}
    requires: dict[str, set[str]] = {}
    unknown: dict[str, list[str]] = {}
    for requirements in reached.values():
        name, extra, pick = requirements[0][0].name, requirements[0][0].extra, picks[requirements[0][0].name]
        requirers = (
            (by if by not in world.virtual else THE_STACK) or requirement.origin
            for requirement, by in requirements
            if by != name
        )
        via.setdefault(name, set()).update(requirers)
        for _, by in requirements:
            if by not in ("", name) and world.virtual.isdisjoint((by, name)):
                requires.setdefault(by, set()).add(name)
        if extra and name not in world.present and not world.has_extra(pick.releases, pick.fit.best, extra):
            unknown.setdefault(name, []).append(extra)
    return tuple(
        _pin(pick, provider, limits, via[name], requires.get(name, set()), unknown.get(name, []))
        for name, pick in sorted(picks.items())
        if name not in world.present and name not in world.virtual
    )


def _replaced(picks: Mapping[str, Pick], reached: Reached, world: World) -> Iterator[tuple[str, Need]]:
    for requirement in (requirements[0][0] for requirements in reached.values()):
        pick = picks[requirement.name]
        if requirement.name not in world.present and requirement.name not in world.virtual:
            needs = world.replaced(pick.releases, pick.fit.best, requirement.extra)
            yield from ((pick.label, need) for need in needs)


def _bare(reached: Reached, world: World) -> Iterator[tuple[str, str]]:
    requirements = (requirements[0][0] for requirements in reached.values())
    of_conda = {name for name, it in world.present.items() if it.requires is None}
    yield from sorted(
        (requirement.name, requirement.extra)
        for requirement in requirements
        if requirement.extra and requirement.name in of_conda
    )


def _pin(
    pick: Pick, provider: Provider, limits: Limits, via: set[str], requires: set[str], unknown_extras: list[str]
) -> Pin:
    world = provider.world
    _, project = world.indexes.owner(pick.releases.project, pick.fit.best)
    direct = world.indexes.direct(pick.name)
    if direct is None:
        files = tuple(package_file(project, raw) for raw in pick.fit.files)
    else:
        files = (direct.file._replace(url=without_secrets(direct.file.url)),)
    return Pin(
        name=pick.name,
        version=pick.version,
        files=files,
        index_url=world.indexes.index_of_file(pick.releases.project, pick.fit.best),
        via=tuple(sorted(via)),
        because=tuple(dict.fromkeys(_reasons(pick, provider, limits))),
        requires=tuple(sorted(requires)),
        requires_python=pick.fit.best[5],
        unknown_extras=tuple(sorted(unknown_extras)),
    )


def _reasons(pick: Pick, provider: Provider, limits: Limits) -> Iterator[str]:
    """The limits that exclude newer versions, including limits on the requirements of these.

    Each range of versions that runs on no GPU or CUDA of the stack is a limit of its own. Of these the newest counts.
    """
    world = provider.world
    everything = pick.releases.mask("")
    above = [(it, (everything & ~it.admitted(pick.releases)) >> (pick.position + 1)) for it in limits(pick.name)]
    newest = max((excluded.bit_length() for it, excluded in above if it.is_exclusion), default=0)
    for limit, excluded in above:
        if limit.because and excluded and not (limit.is_exclusion and excluded.bit_length() < newest):
            yield limit.because
    ruled_out = provider.ruled_out_above(pick)
    if ruled_out is not None:
        version, need = ruled_out
        if need.name in world.present:
            yield f"{pick.name} {version} requires {need}, and {world.present[need.name].sentence}"
        yield from (f"{pick.name} {version} requires {need}: {it.because}" for it in limits(need.name) if it.because)


class _Counting(BaseReporter[Requirement, Pick, str]):
    """Reports refused candidates to the provider, so that it searches for dead ends."""

    def __init__(self, provider: Provider, end: float, progress: Progress | None, *, narrows: bool) -> None:
        self._provider = provider
        self._end = end
        self._progress = progress
        self._narrows = narrows
        self._conflicts = 0

    def ending_round(self, index: int, state: State[Requirement, Pick, str]) -> None:
        """Report one more picked version. Raises TimeUpError."""
        if monotonic() > self._end:
            raise TimeUpError(self._provider)
        if self._progress is not None:
            self._progress(len(state.mapping), next(reversed(state.mapping), ""))

    def adding_requirement(self, requirement: Requirement, parent: Pick | None) -> None:
        """Remember which package first required each project."""
        self._provider.first_parent.setdefault(requirement.identifier, (requirement, parent))

    def rejecting_candidate(self, criterion: Criterion[Requirement, Pick], candidate: Pick) -> None:
        """Count one more candidate that conflicts with the picks."""
        self._provider.refused += 1
        self._provider.rejected.add(candidate.name)
        *_, last = criterion.information
        self._provider.refuse(candidate, last.requirement)
        self._provider.passed_over(candidate.releases, candidate.position)
        self._provider.troubled |= {candidate.name, *(requirement.name for requirement in criterion.iter_requirement())}

    def resolving_conflicts(self, causes: Collection[Cause]) -> None:
        """Handle a dead end. Restart if it involves projects that were in none before."""
        involved = {requirement.identifier for requirement, _ in causes} | {
            parent.identifier for _, parent in causes if parent
        }
        names = {requirement.name for requirement, _ in causes} | {parent.name for _, parent in causes if parent}
        self._provider.conflicts.update(names)
        self._conflicts += 1
        is_due = self._conflicts >= _MANY_CONFLICTS and self._conflicts & (self._conflicts - 1) == 0
        if is_due:  # decide the packages that require them early too: a framework may come last
            parents = (self._provider.first_parent.get(it, (None, None))[1] for it in tuple(involved))
            involved |= {it.identifier for it in parents if it is not None}
        is_new = not involved <= self._provider.contested and len(self._provider.contested) < _MOST_CONTESTED
        if is_new:
            self._provider.contested |= involved
        to_read = _FEW_TO_READ if self._conflicts < _TOO_MANY_CONFLICTS else sys.maxsize
        if self._narrows and is_due and narrow(self._provider, self._provider.roots, to_read, self._end):
            raise _Again
        if is_new:
            raise _Again


class _Again(Exception):  # noqa: N818 - nothing is wrong
    """The search has to restart, with what was learned."""
