"""Why frameworks that each run do not go together: the one thing, or the few, that leave no combination of builds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import groupby, islice, product
from operator import or_
from typing import NamedTuple

from packaging.version import Version

from envsolve.errors import ConflictStep
from envsolve.model.release import CudnnRelease, Release, Toolkit
from envsolve.model.request import FrameworkRequest
from envsolve.model.solution import Problem
from envsolve.resolve.agreement import SHARED, Sharing, sharings, unshared
from envsolve.resolve.parts import CUDA, CUDNN, OWNER, PYTHON, Thing, framework_identifier
from envsolve.resolve.provider import Provider
from envsolve.resolve.reasons import Conflict, fewest, step_of

_CODE = "frameworks-disagree"
_MOST_COMBINATIONS = 20_000
"""Of more combinations of ways to share than this, those of the best builds are judged."""
_A_RUN = 3
"""From three neighbours on, a list names the first and the last."""


class _Shared(NamedTuple):
    name: str
    why: str
    unit: str


_THINGS = {
    CUDA: _Shared("one CUDA toolkit", "an environment has one CUDA toolkit", "CUDA"),
    CUDNN: _Shared("one cuDNN", "an environment has one cuDNN: a process loads one library of that name", "cuDNN"),
    PYTHON: _Shared("one Python", "an environment has one Python", "Python"),
    OWNER: _Shared(
        "one owner of CUDA",
        "conda and pip would both install CUDA libraries, and a process loads those it finds first",
        "CUDA from",
    ),
}
"""What an environment has once; of equally short explanations the one about the first thing is given."""


def disagreement(problem: Problem, providers: Sequence[Provider]) -> Conflict:
    """Each framework of ``problem`` has builds that run, but no combination shares what an environment has once."""
    blocked: dict[frozenset[str], tuple[Sharing, ...]] = {}
    offered: list[list[Sharing]] = [[] for _ in problem.frameworks]
    for provider in providers:
        ways = [sharings(provider, framework_identifier(asked.framework)) for asked in problem.frameworks]
        offered = [[*before, *more] for before, more in zip(offered, ways, strict=True)]
        for combination in islice(product(*ways), _MOST_COMBINATIONS):
            blocked.setdefault(unshared(combination), combination)
    if not blocked:
        return _no_source_has_all(problem, offered)
    things = fewest(blocked, _THINGS)
    if len(things) == 1:
        steps = list(_what_each_admits(things[0], problem, offered, providers[0]))
    else:
        steps = [step for thing in things for step in _witness(thing, blocked)]
    why = [ConflictStep(_THINGS[thing].why, "one environment") for thing in things]
    names = " and ".join(str(asked) for asked in problem.frameworks)
    shared = " and ".join(_THINGS[thing].name for thing in things)
    reasons = "; ".join(step.requirement for step in steps)
    message = f"no builds of {names} that run here share {shared}: {reasons}"
    return Conflict(_CODE, message, tuple(dict.fromkeys((*steps, *why))))


def _witness(thing: str, blocked: dict[frozenset[str], tuple[Sharing, ...]]) -> Iterator[ConflictStep]:
    """What the builds of one combination ask of a thing, where it takes several things to rule all of them out."""
    combination = next(combination for missing, combination in blocked.items() if thing in missing)
    return (step_of(sharing.asks[thing]) for sharing in combination if thing in sharing.asks)


def _what_each_admits(
    thing: str, problem: Problem, offered: Sequence[Sequence[Sharing]], provider: Provider
) -> Iterator[ConflictStep]:
    """What the builds of each framework admit of a thing, all of them together."""
    place = SHARED.index(thing)
    for asked, ways in zip(problem.frameworks, offered, strict=True):
        admits = [sharing for sharing in ways if thing in sharing.asks]
        if len({sharing.admits[place] for sharing in admits}) == 1:
            yield step_of(admits[0].asks[thing])
            continue
        union = reduce(or_, (sharing.admits[place] for sharing in admits))
        listed = _listed([candidate.thing for candidate in provider.offered(thing)], union)
        text = f"the builds of {asked} that run here need {_THINGS[thing].unit} {listed}"
        yield ConflictStep(text, "the compatibility matrix", "; ".join(dict.fromkeys(_references(admits))))


def _references(admits: Sequence[Sharing]) -> Iterator[str]:
    """The evidence of the newest builds: that of all of them would be no reading."""
    return (sharing.release.evidence[0].reference for sharing in admits[:3])


def _listed(things: Sequence[Thing], admitted: int) -> str:
    """``11.2, 11.8, 12.4 to 12.9``, or of cuDNN ``8.7 to 8.9 for CUDA 11``: the things of a set of bits."""
    numbered = [(thing, bool(admitted & 1 << number)) for number, thing in enumerate(things)]
    numbered.sort(key=lambda entry: _family(entry[0]))
    names: list[str] = []
    for family, members in groupby(numbered, key=lambda entry: _family(entry[0])[0]):
        if isinstance(things[0], CudnnRelease):
            names += _within([thing for thing, is_in in members if is_in], family)
        else:
            runs = groupby(members, key=lambda entry: entry[1])
            names += [text for is_in, run in runs if is_in for text in _run([_spelled(thing) for thing, _ in run])]
    return ", ".join(names)


def _family(thing: Thing) -> tuple[tuple[int, ...], tuple[int, ...], str]:
    """What lists keep together, and the order: toolkits and Pythons by major, cuDNN by the CUDA it is for as well."""
    if isinstance(thing, Toolkit):
        return (thing.version.major,), tuple(thing.version), ""
    if isinstance(thing, CudnnRelease):
        return (thing.cuda_major, thing.version.major), thing.version.release, ""
    return ((thing.major,), thing.release, "") if isinstance(thing, Version) else ((), (), str(thing))


def _run(names: Sequence[str]) -> Sequence[str]:
    return names if len(names) < _A_RUN else (f"{names[0]} to {names[-1]}",)


def _within(releases: Sequence[Thing], family: tuple[int, ...]) -> Iterator[str]:
    """A few cuDNNs by their versions, many as the range they lie in; sources leave single releases out."""
    versions = [release.version for release in releases if isinstance(release, CudnnRelease)]
    minors = [f"{version.major}.{version.minor}" for version in versions]
    if versions:
        few = ", ".join(map(str, versions))
        yield f"{few if len(versions) < _A_RUN else f'{minors[0]} to {minors[-1]}'} for CUDA {family[0]}"


def _spelled(thing: Thing) -> str:
    return str(thing.version) if isinstance(thing, Toolkit) else str(thing)


def _no_source_has_all(problem: Problem, offered: Sequence[Sequence[Sharing]]) -> Conflict:
    """Sources that are never mixed: no group of them has builds of all frameworks."""
    steps = tuple(_where(asked, ways) for asked, ways in zip(problem.frameworks, offered, strict=True))
    reasons = "; ".join(step.requirement for step in steps)
    return Conflict(_CODE, f"no compatible sources have every framework: {reasons}", steps)


def _where(asked: FrameworkRequest, ways: Sequence[Sharing]) -> ConflictStep:
    sources = sorted({_source(sharing.release) for sharing in ways})
    text = f"the builds of {asked} that run here are from {' and '.join(sources)}"
    return ConflictStep(text, "the compatibility matrix")


def _source(release: Release) -> str:
    return release.source.value
