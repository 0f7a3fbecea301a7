"""Which builds of several frameworks can stand in one environment, without trying them one against another.

What an environment has once (the owner of CUDA, the toolkit, the cuDNN, the Python) leaves few ways of sharing: of
hundreds of builds of a framework most admit the same as others. Joining those ways framework by framework finds the
best combination, or that there is none, in steps that do not multiply; a search that meets a dead end late would try
each build with each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import and_
from typing import NamedTuple

from envsolve.model.release import Release
from envsolve.resolve.parts import CUDA, CUDNN, OWNER, PYTHON, Candidate, Requirement, framework_identifier
from envsolve.resolve.provider import Provider

SHARED = (OWNER, CUDA, CUDNN, PYTHON)
"""What an environment has once."""

_Admits = tuple[int, ...]
_ANYTHING: _Admits = (-1,) * len(SHARED)


class Sharing(NamedTuple):
    """A build and how it shares.

    ``asks`` are its requirements, ``admits`` what they leave of each of :data:`SHARED`, a bit for each candidate.
    """

    candidate: Candidate
    release: Release
    asks: Mapping[str, Requirement]
    admits: _Admits


def sharings(provider: Provider, identifier: str) -> list[Sharing]:
    """The builds of a framework that run, one for each way of sharing, the best first."""
    return list(_distinct(every_sharing(provider, identifier)))


def _distinct(sharings: Iterable[Sharing]) -> Iterator[Sharing]:
    """The first of those that admit the same."""
    seen: set[_Admits] = set()
    for sharing in sharings:
        if sharing.admits not in seen:
            seen.add(sharing.admits)
            yield sharing


def every_sharing(provider: Provider, identifier: str) -> Iterator[Sharing]:
    """All builds of a framework that run, the best first."""
    bits: dict[int, int] = {}
    for candidate in provider.running(identifier):
        assert isinstance(candidate.thing, Release)
        asks = {asked.identifier: asked for asked in provider.get_dependencies(candidate)}
        for asked in asks.values():
            if id(asked.limit) not in bits:
                bits[id(asked.limit)] = sum(1 << number for number in provider.left_by(asked))
        admits = tuple(bits[id(asks[thing].limit)] if thing in asks else -1 for thing in SHARED)
        yield Sharing(candidate, candidate.thing, asks, admits)


def best_combination(provider: Provider) -> list[Candidate] | None:
    """The best builds that share everything, None if none do.

    What counts first (:meth:`Provider.level`, the version as a rule) is decided for all frameworks in the order asked,
    and only then which builds of these versions it is: an older release of the next framework is no price for a better
    build of this one.
    """
    offered = [_levels(provider, framework_identifier(it.framework)) for it in provider.problem.frameworks]
    rests = _joined_from([list(_distinct(chain.from_iterable(levels))) for levels in offered])
    states, chosen = {_ANYTHING}, []
    for levels, rest in zip(offered, rests[1:], strict=True):
        reached = ((level, _extended(states, level, rest)) for level in levels)
        level, states = next(((level, joined) for level, joined in reached if joined), ([], set()))
        if not states:
            return None
        chosen.append(level)
    return [way.candidate for way in _first_combination(chosen)]


def _levels(provider: Provider, identifier: str) -> list[list[Sharing]]:
    """The ways of sharing level by level, the best first."""
    by_level = groupby(every_sharing(provider, identifier), key=lambda way: provider.level(way.release))
    return [list(_distinct(ways)) for _, ways in by_level]


def _extended(states: Iterable[_Admits], ways: Sequence[Sharing], rest: Iterable[_Admits]) -> set[_Admits]:
    """What is left to share after one more framework, where the frameworks that follow still fit."""
    joined = {_joined(state, way.admits) for state in states for way in ways}
    return {admits for admits in joined if all(admits) and any(all(_joined(admits, it)) for it in rest)}


def _first_combination(offered: Sequence[Sequence[Sharing]]) -> Iterator[Sharing]:
    """Of combinations that exist, the one with the best build of the first framework, then of the next."""
    rests, sofar = _joined_from(offered), _ANYTHING
    for ways, rest in zip(offered, rests[1:], strict=True):
        way = next(way for way in ways if _extended([sofar], [way], rest))
        sofar = _joined(sofar, way.admits)
        yield way


def is_improvable(provider: Provider, chosen: Mapping[str, Candidate]) -> bool:
    """Whether a later framework might have a better level beside the levels that a search chose before it.

    The search takes the best build of each framework in turn, and that may be the one that keeps the next back. Only
    builds of the chosen levels and better ones are looked at, which are few.
    """
    states = {_ANYTHING}
    for number, asked in enumerate(provider.problem.frameworks):
        identifier = framework_identifier(asked.framework)
        release = chosen[identifier].thing
        assert isinstance(release, Release)
        better, same = _down_to(provider, identifier, provider.level(release))
        if number and _extended(states, better, [_ANYTHING]):
            return True
        states = _extended(states, same, [_ANYTHING])
    return False


def _down_to(provider: Provider, identifier: str, level: object) -> tuple[list[Sharing], list[Sharing]]:
    """The ways of sharing of better levels, and of that one."""
    better: list[Sharing] = []
    for found, ways in groupby(every_sharing(provider, identifier), key=lambda way: provider.level(way.release)):
        if found == level:
            return better, list(ways)
        better += ways
    return better, []


def unshared(combination: Sequence[Sharing]) -> frozenset[str]:
    """Of what is shared, that of which a combination of builds leaves nothing."""
    left = _ANYTHING
    for sharing in combination:
        left = _joined(left, sharing.admits)
    return frozenset(thing for thing, admitted in zip(SHARED, left, strict=True) if not admitted)


def _joined_from(offered: Sequence[Sequence[Sharing]]) -> list[set[_Admits]]:
    """For each framework what it and all after it can share; at the end, after the last, anything."""
    rests = [{_ANYTHING}]
    for ways in reversed(offered):
        joined = (_joined(way.admits, rest) for way in ways for rest in rests[0])
        rests.insert(0, {admits for admits in joined if all(admits)})
    return rests


def _joined(one: _Admits, other: _Admits) -> _Admits:
    return tuple(map(and_, one, other))
