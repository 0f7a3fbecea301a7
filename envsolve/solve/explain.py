"""Why there is no stack: the shortest true chain of facts.

The same requirements that the resolver ran on are asked again, one candidate at a time: what stands against it, given
only the request and the machines. A reason that stands against every build of a framework is reported alone; where
builds fail for different reasons, each reason is reported with the newest build it stops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from envsolve.errors import ConflictStep
from envsolve.model.release import PlatformLimit, Release
from envsolve.model.request import FrameworkRequest
from envsolve.model.solution import Problem
from envsolve.solve.parts import (
    CUDA,
    CUDNN,
    PYTHON,
    Candidate,
    CudnnIn,
    DriverCeiling,
    DriverFloor,
    GlibcFloor,
    PythonAmong,
    Requirement,
    Served,
    ToolkitIn,
    driver_identifier,
    framework_identifier,
    gpu_identifier,
)
from envsolve.solve.provider import Provider, Tables

MOST_REASONS = 3
"""More than this many different reasons is a wall, not an explanation."""


class Conflict(NamedTuple):
    """Why there is no stack: a stable code, one sentence, and the chain of facts behind it."""

    code: str
    message: str
    steps: tuple[ConflictStep, ...]


class _Chain(NamedTuple):
    """Requirements from a framework build down to the one that the machines or the request do not meet."""

    release: Release
    links: tuple[Requirement, ...]

    @property
    def last(self) -> Requirement:
        return self.links[-1]

    @property
    def kind(self) -> str:
        return _KINDS[type(self.last.limit)]


_KINDS = {
    DriverFloor: "driver-too-old",
    DriverCeiling: "driver-too-new-for-gpu",
    Served: "gpu-not-supported",
    GlibcFloor: "glibc-too-old",
    PythonAmong: "python-not-supported",
    ToolkitIn: "cuda-excluded",
    CudnnIn: "cudnn-not-available",
}


_BY_REQUEST = ("cuda-excluded", "python-not-supported")


def explain(problem: Problem, tables: Tables, providers: Sequence[Provider]) -> Conflict:
    """The reason why no provider found a stack for ``problem``."""
    return (
        _machine_conflict(problem, providers[0])
        or next(
            (found for asked in problem.frameworks if (found := _framework_conflict(asked, tables, providers))), None
        )
        or _joint_conflict(problem, providers)
    )


def _machine_conflict(problem: Problem, provider: Provider) -> Conflict | None:
    """GPUs that the driver of their own machine does not drive, or no driver at all: no framework is at fault."""
    for number, machine in enumerate(problem.machines):
        limits = [
            limit
            for gpu, _ in machine.gpus
            for candidate in provider.matches(gpu_identifier(number, gpu), [])
            for limit in provider.get_dependencies(candidate)
        ]
        for limit in limits:
            if not provider.matches(limit.identifier, [limit]):
                new = isinstance(limit.limit, DriverCeiling)
                fact = _fact_of(problem, limit)
                steps = (_step(limit), ConflictStep(fact, machine.driver_origin))
                old = isinstance(limit.limit, DriverFloor)
                code = "driver-too-new-for-gpu" if new else "driver-too-old-for-gpu" if old else "gpu-not-supported"
                return Conflict(code, f"{limit.because.text}; {fact}", steps)
        limits = [limit for limit in limits if limit.identifier == driver_identifier(number)]
        if limits and not provider.matches(driver_identifier(number), limits):
            message = "no driver drives all of these GPUs: " + "; ".join(limit.because.text for limit in limits)
            return Conflict("no-driver-for-gpus", message, tuple(_step(limit) for limit in limits))
    return None


def _framework_conflict(asked: FrameworkRequest, tables: Tables, providers: Sequence[Provider]) -> Conflict | None:
    identifier = framework_identifier(asked.framework)
    roots = [root for root in providers[0].roots if root.identifier == identifier]
    found = [(provider, candidate) for provider in providers for candidate in provider.matches(identifier, roots)]
    if not found:
        return _nothing_to_try(asked, tables, providers)
    chains = []
    for provider, candidate in found:
        against = list(_against(provider, candidate))
        if not against:
            return None
        chains.append(against)
    return _summary(asked, providers[0].problem, chains)


def _nothing_to_try(asked: FrameworkRequest, tables: Tables, providers: Sequence[Provider]) -> Conflict:
    problem = providers[0].problem
    table = tables.frameworks[asked.framework]
    offered = [
        release
        for release in table.releases
        if (release.cuda is None) is problem.cpu and any(release.source in provider.sources for provider in providers)
    ]
    named = [release for release in offered if release.lies_in(asked.specifier)]
    limit = next((entry for entry in table.platform_limits if entry.platform == problem.platform), None)
    if not problem.cpu and limit is not None and not named and _is_limited(limit, asked, table.releases):
        step = ConflictStep(
            limit.reason, f"no GPU build of {asked} for {problem.platform}", limit.evidence[0].reference
        )
        return Conflict("no-gpu-build", f"{limit.reason} {limit.instead}", (step,))
    bad = {
        entry.reason: entry for it in named for entry in providers[0].rules.known_against(it) if not entry.capabilities
    }
    if bad:
        steps = tuple(ConflictStep(reason, str(asked), entry.evidence[0].reference) for reason, entry in bad.items())
        return Conflict("known-bad-release", f"{asked}: {steps[0].requirement}", steps)
    where = (
        f"for {problem.platform} from {' or '.join(source for provider in providers for source in provider.sources)}"
    )
    kind = "CPU" if problem.cpu else "GPU"
    if not offered:
        message = f"no {kind} build of {asked.framework} is known {where}"
        return Conflict("no-build-for-platform", message, (ConflictStep(f"{asked} was asked for", "the request"),))
    newest = max(release.version for release in offered)
    oldest = min(release.version for release in offered)
    message = f"no {kind} build of {asked} is known {where}: the releases known there go from {oldest} to {newest}"
    return Conflict("no-such-release", message, (ConflictStep(f"{asked} was asked for", "the request"),))


def _is_limited(limit: PlatformLimit, asked: FrameworkRequest, releases: Sequence[Release]) -> bool:
    """Whether ``asked`` names only versions that the platform's limit covers."""
    versions = [release.version for release in releases if release.lies_in(asked.specifier)]
    return all(limit.versions.contains(version, prereleases=True) for version in versions)


def _against(provider: Provider, candidate: Candidate) -> Iterator[_Chain]:
    """Every chain of requirements that rules ``candidate`` out by itself."""
    release = candidate.thing
    assert isinstance(release, Release)
    for links in provider.unmet(candidate):
        yield _Chain(release, links)


def _summary(asked: FrameworkRequest, problem: Problem, chains: Sequence[Sequence[_Chain]]) -> Conflict:
    """One reason where one stands against every build, else the reasons by the newest build each stops.

    Builds that the request itself excludes (by CUDA or Python) are no news unless it excludes them all.
    """
    wanted = [against for against in chains if not any(chain.kind in _BY_REQUEST for chain in against)] or chains
    kinds = list(dict.fromkeys(chain.kind for against in wanted for chain in against))
    common = [kind for kind in kinds if all(any(chain.kind == kind for chain in against) for against in wanted)]
    stopped = [_telling(kind, wanted) for kind in (common[:1] or kinds[:MOST_REASONS])]
    stopped.sort(key=lambda chain: chain.release.version, reverse=True)
    steps = tuple(step for chain in stopped for step in _steps(problem, chain))
    first = stopped[0]
    message = _sentence(problem, first, wanted)
    if common and len(wanted) > 1 and not isinstance(first.last.limit, DriverFloor):
        within = "" if len(wanted) == len(chains) else " that --cuda and --python admit"
        message += f"; something of the kind stands against every other build of {asked}{within}"
    return Conflict(first.kind, message, steps)


def _telling(kind: str, chains: Sequence[Sequence[_Chain]]) -> _Chain:
    """Of all chains of one kind the newest build's; of several driver floors the lowest, which is the one to reach."""
    found = [chain for against in chains for chain in against if chain.kind == kind]
    newest = max(chain.release.version for chain in found)
    return min((chain for chain in found if chain.release.version == newest), key=_floor)


def _floor(chain: _Chain) -> tuple[int, ...]:
    limit = chain.last.limit
    return limit.floor.parts if isinstance(limit, DriverFloor) else ()


def _sentence(problem: Problem, chain: _Chain, chains: Sequence[Sequence[_Chain]]) -> str:
    release, last = chain.release, chain.last
    if not isinstance(last.limit, DriverFloor) or release.cuda is None:
        return last.because.text.rstrip(".")
    if len(chain.links) == 1:  # the build itself needs the driver, for its PTX
        return f"{last.because.text}; {_fact_of(problem, last)}"
    builds = {against[0].release for against in chains if against[0].release.version == release.version}
    built = (
        "known only in builds"
        if {build.cuda.major for build in builds if build.cuda is not None} == {release.cuda.major}
        else "built"
    )
    return (
        f"{release.framework} {release.version} is {built} for CUDA {release.cuda.major}, "
        f"which needs NVIDIA driver {last.limit.floor} or newer; {_fact_of(problem, last)}"
    )


def _steps(problem: Problem, chain: _Chain) -> Iterator[ConflictStep]:
    for link in chain.links:
        yield _step(link)
    fact = _fact_of(problem, chain.last)
    if fact:
        yield ConflictStep(fact, _origin_of(problem, chain.last))


def _step(requirement: Requirement) -> ConflictStep:
    return ConflictStep(requirement.because.text, requirement.because.source, requirement.because.source)


def _fact_of(problem: Problem, requirement: Requirement) -> str:
    """What the machine or the request says where ``requirement`` is not met."""
    kind, _, rest = requirement.identifier.partition(" ")
    if kind == "driver":
        machine = problem.machines[int(rest)]
        origin = f" (from {machine.driver_origin})" if machine.driver_origin else ""
        return f"this machine has driver {machine.driver}{origin}"
    if kind == "glibc":
        return f"this machine has glibc {problem.machines[int(rest)].glibc}"
    if kind == PYTHON and problem.python is not None:
        return f"Python {problem.python} was asked for"
    if kind == CUDA and problem.cuda is not None:
        return f"CUDA {problem.cuda} was asked for"
    if kind == "gpu":
        number, gpu = rest.split()
        machine = problem.machines[int(number)]
        named = next((name for known, name in machine.gpus if str(known) == gpu and name), "")
        return f"the stack must run on {named} ({gpu})" if named else f"the stack must run on compute capability {gpu}"
    return ""


def _origin_of(problem: Problem, requirement: Requirement) -> str:
    kind, _, rest = requirement.identifier.partition(" ")
    return problem.machines[int(rest)].driver_origin if kind == "driver" else "the request"


def _joint_conflict(problem: Problem, providers: Sequence[Provider]) -> Conflict:
    """Each framework has builds that fit, but no set of them shares one CUDA, one cuDNN and one Python."""
    names = " and ".join(str(asked) for asked in problem.frameworks)
    steps = []
    for asked in problem.frameworks:
        identifier = framework_identifier(asked.framework)
        for provider in providers:
            roots = [root for root in provider.roots if root.identifier == identifier]
            fits = next((it for it in provider.matches(identifier, roots) if not list(_against(provider, it))), None)
            if fits is not None:
                steps += [
                    _step(requirement)
                    for requirement in provider.get_dependencies(fits)
                    if requirement.identifier in (CUDA, CUDNN, PYTHON)
                ]
                break
    message = f"no builds of {names} share one CUDA, one cuDNN and one Python from one source"
    return Conflict("frameworks-disagree", message, tuple(steps))
