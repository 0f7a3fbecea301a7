"""Find the best answer: the one with the newest versions of the requested packages.

A resolver finds *an* answer. The best one is found by resolving several times, each time within floors: no requested
package may be older than its floor.

1. Windows of growing length (only the newest, 6, 18, 36 and 60 months, any age) are tried in turn. In each window the
   worlds are tried from the newest Python on, and the first answer counts. A world is a platform and a Python. A world
   of a Python younger than a year is the last resort. Worlds in which packages may be built from source come after
   those of wheels alone.
2. Then the requested packages are upgraded one by one, without downgrading an earlier one: first those that depend on a
   framework, then frameworks, then the others, by name within a rank. So the order of the command line does not matter.

The age of a version counts from the newest version in any world (:func:`envsolve.resolve.closure.ages.days_of`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from envsolve.resolve.closure.ages import days_of
from envsolve.resolve.closure.behind import DAYS_OF_A_MONTH
from envsolve.resolve.closure.provider import Pick, Provider
from envsolve.resolve.closure.resolve import (
    SHORT,
    Conflict,
    Progress,
    Root,
    TimeUpError,
    TooLongError,
    resolved_and_built,
    too_long,
)
from envsolve.resolve.closure.world import World

_MONTHS = (0, 6, 18, 36, 60)
Positions = Mapping[str, int]
"""Versions of projects, each given by its position."""


class Answer(NamedTuple):
    """The best answer: the number of its world, the picks in it by name, and the provider that found them.

    ``undecided`` are the names for which the search for a newer version was cut off by the time limit.
    """

    world: int
    picks: Mapping[str, Pick]
    provider: Provider
    undecided: tuple[str, ...] = ()


class Candidates(NamedTuple):
    """A world to search, and its requirements. ``is_last_resort`` means: only if no other world has an answer.

    ``is_needed`` returns whether the world can have an answer that the worlds before it do not have.
    """

    world: World
    requirements: Sequence[Root]
    is_last_resort: bool = False
    is_needed: Callable[[], bool] = lambda: True

    @property
    def names(self) -> frozenset[str]:
        """The required projects. Markers exclude some of those in the request."""
        return frozenset(need.name for need, _ in self.requirements)


class Ages(NamedTuple):
    """The ages of the candidates of a virtual project.

    ``days`` is what :func:`envsolve.resolve.closure.ages.days_of` returns for other projects. From the position
    ``newest`` on, candidates belong to the newest version.
    """

    newest: int
    days: Callable[[], Sequence[float]]


class Newest:
    """Searches ``worlds`` for the best answer until ``end``, a time of the monotonic clock.

    ``named`` are the requested packages; floors of windows apply to those in ``windowed``. ``rank`` gives the order of
    upgrades. ``virtual`` has the ages of the candidates of virtual projects. ``locked`` are versions of an existing
    lock, which are preferred if they fit.
    """

    def __init__(
        self,
        worlds: Sequence[Candidates],
        named: Sequence[str],
        windowed: Sequence[str],
        rank: Callable[[], Sequence[str]],
        virtual: Mapping[str, Ages],
        end: float,
        locked: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._worlds = worlds
        self._named = named
        self._locked = locked or {}
        self._progress = progress
        self._of_newest: Conflict | None = None
        """Why the newest versions of all requested packages do not fit together, in the first world."""
        self.conflicts: dict[int, Conflict] = {}
        """Why a world has no answer, by the number of the world: the conflict of the last window searched there."""
        self._last: list[Provider | None] = [None for _ in worlds]
        self._hopeless: list[list[Positions]] = [[] for _ in worlds]
        """Floors for which a world has no answer. It has none for higher floors either."""
        self._slow: list[list[Positions]] = [[] for _ in worlds]
        """Floors for which the search in a world was cut short. Only the last window searches there again."""
        self._unknown: set[str] = set()
        """The required projects that no index has, with which no world has an answer."""
        self._rank = rank
        self._virtual = virtual
        self._days: dict[str, Sequence[float]] = {}
        self._end = end
        first = [it for it in worlds if not it.is_last_resort]
        self._newest = {name: self._base(name, it) for name, it in newest_positions(first or worlds, named).items()}
        self._newest |= {name: it.newest for name, it in virtual.items() if name in self._newest}
        self._windowed = [it for it in windowed if it in self._newest]

    def answer(self) -> Answer | None:
        """Return the best answer, or None if there is none.

        Raises OutsideError, and UnsolvableError ``search-too-long`` if the time ends before there is any answer.
        """
        try:
            for months in (*_MONTHS, None):
                floors = {name: self._floor(name, months) for name in self._windowed}
                for number, candidates in enumerate(self._worlds):
                    if candidates.is_last_resort and months is not None:
                        continue
                    found = self._answer_within(number, floors, is_last=months is None)
                    if found is not None:
                        return self._improved(found, floors, months)
        except TimeUpError as error:
            raise too_long(error.provider, self._why_not_newest()) from None
        return None

    def _why_not_newest(self) -> list[str]:
        from envsolve.resolve.closure.explain import newest_conflict

        return [] if self._of_newest is None else newest_conflict(self._of_newest)

    def _improved(self, found: Answer, floors: Positions, months: int | None) -> Answer:
        """``found`` with newer versions where possible, in the order of ranks."""
        kept = dict(floors)
        could_be = (it for it in self._named if it in self._newest and it in found.picks)
        if all(found.picks[it].position >= self._newest[it] for it in could_be):
            return found
        ranked = [it for it in self._rank() if it in self._named]
        for number, name in enumerate(ranked):
            try:
                while (better := self._newer(name, found, kept, months)) is not None:
                    found = better
            except TimeUpError:
                return found._replace(undecided=tuple(ranked[number:]))
            if name in found.picks:
                kept[name] = self._base(name, found.picks[name].position)
        return found

    def _newer(self, name: str, found: Answer, kept: Positions, months: int | None) -> Answer | None:
        """An answer with a newer version of ``name``. Whole windows are tried first."""
        if name not in found.picks or name not in self._newest:
            return None
        have = found.picks[name].position
        steps = [self._floor(name, it) for it in _MONTHS if months is None or it < months]
        for floor in dict.fromkeys((*(it for it in steps if it > have + 1), have + 1)):
            if have >= self._newest[name]:
                return None
            for number in range(found.world, len(self._worlds)):
                if self._worlds[number].is_last_resort is not self._worlds[found.world].is_last_resort:
                    continue
                better = self._answer_within(number, {**kept, name: floor})
                if better is not None:
                    return better
        return None

    def _answer_within(self, number: int, floors: Positions, *, is_last: bool = False) -> Answer | None:
        candidates = self._worlds[number]
        floors = {name: floor for name, floor in floors.items() if name in candidates.names}
        given_up = (*self._hopeless[number], *(() if is_last else self._slow[number]))
        if any(all(floors.get(it, 0) >= low for it, low in tried.items()) for tried in given_up):
            return None
        if not candidates.is_needed():
            return None
        world, requirements = candidates.world, candidates.requirements
        if not is_last and not all(self._can_be(name, floor, world) for name, floor in floors.items()):
            return None
        if self._unknown.isdisjoint(candidates.names):
            world.look_ahead(tuple(need for need, _ in requirements))
        most_rounds = sys.maxsize if is_last else SHORT
        try:
            provider, picks = resolved_and_built(
                lambda: self._provider(number, floors), self._end, self._progress, most_rounds=most_rounds, narrows=True
            )
        except TooLongError:  # a slow search may be fast in another window
            self._slow[number].append(floors)
            return None
        except Conflict as error:
            self._of_newest = self._of_newest or error
            unknown = {it.name for it, parent in error.causes if parent is None and it.releases is None}
            self._unknown |= unknown
            floors = {} if unknown else floors
            self.conflicts[number] = error
            self._hopeless[number].append(floors)
            return None
        return Answer(number, picks, provider)

    def _provider(self, number: int, floors: Positions) -> Provider:
        """A new search in a world, which starts with what the previous search there learned."""
        world, requirements, *_ = self._worlds[number]
        provider = Provider(world, requirements, self._locked, floors)
        if (last := self._last[number]) is not None:
            provider.learn_from(last)
        self._last[number] = provider
        return provider

    def _can_be(self, name: str, floor: int, world: World) -> bool:
        """Whether ``world`` has a version of ``name`` at ``floor`` or above, whatever else is required."""
        releases = world.releases(name)
        if releases is None:
            return True
        mask = world.limited(releases) >> floor << floor
        return world.newest(releases, mask, prereleases=True) is not None

    def _floor(self, name: str, months: int | None) -> int:
        """The first version that is at most ``months`` older than the newest."""
        newest = self._newest[name]
        if months is None:
            return 0
        if months == 0:
            return newest
        days = self._days_of(name)
        oldest = days[newest] - months * DAYS_OF_A_MONTH
        return next((it for it, day in enumerate(days[: newest + 1]) if day >= oldest), newest)

    def _base(self, name: str, position: int) -> int:
        """The first of the versions that differ from the one at ``position`` only by their local label.

        A label says what a build is for, such as ``+cu130torch2.12``, and not that it is newer than one with another
        label.
        """
        releases = None if name in self._virtual else self._worlds[0].world.releases(name)
        return position if releases is None else releases.first(releases.project.versions[position])

    def _days_of(self, name: str) -> Sequence[float]:
        if name in self._virtual and name not in self._days:
            self._days[name] = self._virtual[name].days()
        if name not in self._days:
            releases = next(it for each in self._worlds if (it := each.world.releases(name)) is not None)
            self._days[name] = days_of(releases)
        return self._days[name]


def newest_positions(worlds: Iterable[Candidates], names: Iterable[str]) -> dict[str, int]:
    """Return the newest version of each project that the user admits and that some world has."""
    found: dict[str, int] = {}
    names = tuple(names)
    for it in worlds:
        provider = Provider(it.world, it.requirements, {})
        for name in filter(it.names.__contains__, names):
            releases, known = it.world.releases(name), found.get(name, -1) + 1
            newer = provider.root_mask(name) >> known << known
            newest = it.world.newest(releases, newer) if releases is not None and newer else None
            if newest is not None:
                found[name] = newest
    return found
