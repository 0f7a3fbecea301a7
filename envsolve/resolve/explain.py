"""Explain why there is no stack, with the shortest true chain of facts.

First the smallest set of constraints without a stack is found (:mod:`envsolve.resolve.conflict`). Then the resolver's
requirements are checked again for this set only, to see what excludes each build. The explanation has the fewest
reasons that together exclude all builds, each with one build as an example. If every framework has builds that run, it
names the things that they would have to share and that leave no combination.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from packaging.version import Version

from envsolve.errors import ConflictStep
from envsolve.matrix.tables import FrameworkTable
from envsolve.model.capability import ComputeCapability
from envsolve.model.prose import sentence_list
from envsolve.model.release import PlatformLimit, Release, Source, Toolkit
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.solution import Machine, Problem
from envsolve.resolve.conflict import Constraint, minimal_conflict, released_before, restricted
from envsolve.resolve.disagreement import disagreement
from envsolve.resolve.parts import (
    CUDA,
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
    framework_identifier,
    minor_lies_in,
)
from envsolve.resolve.provider import Provider
from envsolve.resolve.reasons import Conflict, fewest, step_of
from envsolve.resolve.solver import Solver

Meant = Callable[[Release], bool]


class _Requested(NamedTuple):
    """What was requested, and the sources it was limited to, if builds from others were not considered."""

    text: str
    where: str

    def __str__(self) -> str:
        return self.text + self.where


class _Chain(NamedTuple):
    """Requirements from a framework build down to the one that the machines or the request do not meet."""

    release: Release
    links: tuple[Requirement, ...]
    kind: str

    @property
    def last(self) -> Requirement:
        return self.links[-1]

    @property
    def reason(self) -> tuple[str, str]:
        """The obstacle. Builds with the same obstacle are listed once."""
        return self.kind, self.last.identifier


_KINDS = {
    DriverFloor: "driver-too-old",
    DriverCeiling: "driver-too-new-for-gpu",
    Served: "gpu-not-supported",
    GlibcFloor: "glibc-too-old",
    PythonAmong: "python-not-supported",
    ToolkitIn: "cuda-excluded",
    CudnnIn: "cudnn-not-available",
}
_NO_DRIVER = "no-driver-for-gpus"
_ORDER = {kind: number for number, kind in enumerate((*_KINDS.values(), _NO_DRIVER))}


def explain(request: Request, problem: Problem, solver: Solver) -> Conflict:
    """Return the reason why ``solver`` finds no stack for ``problem``."""
    minimal = minimal_conflict(request, problem, solver.can_solve)
    conflict = _conflict_of(*restricted(request, problem, frozenset(minimal)), solver, _meant_by(request, problem))
    return conflict._replace(minimal=minimal, spelled=tuple(_spelled(minimal, request, problem)))


def _spelled(minimal: Sequence[Constraint], request: Request, problem: Problem) -> Iterator[str]:
    """The constraints in words, those of the request first. Frameworks have versions only if these matter."""
    versions = {it.number for it in minimal if it.kind == "version"}
    for constraint in reversed(minimal):
        if constraint.kind != "framework" or constraint.number not in versions:
            yield constraint.text(request, problem)


def _meant_by(request: Request, problem: Problem) -> Meant:
    """Whether a build has the CUDA, the Python and the source of the whole request, and so is the better example."""

    def meant(release: Release) -> bool:
        cuda, python = problem.cuda, problem.python
        return (
            (cuda is None or (release.cuda is not None and cuda.contains(str(release.cuda))))
            and (python is None or any(minor_lies_in(Version(minor), python) for minor in release.pythons))
            and (not request.sources or release.source in request.sources)
        )

    return meant


def _conflict_of(request: Request, problem: Problem, solver: Solver, meant: Meant) -> Conflict:
    providers = solver.providers(request, problem)
    if not problem.frameworks:
        return _machine_conflict(problem, providers[0])
    if len(problem.frameworks) == 1:
        return _framework_conflict(problem.frameworks[0], request, problem, providers, meant)
    return disagreement(problem, providers)


def _machine_conflict(problem: Problem, provider: Provider) -> Conflict:
    """What the machines exclude, alone or with the requested CUDA, whatever the framework."""
    of_machines = (root for root in provider.roots if root.identifier != CUDA)
    unmet = next((root for root in of_machines if not provider.matches(root.identifier, [root])), None)
    if unmet is None and problem.cuda is not None:
        return _toolkit_conflict(problem, provider)
    if unmet is None:
        limits = [root for root in provider.roots if isinstance(root.limit, DriverFloor | DriverCeiling)]
        return Conflict(_NO_DRIVER, "no driver supports all of these GPUs", tuple(map(step_of, limits)))
    codes = {DriverCeiling: "driver-too-new-for-gpu", DriverFloor: "driver-too-old-for-gpu"}
    code = codes.get(type(unmet.limit), "gpu-not-supported")
    steps = (step_of(unmet), ConflictStep(_fact_of(problem, unmet), _origin_of(problem, unmet)))
    return Conflict(code, unmet.because.text, steps)


def _toolkit_conflict(problem: Problem, provider: Provider) -> Conflict:
    """The conflict if every requested toolkit needs another driver or another GPU."""
    requested = [root for root in provider.roots if root.identifier == CUDA]
    toolkits = list(provider.matches(CUDA, requested))
    if not toolkits:
        known = sorted(it.thing.version for it in provider.offered(CUDA) if isinstance(it.thing, Toolkit))
        message = f"no toolkit of the requested CUDA is known: those known go from {known[0]} to {known[-1]}"
        return Conflict("cuda-excluded", message, tuple(map(step_of, requested)))
    witness = toolkits[0]
    against = [links[-1] for links in provider.unmet(witness)]
    unmet = next((it for it in against if _kind(problem, it) != _NO_DRIVER), against[0])
    fact = _fact_of(problem, unmet)
    others = "; the same is true for every other requested CUDA" if len(toolkits) > 1 else ""
    steps = (step_of(requested[0]), step_of(unmet), ConflictStep(fact, _origin_of(problem, unmet)))
    return Conflict(_kind(problem, unmet), f"{unmet.because.text}; {fact}{others}", steps)


def _framework_conflict(
    requested: FrameworkRequest, request: Request, problem: Problem, providers: Sequence[Provider], meant: Meant
) -> Conflict:
    identifier = framework_identifier(requested.framework)
    found = [(provider, candidate) for provider in providers for candidate in provider.offered(identifier)]
    if not found:
        return _nothing_to_try(requested, request, problem, providers)
    chains = [list(_against(provider, candidate)) for provider, candidate in found]
    return _summary(
        _Requested(str(requested), _looked_at(requested, request, problem, providers)), problem, chains, meant
    )


def _looked_at(requested: FrameworkRequest, request: Request, problem: Problem, providers: Sequence[Provider]) -> str:
    """The sources and the date, if builds from other sources or later builds were not considered."""
    table = providers[0].table(requested.framework)
    sources = _sources_of(table, providers)
    meant = [it for it in table.releases if (it.cuda is None) is problem.cpu and it.lies_in(requested.specifier)]
    older = [it for it in meant if it.is_older_than(request.packages.exclude_newer)]
    where = f" from {sentence_list(sources, 'or')}" if any(it.source not in sources for it in older) else ""
    return where + (f" {released_before(request)}" if len(older) < len(meant) else "")


def _sources_of(table: FrameworkTable, providers: Sequence[Provider]) -> list[Source]:
    """The sources that were tried and have the framework; all that were tried if none has it."""
    tried = dict.fromkeys(source for provider in providers for source in provider.sources)
    known = {it.source for it in table.releases}
    return [it for it in tried if it in known] or list(tried)


def _nothing_to_try(
    requested: FrameworkRequest, request: Request, problem: Problem, providers: Sequence[Provider]
) -> Conflict:
    step = ConflictStep(f"{requested} was requested", "the request")
    if requested.specifier.is_unsatisfiable():
        return Conflict("no-such-release", f"{requested} contradicts itself: no version meets it", (step,))
    table = providers[0].table(requested.framework)
    offered = [
        release
        for release in table.releases
        if (release.cuda is None) is problem.cpu and any(release.source in provider.sources for provider in providers)
    ]
    named = [release for release in offered if release.lies_in(requested.specifier)]
    limit = next((entry for entry in table.platform_limits if entry.platform == problem.platform), None)
    if not problem.cpu and limit is not None and not named and _is_limited(limit, requested, table.releases):
        text = f"no GPU build of {requested} for {problem.platform}"
        of_limit = ConflictStep(limit.reason, text, limit.evidence[0].reference)
        return Conflict("no-gpu-build", f"{limit.reason} {limit.instead}", (of_limit, step))
    moment = request.packages.exclude_newer
    if named and not any(it.is_older_than(moment) for it in named):
        return _too_new(requested, request, named, cpu=problem.cpu)
    bad = {
        entry.reason: entry
        for it in named
        if it.is_older_than(moment)
        for entry in providers[0].rules.known_against(it)
        if not entry.capabilities
    }
    if bad:
        steps = tuple(
            ConflictStep(reason, str(requested), entry.evidence[0].reference) for reason, entry in bad.items()
        )
        return Conflict("known-bad-release", f"{requested}: {steps[0].requirement}", (*steps, step))
    where = f"for {problem.platform} from {sentence_list(_sources_of(table, providers), 'or')}"
    kind = "CPU" if problem.cpu else "GPU"
    if not offered:
        return Conflict("no-build-for-platform", f"no {kind} build of {requested.framework} is known {where}", (step,))
    newest = max(release.version for release in offered)
    oldest = min(release.version for release in offered)
    message = f"no {kind} build of {requested} is known {where}: the releases known there go from {oldest} to {newest}"
    is_known = any(release.lies_in(requested.specifier) for release in table.releases)
    return Conflict("no-such-release", message, (step,), unknown=None if is_known else requested)


def _too_new(requested: FrameworkRequest, request: Request, named: Sequence[Release], *, cpu: bool) -> Conflict:
    """The conflict if every requested build is newer than the request allows, or has no known date."""
    when = released_before(request)
    days = {it.released: it for it in named if it.released is not None}
    first = days[min(days)] if days else named[0]
    label = f"{first.framework} {first.version}"
    fact = f"{label} was released on {first.released}" if days else f"it is not known when {label} was released"
    steps = (ConflictStep(f"builds {when} were requested", "the request"), ConflictStep(fact, "the matrix"))
    kind = "CPU" if cpu else "GPU"
    return Conflict("released-later", f"no {kind} build of {requested} was {when}: {fact}", steps)


def _is_limited(limit: PlatformLimit, requested: FrameworkRequest, releases: Sequence[Release]) -> bool:
    """Whether the request names only versions that the platform's limit covers."""
    versions = [release.version for release in releases if release.lies_in(requested.specifier)]
    return all(limit.versions.contains(version, prereleases=True) for version in versions)


def _against(provider: Provider, candidate: Candidate) -> Iterator[_Chain]:
    """Every chain of requirements that excludes ``candidate`` by itself."""
    release = candidate.thing
    assert isinstance(release, Release)
    for links in provider.unmet(candidate):
        yield _Chain(release, links, _kind(provider.problem, links[-1]))


def _kind(problem: Problem, requirement: Requirement) -> str:
    """The code of a reason. If no driver meets a floor and still drives the GPUs, the driver is not to blame."""
    kind, _, number = requirement.identifier.partition(" ")
    if kind == "driver" and problem.machines[int(number)].driver is None:
        return _NO_DRIVER
    return _KINDS[type(requirement.limit)]


def _summary(requested: _Requested, problem: Problem, chains: Sequence[Sequence[_Chain]], meant: Meant) -> Conflict:
    """The fewest reasons that exclude all builds, each with its example, that of the newest build first."""
    lengths: dict[tuple[str, str], int] = {}
    for chain in (chain for against in chains for chain in against):
        lengths[chain.reason] = min(len(chain.links), lengths.get(chain.reason, len(chain.links)))
    order = sorted(lengths, key=lambda reason: (lengths[reason], _ORDER[reason[0]], reason[1]))
    reasons = fewest([frozenset(chain.reason for chain in against) for against in chains], order)
    witnesses, left = [], list(chains)
    for reason in reasons:
        witnesses.append(_example(reason, left, meant))
        left = [against for against in left if all(chain.reason != reason for chain in against)]
    witnesses.sort(key=lambda chain: chain.release.version, reverse=True)
    message = "; ".join(_sentence(requested, problem, chain, chains, alone=len(reasons) == 1) for chain in witnesses)
    if len(reasons) > 1:
        message += f"; between them this leaves no build of {requested}"
    steps = tuple(dict.fromkeys(step for chain in witnesses for step in _steps(problem, chain)))
    return Conflict(witnesses[0].kind, message, steps)


def _example(reason: tuple[str, str], chains: Sequence[Sequence[_Chain]], meant: Meant) -> _Chain:
    """The example for a reason: the newest build, preferably one that the user meant.

    For driver floors it is the build with the lowest floor, because that is the easiest to reach.
    """
    found = [chain for against in chains for chain in against if chain.reason == reason]
    lowest = min(map(_floor, found))
    at_lowest = [chain for chain in found if _floor(chain) == lowest]
    return max(at_lowest, key=lambda chain: (meant(chain.release), chain.release.version))


def _floor(chain: _Chain) -> tuple[int, ...]:
    limit = chain.last.limit
    return limit.floor.parts if isinstance(limit, DriverFloor) else ()


def _sentence(
    requested: _Requested,
    problem: Problem,
    chain: _Chain,
    chains: Sequence[Sequence[_Chain]],
    *,
    alone: bool,
) -> str:
    """One reason as a sentence. ``alone`` is true if it excludes every build."""
    release, last = chain.release, chain.last
    if isinstance(last.limit, DriverFloor) and release.cuda is not None and len(chain.links) > 1:
        builds = [against[0].release for against in chains if against]
        subject = _subject(requested, release, builds if alone else [release])
        return f"{subject}, which needs NVIDIA driver {last.limit.floor} or newer; {_fact_of(problem, last)}"
    reason = last.because.text.rstrip(".")
    if len(chain.links) > 1:
        reason = f"{chain.links[0].because.text}; {reason}"
    more = alone and len(chains) > 1
    return f"{reason}; the same is true for every other known build of {requested}" if more else reason


def _subject(requested: _Requested, release: Release, builds: Sequence[Release]) -> str:
    """The subject of a sentence: ``pytorch 2.15.0 is known only in builds for CUDA 13``."""
    assert release.cuda is not None
    majors = {build.cuda.major for build in builds if build.cuda is not None}
    versions = {build.version for build in builds}
    if len(versions) == 1 and majors == {release.cuda.major}:
        named = f"{release.framework} {release.version}{requested.where}"
        return f"{named} is known only in builds for CUDA {release.cuda.major}"
    if majors == {release.cuda.major} and len(versions) > 1:
        return f"{requested} is known only in builds for CUDA {release.cuda.major}"
    if len(versions) > 1:
        return f"no known build of {requested} is for a CUDA older than {release.cuda.major}"
    return f"{release.label} is built for CUDA {release.cuda.major}"


def _steps(problem: Problem, chain: _Chain) -> Iterator[ConflictStep]:
    for link in chain.links:
        yield step_of(link)
    fact = _fact_of(problem, chain.last)
    if fact:
        yield ConflictStep(fact, _origin_of(problem, chain.last))


def _fact_of(problem: Problem, requirement: Requirement) -> str:
    """What the machine or the request says that does not meet ``requirement``."""
    kind, _, rest = requirement.identifier.partition(" ")
    if kind in (PYTHON, CUDA):
        requested = problem.python if kind == PYTHON else problem.cuda
        return "" if requested is None else problem.limit("Python" if kind == PYTHON else "CUDA", requested)
    if not rest:
        return ""
    number, *gpu = rest.split()
    machine = problem.machines[int(number)]
    if kind == "driver":
        return _driver_fact(machine)
    return _glibc_fact(machine) if kind == "glibc" else _gpu_fact(machine, gpu[0])


def _glibc_fact(machine: Machine) -> str:
    assumed = f"glibc {machine.glibc} is assumed for {machine.name}"
    return assumed if machine.assumed_glibc else f"{machine.name} has glibc {machine.glibc}"


def _driver_fact(machine: Machine) -> str:
    if machine.driver is None:
        gpus = sentence_list(machine.gpu_label(gpu) for gpu, _ in machine.gpus)
        return f"no driver that new supports {gpus}"
    origin = f" (from {machine.driver_origin})" if machine.driver_origin else ""
    return f"{machine.name} has driver {machine.driver}{origin}"


def _gpu_fact(machine: Machine, gpu: str) -> str:
    of = f" of {machine.name}" if machine.hosts else ""
    return f"the stack must run on {machine.gpu_label(ComputeCapability.parse(gpu))}{of}"


def _origin_of(problem: Problem, requirement: Requirement) -> str:
    kind, _, rest = requirement.identifier.partition(" ")
    origin = problem.machines[int(rest)].driver_origin if kind == "driver" else ""
    return origin or "the request"
