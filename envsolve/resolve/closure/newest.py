"""Which answer is the best: what was asked for by name counts, each at its newest.

A resolver finds *an* answer. The best one is found by asking it several times, each time within floors, below which the
versions of what was asked for must not lie:

1. In windows that grow (the newest alone, 6, 18, 36 and 60 months, any age) the worlds are tried from the newest
   Python, and the first answer counts. A world is a platform and a Python; one of a Python younger than a year is the
   last resort.
2. Then what was asked for is made newer, one after the other, as long as all that stands before it stays: what depends
   on a framework first, then frameworks, then the others, by name within a rank, so that the order of a command line
   decides nothing.

How old a version is counts from the newest that some world has (:func:`envsolve.resolve.closure.ages.days_of`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from time import monotonic
from typing import NamedTuple

from envsolve.errors import UnsolvableError
from envsolve.resolve.closure.ages import days_of
from envsolve.resolve.closure.behind import DAYS_OF_A_MONTH
from envsolve.resolve.closure.provider import Pick, Provider
from envsolve.resolve.closure.resolve import SHORT, Asked, Conflict, resolved
from envsolve.resolve.closure.world import World

_MONTHS = (0, 6, 18, 36, 60)
Positions = Mapping[str, int]
"""Versions of projects, each by its position."""


class Found(NamedTuple):
    """The best answer: the world that it is in, by its number, and what is picked there by name."""

    world: int
    picks: Mapping[str, Pick]


class _TimeUpError(Exception):
    """The clock ended a search."""


class Candidates(NamedTuple):
    """A world to look for answers in, and what is asked for there. ``is_last_resort``: only where no other has one."""

    world: World
    asked: tuple[Asked, ...]
    is_last_resort: bool = False


class Newest:
    """Looks for the best answer in ``worlds``, for ``seconds`` at most.

    ``named`` are the projects that were asked for, in the order of their rank. ``days`` says of virtual projects what
    :func:`envsolve.resolve.closure.ages.days_of` says of others.
    """

    def __init__(
        self,
        worlds: Sequence[Candidates],
        named: Sequence[str],
        days: Mapping[str, Sequence[float]],
        seconds: float,
    ) -> None:
        self._worlds = worlds
        self._named = named
        self._last: list[Provider | None] = [None for _ in worlds]
        self._hopeless: list[list[Positions]] = [[] for _ in worlds]
        """The floors that a world has no answer within; it has none within higher ones either."""
        self._days = dict(days)
        self._end = monotonic() + seconds
        self._newest = newest_positions([it for it in worlds if not it.is_last_resort] or worlds, named)

    def answer(self) -> Found | None:
        """The best answer; None where there is none, or none in time. Raises OutsideError."""
        try:
            for months in (*_MONTHS, None):
                floors = {name: self._floor(name, months) for name in self._newest}
                for number, candidates in enumerate(self._worlds):
                    if candidates.is_last_resort and months is not None:
                        continue
                    picks = self._ask(number, floors)
                    if picks is not None:
                        return self._improved(Found(number, picks), floors, months)
        except _TimeUpError:
            return None
        return None

    def _improved(self, found: Found, floors: Positions, months: int | None) -> Found:
        """``found`` with whatever can be newer, in the order of ranks."""
        kept = dict(floors)
        try:
            for name in self._named:
                while (better := self._newer(name, found, kept, months)) is not None:
                    found = better
                if name in found.picks:
                    kept[name] = found.picks[name].position
        except _TimeUpError:
            pass
        return found

    def _newer(self, name: str, found: Found, kept: Positions, months: int | None) -> Found | None:
        """An answer with a newer version of ``name``, first by whole windows."""
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
                picks = self._ask(number, {**kept, name: floor})
                if picks is not None:
                    return Found(number, picks)
        return None

    def _ask(self, number: int, floors: Positions) -> Mapping[str, Pick] | None:
        world, asked, _ = self._worlds[number]
        if any(all(floors.get(it, 0) >= low for it, low in tried.items()) for tried in self._hopeless[number]):
            return None
        if not all(self._can_be(name, floor, world) for name, floor in floors.items()):
            return None
        provider = Provider(world, asked, {}, floors)
        if (last := self._last[number]) is not None:
            provider.learn_from(last)
        self._last[number] = provider
        try:
            world.look_ahead(tuple(need for need, _ in asked))
            return resolved(provider, self._look_at_the_clock, SHORT, narrows=True)
        except (Conflict, UnsolvableError):  # an error is a search that takes too long: another may have an answer
            self._hopeless[number].append(floors)
            return None

    def _look_at_the_clock(self, _count: int, _name: str) -> None:
        if monotonic() > self._end:
            raise _TimeUpError

    def _can_be(self, name: str, floor: int, world: World) -> bool:
        """Whether ``world`` has a version of ``name`` that is not below ``floor``, whatever else is asked."""
        releases = world.releases(name)
        if releases is None:
            return True
        mask = world.limited(releases) >> floor << floor
        return releases.newest(mask, prereleases=True) is not None

    def _floor(self, name: str, months: int | None) -> int:
        """The first version that is no older than that, counted from the newest."""
        newest = self._newest[name]
        if months is None:
            return 0
        if months == 0:
            return newest
        days = self._days_of(name)
        oldest = days[newest] - months * DAYS_OF_A_MONTH
        return next((it for it, day in enumerate(days[: newest + 1]) if day >= oldest), newest)

    def _days_of(self, name: str) -> Sequence[float]:
        if name not in self._days:
            releases = next(it for each in self._worlds if (it := each.world.releases(name)) is not None)
            self._days[name] = days_of(releases)
        return self._days[name]


def newest_positions(worlds: Iterable[Candidates], names: Iterable[str]) -> dict[str, int]:
    """Of each project the newest version that people admit and that can be had in some world."""
    found: dict[str, int] = {}
    names = tuple(names)
    for world, asked, _ in worlds:
        provider = Provider(world, asked, {})
        for name in names:
            releases = world.releases(name)
            newest = None if releases is None else releases.newest(provider.root_mask(name))
            if newest is not None:
                found[name] = max(newest, found.get(name, newest))
    return found
