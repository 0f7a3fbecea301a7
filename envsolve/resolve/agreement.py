"""Find builds of several frameworks that can share an environment, without trying every combination.

An environment has one owner of CUDA, one toolkit, one cuDNN and one Python. Of the hundreds of builds of a framework,
most leave the same choices for these. So builds are grouped by what they leave, and the groups are joined framework by
framework. This finds the best combination, or shows that there is none, without a product of the numbers of builds. A
search that meets a dead end late would try each build with each.
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
"""What an environment has only one of."""

_Admits = tuple[int, ...]
_ANYTHING: _Admits = (-1,) * len(SHARED)


class Sharing(NamedTuple):
    """A build and what it leaves of the shared things.

    ``requirements`` are those of the build. ``admits`` is what they leave of each of :data:`SHARED`, one bit for each
    candidate.
    """

    candidate: Candidate
    release: Release
    requirements: Mapping[str, Requirement]
    admits: _Admits


def sharings(provider: Provider, identifier: str) -> list[Sharing]:
    """Return the builds of a framework that run, the best one of each group that leaves the same, best first."""
    return list(_distinct(every_sharing(provider, identifier)))


def _distinct(sharings: Iterable[Sharing]) -> Iterator[Sharing]:
    """The first build of each group that admits the same."""
    seen: set[_Admits] = set()
    for sharing in sharings:
        if sharing.admits not in seen:
            seen.add(sharing.admits)
            yield sharing


def every_sharing(provider: Provider, identifier: str) -> Iterator[Sharing]:
    """Yield all builds of a framework that run, best first."""
    bits: dict[int, int] = {}
    for candidate in provider.running(identifier):
        assert isinstance(candidate.thing, Release)
        requirements = {requirement.identifier: requirement for requirement in provider.get_dependencies(candidate)}
        for requirement in requirements.values():
            if id(requirement.limit) not in bits:
                bits[id(requirement.limit)] = sum(1 << number for number in provider.left_by(requirement))
        admits = tuple(bits[id(requirements[thing].limit)] if thing in requirements else -1 for thing in SHARED)
        yield Sharing(candidate, candidate.thing, requirements, admits)


def best_combination(provider: Provider) -> list[Candidate] | None:
    """Return the best builds that can share an environment, or None if there are none.

    The policy compares levels first (:meth:`Provider.level`, normally the version). Levels are decided for all
    frameworks in the order requested, and only then the builds of these versions. So a better build of one framework
    never costs a newer release of the next.
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
    """The groups of builds by level, best first."""
    by_level = groupby(every_sharing(provider, identifier), key=lambda way: provider.level(way.release))
    return [list(_distinct(ways)) for _, ways in by_level]


def _extended(states: Iterable[_Admits], ways: Sequence[Sharing], rest: Iterable[_Admits]) -> set[_Admits]:
    """What is left to share after one more framework, if the frameworks after it still fit."""
    joined = {_joined(state, way.admits) for state in states for way in ways}
    return {admits for admits in joined if all(admits) and any(all(_joined(admits, it)) for it in rest)}


def _first_combination(offered: Sequence[Sequence[Sharing]]) -> Iterator[Sharing]:
    """The existing combination with the best build of the first framework, then of the second, and so on."""
    rests, sofar = _joined_from(offered), _ANYTHING
    for ways, rest in zip(offered, rests[1:], strict=True):
        way = next(way for way in ways if _extended([sofar], [way], rest))
        sofar = _joined(sofar, way.admits)
        yield way


def is_improvable(provider: Provider, chosen: Mapping[str, Candidate]) -> bool:
    """Whether a later framework might reach a better level than a search chose, with the levels before it unchanged.

    The search takes the best build of each framework in turn, which may exclude a newer release of the next one. Only
    builds of the chosen and better levels are compared, and these are few.
    """
    states = {_ANYTHING}
    for number, framework in enumerate(provider.problem.frameworks):
        identifier = framework_identifier(framework.framework)
        release = chosen[identifier].thing
        assert isinstance(release, Release)
        better, same = _down_to(provider, identifier, provider.level(release))
        if number and _extended(states, better, [_ANYTHING]):
            return True
        states = _extended(states, same, [_ANYTHING])
    return False


def _down_to(provider: Provider, identifier: str, level: object) -> tuple[list[Sharing], list[Sharing]]:
    """The groups of builds at better levels, and those at this level."""
    better: list[Sharing] = []
    for found, ways in groupby(every_sharing(provider, identifier), key=lambda way: provider.level(way.release)):
        if found == level:
            return better, list(ways)
        better += ways
    return better, []


def unshared(combination: Sequence[Sharing]) -> frozenset[str]:
    """Return the shared things of which a combination of builds leaves no candidate."""
    left = _ANYTHING
    for sharing in combination:
        left = _joined(left, sharing.admits)
    return frozenset(thing for thing, admitted in zip(SHARED, left, strict=True) if not admitted)


def _joined_from(offered: Sequence[Sequence[Sharing]]) -> list[set[_Admits]]:
    """For each framework, what it and all after it can share. The last entry, after all frameworks, admits anything."""
    rests = [{_ANYTHING}]
    for ways in reversed(offered):
        joined = (_joined(way.admits, rest) for way in ways for rest in rests[0])
        rests.insert(0, {admits for admits in joined if all(admits)})
    return rests


def _joined(one: _Admits, other: _Admits) -> _Admits:
    return tuple(map(and_, one, other))
