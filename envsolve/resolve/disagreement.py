"""Explain why frameworks that each run do not fit together: which shared things leave no combination of builds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import groupby, islice, product
from operator import or_
from typing import NamedTuple

from packaging.version import Version

from envsolve.errors import ConflictStep
from envsolve.model.prose import sentence_list
from envsolve.model.release import CudnnRelease, Release, Toolkit
from envsolve.model.request import FrameworkRequest
from envsolve.model.solution import Problem
from envsolve.resolve.agreement import SHARED, Sharing, sharings, unshared
from envsolve.resolve.parts import CUDA, CUDNN, OWNER, PYTHON, Thing, framework_identifier
from envsolve.resolve.provider import Provider
from envsolve.resolve.reasons import Conflict, fewest, step_of

_CODE = "frameworks-disagree"
_MOST_COMBINATIONS = 20_000
"""With more combinations of groups than this, only those of the best builds are examined."""
_A_RUN = 3
"""A list shortens runs of at least this many neighbours to the first and the last."""


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
"""What an environment has only one of. Of equally short explanations, the one about the first entry is given."""


def disagreement(problem: Problem, providers: Sequence[Provider]) -> Conflict:
    """Return the conflict for frameworks that each have builds that run, but none that share an environment."""
    blocked: dict[frozenset[str], tuple[Sharing, ...]] = {}
    offered: list[list[Sharing]] = [[] for _ in problem.frameworks]
    for provider in providers:
        ways = [sharings(provider, framework_identifier(framework.framework)) for framework in problem.frameworks]
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
    names = sentence_list(map(str, problem.frameworks))
    shared = sentence_list(_THINGS[thing].name for thing in things)
    reasons = "; ".join(step.requirement for step in steps)
    message = f"no builds of {names} that run here share {shared}: {reasons}"
    return Conflict(_CODE, message, tuple(dict.fromkeys((*steps, *why))))


def _witness(thing: str, blocked: dict[frozenset[str], tuple[Sharing, ...]]) -> Iterator[ConflictStep]:
    """What the builds of one combination require of a thing, if it takes several things to exclude all combinations."""
    combination = next(combination for missing, combination in blocked.items() if thing in missing)
    return (step_of(sharing.requirements[thing]) for sharing in combination if thing in sharing.requirements)


def _what_each_admits(
    thing: str, problem: Problem, offered: Sequence[Sequence[Sharing]], provider: Provider
) -> Iterator[ConflictStep]:
    """What the builds of each framework, taken together, admit of a thing."""
    place = SHARED.index(thing)
    for framework, ways in zip(problem.frameworks, offered, strict=True):
        admits = [sharing for sharing in ways if thing in sharing.requirements]
        if len({sharing.admits[place] for sharing in admits}) == 1:
            yield step_of(admits[0].requirements[thing])
            continue
        union = reduce(or_, (sharing.admits[place] for sharing in admits))
        listed = _listed([candidate.thing for candidate in provider.offered(thing)], union)
        text = f"the builds of {framework} that run here need {_THINGS[thing].unit} {listed}"
        yield ConflictStep(text, "the compatibility matrix", "; ".join(dict.fromkeys(_references(admits))))


def _references(admits: Sequence[Sharing]) -> Iterator[str]:
    """The evidence of the newest builds. That of all builds would be unreadable."""
    return (sharing.release.evidence[0].reference for sharing in admits[:3])


def _listed(things: Sequence[Thing], admitted: int) -> str:
    """The things in a set of bits: ``11.2, 11.8, 12.4 to 12.9``, or for cuDNN ``8.7 to 8.9 for CUDA 11``."""
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
    """The key by which lists are grouped and sorted: toolkits and Pythons by major, cuDNN also by its CUDA."""
    if isinstance(thing, Toolkit):
        return (thing.version.major,), tuple(thing.version), ""
    if isinstance(thing, CudnnRelease):
        return (thing.cuda_major, thing.version.major), thing.version.release, ""
    return ((thing.major,), thing.release, "") if isinstance(thing, Version) else ((), (), str(thing))


def _run(names: Sequence[str]) -> Sequence[str]:
    return names if len(names) < _A_RUN else (f"{names[0]} to {names[-1]}",)


def _within(releases: Sequence[Thing], family: tuple[int, ...]) -> Iterator[str]:
    """A few cuDNN releases by version, many as a range, because sources leave out single releases."""
    versions = [release.version for release in releases if isinstance(release, CudnnRelease)]
    minors = [f"{version.major}.{version.minor}" for version in versions]
    if versions:
        few = ", ".join(map(str, versions))
        yield f"{few if len(versions) < _A_RUN else f'{minors[0]} to {minors[-1]}'} for CUDA {family[0]}"


def _spelled(thing: Thing) -> str:
    return str(thing.version) if isinstance(thing, Toolkit) else str(thing)


def _no_source_has_all(problem: Problem, offered: Sequence[Sequence[Sharing]]) -> Conflict:
    """The conflict if sources cannot be mixed and none of their groups has builds of all frameworks."""
    steps = tuple(_where(framework, ways) for framework, ways in zip(problem.frameworks, offered, strict=True))
    reasons = "; ".join(step.requirement for step in steps)
    return Conflict(_CODE, f"no compatible sources have every framework: {reasons}", steps)


def _where(framework: FrameworkRequest, ways: Sequence[Sharing]) -> ConflictStep:
    sources = sorted({_source(sharing.release) for sharing in ways})
    text = f"the builds of {framework} that run here are from {' and '.join(sources)}"
    return ConflictStep(text, "the compatibility matrix")


def _source(release: Release) -> str:
    return release.source.value
