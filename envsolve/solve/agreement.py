"""Which builds of several frameworks can stand in one environment, without trying them one against another.

What an environment has once (the owner of CUDA, the toolkit, the cuDNN, the Python) leaves few ways of sharing: of
hundreds of builds of a framework most admit the same as others. Joining those ways framework by framework finds the
best combination, or that there is none, in steps that do not multiply; a search that meets a dead end late would try
each build with each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import and_
from typing import NamedTuple

from envsolve.model.release import Release
from envsolve.solve.parts import CUDA, CUDNN, OWNER, PYTHON, Candidate, Requirement, framework_identifier
from envsolve.solve.provider import Provider

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
    found: dict[_Admits, Sharing] = {}
    for sharing in every_sharing(provider, identifier):
        found.setdefault(sharing.admits, sharing)
    return list(found.values())


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
    """The best builds, in the order of the frameworks as asked, that share everything; None where none do."""
    offered = [sharings(provider, framework_identifier(it.framework)) for it in provider.problem.frameworks]
    rests = _joined_from(offered)
    chosen, sofar = [], _ANYTHING
    for number, ways in enumerate(offered):
        fitting = (
            (way, joined)
            for way in ways
            if all(joined := _joined(sofar, way.admits)) and any(all(_joined(joined, it)) for it in rests[number + 1])
        )
        way, sofar = next(fitting, (None, sofar))
        if way is None:
            return None
        chosen.append(way.candidate)
    return chosen


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
