"""The resolvelib provider for packages.

Versions are preferred in this order: the locked version, the newest version with a wheel, and, if builds are allowed,
the newest with source. Pre-releases count only if a requirement names one, or if a project has nothing else, as in uv;
never because the final releases do not fit. Yanked versions count only if they are pinned (PEP 592), which an existing
lock does as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from resolvelib import AbstractProvider

from envsolve.errors import OutsideError
from envsolve.model.need import Need, is_pin, specifier_of
from envsolve.resolve.closure.releases import Fit, Releases, Unfit, descending
from envsolve.resolve.closure.world import World

if TYPE_CHECKING:
    from resolvelib.resolvers import RequirementInformation


class Requirement:
    """A requirement: versions of a project, or of a project with an extra.

    ``origin`` is where the user wrote it, "" for a requirement of a package. ``mask`` contains the versions in its
    range.
    """

    __slots__ = ("extra", "identifier", "mask", "name", "origin", "releases", "specifier")

    def __init__(self, name: str, extra: str, specifier: str, releases: Releases | None, origin: str = "") -> None:
        self.identifier = f"{name}[{extra}]" if extra else name
        self.name, self.extra, self.specifier, self.origin = name, extra, specifier, origin
        self.releases = releases
        self.mask = 0 if releases is None else releases.mask(specifier)

    def __repr__(self) -> str:
        return f"{self.identifier}{self.specifier}"


class Pick:
    """A candidate: one version of a project, or of a project with an extra."""

    __slots__ = ("extra", "fit", "identifier", "name", "position", "releases")

    def __init__(self, name: str, extra: str, releases: Releases, position: int, fit: Fit) -> None:
        self.identifier = f"{name}[{extra}]" if extra else name
        self.name, self.extra, self.releases, self.position, self.fit = name, extra, releases, position, fit

    @property
    def version(self) -> str:
        """The version as the index writes it; "" if only a build could report it."""
        return self.releases.version(self.position)

    @property
    def label(self) -> str:
        """The name with the version."""
        return f"{self.name} {self.version}".rstrip()

    def __repr__(self) -> str:
        return f"{self.identifier}=={self.version}"


class Provider(AbstractProvider[Requirement, Pick, str]):
    """Answers resolvelib from ``world``. ``locked`` are the versions of an existing lock, by name.

    ``floors`` are the positions of the oldest versions of projects that may be used. With floors, the search is one of
    several, so a requested extra is never dropped either.
    """

    def __init__(
        self,
        world: World,
        roots: Sequence[tuple[Need, str]],
        locked: Mapping[str, str],
        floors: Mapping[str, int] | None = None,
    ) -> None:
        self.world = world
        self._locked = locked
        self._floors = floors or {}
        self._picks: dict[tuple[str, str, int], Pick] = {}
        self._requirements: dict[tuple[str, str, str], Requirement] = {}
        self._dependencies: dict[int, tuple[Requirement, ...]] = {}
        self._dead: dict[tuple[str, str, int, int, int], bool] = {}
        self._dead_masks: dict[str, int] = {}
        self._unmet: dict[tuple[str, int], tuple[Fit, Need]] = {}
        """Why the dead versions are dead: a requirement that cannot be met."""
        self._passed: dict[str, int] = {}
        self._tried: dict[str, int] = {}
        self.lacks_extra = False
        """Whether a version was refused because it lacks a requested extra."""
        self.refused = 0
        """How many candidates conflicted with earlier picks. Dead ends are searched from the first on."""
        self.contested: set[str] = set()
        """Projects that were part of a conflict. They are decided as early as possible, so that the next conflict shows
        early."""
        self.conflicts = Counter[str]()
        """How many conflicts each project was part of."""
        self.rejected: set[str] = set()
        """The projects of which a version was refused because of its requirements."""
        self.troubled: set[str] = set()
        """The projects whose versions conflicted. Dead ends are searched only among them."""
        self.roots = _distinct([requirement for need, origin in roots for requirement in self._of_need(need, origin)])
        self._root_masks: dict[str, int] = {}
        self.first_parent: dict[str, tuple[Requirement, Pick | None]] = {}
        """The first requirement on each project in the last round, and its package: the path from a conflict to the
        request."""
        self._roots_of: dict[str, list[Requirement]] = {}
        for requirement in self.roots:
            self._roots_of.setdefault(requirement.name, []).append(requirement)
        self._root_prereleases = {
            requirement.name for requirement in self.roots if _names_prerelease(requirement.specifier)
        }

    def learn_from(self, other: Provider) -> None:
        """Reuse what a search in the same world learned about conflicts, whatever its floors were."""
        self.refused, self.contested, self.conflicts = other.refused, set(other.contested), other.conflicts.copy()
        self.rejected, self.troubled = set(other.rejected), set(other.troubled)

    def identify(self, requirement_or_candidate: Requirement | Pick) -> str:
        """Return the project, with the extra if there is one."""
        return requirement_or_candidate.identifier

    def get_preference(
        self,
        identifier: str,
        resolutions: Mapping[str, Pick],
        candidates: Mapping[str, Iterator[Pick]],
        information: Mapping[str, Iterator[RequirementInformation[Requirement, Pick]]],
        backtrack_causes: Sequence[RequirementInformation[Requirement, Pick]],
    ) -> tuple[bool, bool, bool, str]:
        """Order identifiers: those with one version left first, then what was requested, then by name.

        Virtual projects and what is decided with them come last, since others determine them, unless they are part of
        one conflict after another.
        """
        requirements = [it.requirement for it in information[identifier]]
        name = identifier.partition("[")[0]
        is_pinned = any(requirement.mask & (requirement.mask - 1) == 0 for requirement in requirements)
        is_requested = any(requirement.origin for requirement in requirements)
        is_late = (name in self.world.virtual or name in self.world.late) and self.conflicts[name] < _MANY_CONFLICTS
        return is_late, not is_pinned, not is_requested, identifier

    def narrow_requirement_selection(
        self,
        identifiers: Iterable[str],
        resolutions: Mapping[str, Pick],
        candidates: Mapping[str, Iterator[Pick]],
        information: Mapping[str, Iterator[RequirementInformation[Requirement, Pick]]],
        backtrack_causes: Sequence[RequirementInformation[Requirement, Pick]],
    ) -> Iterable[str]:
        """Return the next identifiers in the order they were met, but first those that were part of a conflict."""
        if self.contested:
            found = [identifier for identifier in identifiers if identifier in self.contested]
            if found:
                return found
        return [next(iter(identifiers))]

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[Requirement]],
        incompatibilities: Mapping[str, Iterator[Pick]],
    ) -> Callable[[], Iterator[Pick]] | tuple[()]:
        """Return the versions that meet all requirements, best first."""
        own = list(requirements[identifier])
        if not own:  # resolvelib also asks about projects that only abandoned picks require
            name, _, extra = identifier.partition("[")
            own = [self._requirement(name, extra.removesuffix("]"), "", "")]
        first = own[0]
        if first.extra:
            own += requirements[first.name]
        releases = first.releases
        if releases is None:
            return ()
        dead = self._dead_masks.get(first.name, 0) | self._dead_masks.get(first.identifier, 0)
        mask = self.root_mask(first.name) & ~dead
        for requirement in own:
            mask &= requirement.mask
        excluded = 0
        for pick in incompatibilities[identifier]:
            excluded |= 1 << pick.position
        if not mask & ~excluded:
            return ()
        if excluded:
            self._go_on_from(releases, excluded)
        pins = self.is_pinned(first.name, own)
        stages = self._stages(releases, own)
        return lambda: self._candidates(first, mask, excluded, stages, pins=pins)

    def is_satisfied_by(self, requirement: Requirement, candidate: Pick) -> bool:
        """Whether the version is in the range."""
        return requirement.mask >> candidate.position & 1 == 1

    def get_dependencies(self, candidate: Pick) -> tuple[Requirement, ...]:
        """Return the requirements of the version, with its extra. Raises OutsideError."""
        known = self._dependencies.get(id(candidate))
        if known is None:
            known = self._dependencies[id(candidate)] = self._worked_out(candidate)
        return known

    def root_mask(self, name: str) -> int:
        """Return the versions of a project that the user and the stack allow, whatever packages require."""
        if name not in self._root_masks:
            releases = self.world.releases(name)
            mask = 0 if releases is None else self.allowed(releases)
            for requirement in self._roots_of.get(name, ()):
                mask &= requirement.mask
            self._root_masks[name] = mask
        return self._root_masks[name]

    def allowed(self, releases: Releases) -> int:
        """Return the versions of a project within its limits and from its floor on, whatever anyone requires."""
        floor = self._floors.get(releases.project.name, 0)
        return self.world.limited(releases) >> floor << floor

    def bound_root(self, name: str, mask: int) -> bool:
        """Allow only ``mask`` of a project, as every answer requires; return whether that excludes a version."""
        before = self.root_mask(name)
        self._root_masks[name] = before & mask
        if before & ~mask:
            self._dead.clear()
        return before & ~mask != 0

    def dead_ends(self, requirements: Iterable[Requirement]) -> Iterator[tuple[Requirement, Pick]]:
        """Yield the requirements that no version meets, each with the version that has it.

        Versions that ``requirements`` admit are searched first, then versions that the requirements found admit.
        """
        waiting, seen = list(requirements), set[str]()
        while waiting:
            requirement = waiting.pop(0)
            if requirement.name in seen or requirement.releases is None:
                continue
            seen.add(requirement.name)
            for position in descending(requirement.mask & self.root_mask(requirement.name)):
                if (requirement.name, position) in self._unmet:
                    fit, need = self._unmet[requirement.name, position]
                    unmet = self._requirement(need.name, "", need.specifier, "")
                    yield unmet, Pick(requirement.name, "", requirement.releases, position, fit)
                    waiting.append(unmet)

    def required_by(self, name: str) -> list[str]:
        """Return who first required a project in the last round: packages, or where the user wrote it."""
        first = self.first_parent.get(name)
        if first is None:
            return []
        requirement, parent = first
        return [requirement.origin if parent is None else parent.name]

    def ruled_out_above(self, pick: Pick) -> tuple[str, Need] | None:
        """Return the newest version after ``pick`` known to be a dead end, and the requirement that cannot be met."""
        name = pick.name
        positions = [position for known, position in self._unmet if known == name and position > pick.position]
        if not positions:
            return None
        return pick.releases.version(max(positions)), self._unmet[name, max(positions)][1]

    def is_met_by_present(self, requirement: Requirement) -> bool:
        """Whether ``requirement`` is on a present project, in a version that it and all limits admit."""
        if requirement.name not in self.world.present or requirement.releases is None:
            return False
        return bool(requirement.mask & self.world.limited(requirement.releases)) and isinstance(
            requirement.releases.fit(0), Fit
        )

    def refuse(self, pick: Pick, requirement: Requirement) -> None:
        """Remember that ``pick`` was refused because of a present project. Present projects never change."""
        if requirement.name in self.world.present:
            need = Need(requirement.name, (), requirement.specifier, "")
            self._unmet.setdefault((pick.name, pick.position), (pick.fit, need))

    def _worked_out(self, pick: Pick) -> tuple[Requirement, ...]:
        needs = self.world.needs(pick.releases, pick.fit.best, pick.extra)
        if needs is not None and not needs and not self._may_be_empty(pick):
            self.lacks_extra, needs = True, None
        if needs is None:
            return (self._impossible(pick),)
        self.world.look_ahead(needs)
        requirements = [requirement for need in needs for requirement in self._of_need(need, "")]
        if pick.extra:
            same = Requirement(pick.name, "", "", pick.releases)
            same.specifier, same.mask = f"=={pick.version}", 1 << pick.position
            requirements.insert(0, same)
        return tuple(requirements)

    def _may_be_empty(self, pick: Pick) -> bool:
        """Whether an extra without requirements here may be used for what was requested.

        It may not if it has requirements on another Python, or if the newest version has that extra and this one does
        not. Otherwise old releases would be chosen for what they lack.
        """
        if not self._floors or not any(
            requirement.extra == pick.extra != "" for requirement in self._roots_of.get(pick.name, ())
        ):
            return True
        known = self.world.knows_extra(pick.releases, pick.fit.best, pick.extra)
        if known is not None:
            return not known
        newest = pick.releases.newest(self.world.limited(pick.releases))
        fit = None if newest is None else pick.releases.fit(newest)
        return not isinstance(fit, Fit) or self.world.knows_extra(pick.releases, fit.best, pick.extra) is None

    def _impossible(self, pick: Pick) -> Requirement:
        """The requirement of a version whose metadata cannot be used: another version of itself."""
        requirement = Requirement(pick.name, pick.extra, "", pick.releases)
        requirement.specifier, requirement.mask = f"!={pick.version}", 0
        return requirement

    def _of_need(self, need: Need, origin: str) -> list[Requirement]:
        specifier = need.specifier
        if need.url and need.name in self.world.present:
            from envsolve.resolve.closure.present import specifier_of

            specifier = specifier_of(need)
        return [self._requirement(need.name, extra, specifier, origin) for extra in ("", *need.extras)]

    def _requirement(self, name: str, extra: str, specifier: str, origin: str) -> Requirement:
        key = (name, extra, specifier)
        if origin:
            return Requirement(name, extra, specifier, self.world.releases(name), origin)
        known = self._requirements.get(key)
        if known is None:
            known = self._requirements[key] = Requirement(name, extra, specifier, self.world.releases(name))
        return known

    def _candidates(
        self, requirement: Requirement, mask: int, excluded: int, stages: tuple[bool | None, ...], *, pins: bool
    ) -> Iterator[Pick]:
        assert requirement.releases is not None
        anything = False
        for prereleases in stages:
            if anything:
                return
            for position, fit in self._fitting(requirement.releases, mask, prereleases, pins=pins):
                if self.refused and self._is_dead(requirement.releases, position, fit, requirement.extra, self._depth):
                    self._dead_masks[requirement.identifier] = (
                        self._dead_masks.get(requirement.identifier, 0) | 1 << position
                    )
                    self.passed_over(requirement.releases, position)
                    continue
                anything = True
                if not excluded >> position & 1:
                    yield self._pick(requirement.name, requirement.extra, requirement.releases, position, fit)

    def passed_over(self, releases: Releases, position: int) -> None:
        """Count one more unsuitable version. The metadata of the versions before it is fetched in growing batches."""
        name = releases.project.name
        count = self._passed[name] = self._passed.get(name, 0) + 1
        self._ahead(releases, position, count, further=False)

    def _go_on_from(self, releases: Releases, excluded: int) -> None:
        """The same after a conflict excluded versions.

        The requirements of the versions before them are fetched as well.
        """
        count = excluded.bit_count()
        if self._tried.get(releases.project.name, 0) < count:
            self._tried[releases.project.name] = count
            oldest = (excluded & -excluded).bit_length() - 1
            self._ahead(releases, oldest, count, further=True)

    def _ahead(self, releases: Releases, position: int, count: int, *, further: bool) -> None:
        if count & (count - 1) and count % _BATCH:
            return
        older = releases.mask("") & self.root_mask(releases.project.name) & ((1 << position) - 1)
        fitting = (fit for _, fit in self._fitting(releases, older, False, pins=False))
        files = [fit.best for fit in islice(fitting, min(2 * count if further else count, _BATCH))]
        self.world.prepare(releases, files, further=further)

    def _fitting(
        self, releases: Releases, mask: int, prereleases: bool | None, *, pins: bool
    ) -> Iterator[tuple[int, Fit]]:
        """Positions in ``mask`` that can be installed: the locked one, then wheels, then sources."""
        locked = self._locked_position(releases, mask)
        self.world.lacks_wheels |= not self.world.wanted.sources and releases.newest_is_source(mask)
        kinds = [releases.fit, *([releases.source_fit] if self.world.wanted.sources else [])]
        wheels = 0
        for fit_of in kinds:
            rest = mask & ~wheels
            order = releases.newest_first(rest)
            for position in order if locked is None else (locked, *(it for it in order if it != locked)):
                if prereleases is not None and releases.is_prerelease(position) is not prereleases:
                    continue
                fit = fit_of(position)
                if isinstance(fit, Fit) and (pins or position == locked or not fit.is_yanked):
                    wheels |= 1 << position
                    yield position, fit

    def _locked_position(self, releases: Releases, mask: int) -> int | None:
        version = self._locked.get(releases.project.name)
        position = None if version is None else releases.position(version)
        return position if position is not None and mask >> position & 1 else None

    def with_extra(self, pick: Pick, extra: str) -> Pick:
        """Return the same version with ``extra``, "" for none."""
        return self._pick(pick.name, extra, pick.releases, pick.position, pick.fit)

    def in_order(self, requirements: Sequence[Requirement]) -> Iterator[Pick]:
        """Yield the versions of a project that meet all ``requirements``, best first, dead ones included."""
        name, releases = requirements[0].name, requirements[0].releases
        assert releases is not None
        mask = self.root_mask(name)
        for requirement in requirements:
            mask &= requirement.mask
        for prereleases in self._stages(releases, requirements):
            for position, fit in self._fitting(releases, mask, prereleases, pins=self.is_pinned(name, requirements)):
                yield self._pick(name, "", releases, position, fit)

    def _pick(self, name: str, extra: str, releases: Releases, position: int, fit: Fit) -> Pick:
        key = (name, extra, position)
        if key not in self._picks:
            self._picks[key] = Pick(name, extra, releases, position, fit)
        return self._picks[key]

    @property
    def _depth(self) -> int:
        """How deep dead ends are searched: the more was refused, the deeper."""
        return 1 if self.refused < _FEW_REFUSED else 2

    def _is_dead(self, releases: Releases, position: int, fit: Fit, extra: str, depth: int) -> bool:
        """Whether a version with ``extra`` can never have its requirements met, within the limits of user and stack.

        The result holds for the whole resolution, so it is computed once. ``depth`` is the depth of the search: with 1,
        a requirement that no version meets; with 2, also one that only versions meet which are dead with depth 1.
        """
        key = (releases.project.name, extra, position, depth, len(self.troubled))
        if key not in self._dead:
            self._dead[key] = False  # a circular requirement does not make it dead
            with suppress(OutsideError):  # unreadable is not dead: the error is raised when it is picked
                needs = self.world.needs(releases, fit.best, extra)
                known = () if needs is None else (need for need in needs if need.name in self.troubled)
                unmet = next((need for need in known if not self._can_be_met(need, depth)), None)
                self._dead[key] = needs is None or unmet is not None
                if unmet is not None:
                    self._unmet.setdefault((releases.project.name, position), (fit, unmet))
        return self._dead[key]

    def _can_be_met(self, need: Need, depth: int) -> bool:
        releases = self.world.releases(need.name)
        if releases is None:
            return False
        mask = releases.mask(need.specifier) & self.root_mask(need.name)
        if need.name not in self.rejected:
            depth = 1
        every = (  # other packages may pin yanked versions or pre-releases
            it for prereleases in (False, True) for it in self._fitting(releases, mask, prereleases, pins=True)
        )
        if depth <= 1:
            return any(True for _ in every)
        return any(
            not any(self._is_dead(releases, position, fit, extra, depth - 1) for extra in ("", *need.extras))
            for position, fit in self._reading_ahead(releases, every)
        )

    def _reading_ahead(self, releases: Releases, fits: Iterator[tuple[int, Fit]]) -> Iterator[tuple[int, Fit]]:
        """``fits``, with their metadata fetched in batches that grow as versions turn out unsuitable."""
        count = 1
        while batch := list(islice(fits, count)):
            self.world.prepare(releases, [fit.best for _, fit in batch[1:]], further=False)
            yield from batch
            count = min(2 * count, _BATCH)

    def _stages(self, releases: Releases, requirements: Iterable[Requirement]) -> tuple[bool | None, ...]:
        """Which versions are tried: all together if the user requested a pre-release, else final ones first."""
        name = releases.project.name
        if (
            self.world.wanted.prereleases
            or name in self._root_prereleases
            or any(map(_names_prerelease, self._limits_of_people(name)))
        ):
            return (None,)
        return (
            (False, True)
            if not releases.has_final or any(_names_prerelease(it.specifier) for it in requirements)
            else (False,)
        )

    def is_pinned(self, name: str, requirements: Iterable[Requirement]) -> bool:
        """Whether ``requirements``, or a limit of the user, admit a single version of a project."""
        return any(
            map(is_pin, (*(requirement.specifier for requirement in requirements), *self._limits_of_people(name)))
        )

    def unfit(
        self, releases: Releases, position: int, requirements: Iterable[Requirement], *, pins: bool
    ) -> Unfit | None:
        """Return why an admitted version cannot be used by itself, or None if it can. Raises OutsideError."""
        if releases.is_prerelease(position) and self._stages(releases, requirements) == (False,):
            return Unfit.PRERELEASE
        return self.world.unfit(releases, position, pins=pins)

    def _limits_of_people(self, name: str) -> Iterator[str]:
        return (limit.specifier for limit in self.world.limits(name) if limit.origin)


_FEW_REFUSED = 4
_MANY_CONFLICTS = 32
"""After these, a project that others determine is decided as early as any. Otherwise each of them is tried in vain
first."""
_BATCH = 16
"""The number of metadata files fetched at once when one version after another is unsuitable."""


def _distinct(requirements: Iterable[Requirement]) -> list[Requirement]:
    """``requirements`` without those that admit the same versions as an earlier one from the same origin."""
    distinct: dict[tuple[str, str, int, bool, bool], Requirement] = {}
    for requirement in requirements:
        wanted = (requirement.mask, is_pin(requirement.specifier), _names_prerelease(requirement.specifier))
        distinct.setdefault((requirement.identifier, requirement.origin, *wanted), requirement)
    return list(distinct.values())


def _names_prerelease(specifier: str) -> bool:
    try:
        return bool(specifier_of(specifier).prereleases)
    except ValueError:  # of a virtual or a present project
        return False
