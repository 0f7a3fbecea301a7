"""The resolvelib provider: which candidates exist, in which order they are tried, and what each requires.

Candidates are decided in this order, so that a reason is found where it belongs: frameworks in the order requested, the
owner of CUDA, CUDA, cuDNN, Python. A candidate's requirements on machines are checked as soon as it is looked at. A
machine's facts have one candidate each, so no later choice could help. Searching over them would cost the square of the
number of machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property, partial
from itertools import chain, takewhile
from typing import TypeVar

from packaging.version import Version
from resolvelib import AbstractProvider
from resolvelib.structs import RequirementInformation

from envsolve.matrix.tables import FrameworkTable
from envsolve.model.capability import ComputeCapability
from envsolve.model.fact import Fact
from envsolve.model.lock_format import PYTHON_FORMATS
from envsolve.model.release import CudnnRelease, Release, Source, Toolkit
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.solution import Owner, Problem
from envsolve.model.versions import DriverVersion, LibcVersion
from envsolve.resolve.catalogue import Catalogue
from envsolve.resolve.parts import (
    CUDA,
    CUDNN,
    OWNER,
    PYTHON,
    Anything,
    Candidate,
    DriverCeiling,
    DriverFloor,
    FrameworkIn,
    PythonIn,
    Requirement,
    framework_identifier,
    gpu_identifier,
)
from envsolve.resolve.preference import Preference, Wanted
from envsolve.resolve.rules import Rules

_ORDER = {identifier: number for number, identifier in enumerate((OWNER, CUDA, CUDNN, PYTHON))}
_SHARED = (CUDA, CUDNN)
_T = TypeVar("_T")


class Known:
    """Cached properties of builds, toolkits and cuDNN releases for some machines, sources and limits, by identity.

    ``alone`` is whether they run there. ``requirements`` are those on undecided candidates. ``builds`` are those of a
    framework, best first.
    """

    def __init__(self) -> None:
        self.alone: dict[int, bool] = {}
        self.requirements: dict[int, list[Requirement]] = {}
        self.builds: dict[FrameworkRequest, _Remembered[Candidate]] = {}


class Provider(AbstractProvider[Requirement, Candidate, str]):
    """Candidates and requirements of one problem, only from ``sources``. ``toolkit`` is the one to use, if any.

    ``known`` is shared with other providers for the same machines, sources and limits, whatever their frameworks.
    """

    def __init__(
        self,
        request: Request,
        problem: Problem,
        catalogue: Catalogue,
        sources: Sequence[Source],
        toolkit: Toolkit | None = None,
        known: Known | None = None,
    ) -> None:
        self.problem = problem
        self.sources = tuple(sources)
        self.rules = Rules(problem, catalogue, by_pip=request.format in PYTHON_FORMATS)
        self._catalogue = catalogue
        ranked = sources if request.sources else ()
        self._preference = Preference(
            problem, catalogue.libraries, ranked, request.prefer, request.locked, catalogue.day_of(request)
        )
        self._toolkit = toolkit
        self._exclude_newer = request.packages.exclude_newer
        self._known = Known() if known is None else known
        self._matched: dict[tuple[object, ...], list[Candidate]] = {}
        self._numbers: dict[str, dict[int, int]] = {}
        self._candidates: dict[str, Sequence[Candidate] | _Remembered[Candidate]] = {}
        self._frameworks = {framework_identifier(it.framework): it for it in problem.frameworks}
        self._turn = {identifier: number for number, identifier in enumerate(self._frameworks)}

    @cached_property
    def roots(self) -> tuple[Requirement, ...]:
        """The requirements of the request and the machines."""
        return (*self._machine_roots(), *self.request_roots)

    @cached_property
    def request_roots(self) -> tuple[Requirement, ...]:
        """The requirements of the request."""
        return tuple(self._request_roots())

    @cached_property
    def _roots_of(self) -> dict[str, list[Requirement]]:
        found: dict[str, list[Requirement]] = {}
        for root in self.roots:
            found.setdefault(root.identifier, []).append(root)
        return found

    def identify(self, requirement_or_candidate: Requirement | Candidate) -> str:
        """Return the identifier of a requirement or a candidate."""
        return requirement_or_candidate.identifier

    def get_preference(
        self,
        identifier: str,
        resolutions: Mapping[str, Candidate],
        candidates: Mapping[str, Iterator[Candidate]],
        information: Mapping[str, Iterator[RequirementInformation[Requirement, Candidate]]],
        backtrack_causes: Sequence[RequirementInformation[Requirement, Candidate]],
    ) -> tuple[int, int]:
        """Order identifiers: frameworks as requested, then the owner, CUDA, cuDNN and Python."""
        return _ORDER.get(identifier, -1), self._turn.get(identifier, 0)

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[Requirement]],
        incompatibilities: Mapping[str, Iterator[Candidate]],
    ) -> Callable[[], Iterable[Candidate]]:
        """Return the candidates that meet every requirement and were not refused yet, best first, evaluated lazily."""
        refused = {id(candidate) for candidate in incompatibilities[identifier]}
        found = self.matches(identifier, list(requirements[identifier]))
        if identifier in self._frameworks or identifier in _SHARED:
            return lambda: (it for it in found if id(it) not in refused and self._runs_alone(it))
        return lambda: (it for it in found if id(it) not in refused)

    def matches(self, identifier: str, limits: Sequence[Requirement]) -> Iterable[Candidate]:
        """The candidates of ``identifier`` that meet every limit, best first. Many builds share their limits."""
        if identifier in self._frameworks:
            return self.offered(identifier)
        if identifier not in _ORDER:
            (only,) = self._of(identifier)
            met = all(limit.limit.admits(only.thing) for limit in limits) and not _floor_above_ceiling(limits)
            return (only,) if met else ()
        key = (identifier, *(id(it.limit) for it in limits))
        known = self._matched.get(key)
        if known is None:
            known = self._matched[key] = self._admitted(identifier, limits)
        return known

    def _admitted(self, identifier: str, limits: Sequence[Requirement]) -> list[Candidate]:
        if not limits:
            return list(self._of(identifier))
        *before, last = limits
        found = [it for it in self.matches(identifier, before) if last.limit.admits(it.thing)]
        if identifier == CUDA and len(found) > 1:
            by_toolkit = {id(candidate.thing): candidate for candidate in found}
            toolkits = [it.thing for it in found if isinstance(it.thing, Toolkit)]
            best_first = self._preference.toolkits(toolkits, [it.limit for it in limits])
            return [by_toolkit[id(toolkit)] for toolkit in best_first]
        return found

    def offered(self, identifier: str) -> Iterable[Candidate]:
        """Every candidate, whether it runs or not. Builds are those that were requested and that some GPU runs."""
        return self._of(identifier)

    def keeping(self, agreed: Sequence[Candidate]) -> Provider:
        """Return the same provider with the builds of the frameworks decided."""
        kept = copy(self)
        kept.__dict__["_candidates"] = self._candidates | {candidate.identifier: [candidate] for candidate in agreed}
        return kept

    def level(self, release: Release) -> object:
        """What the policy compares first. Builds with the same level differ only in later criteria."""
        return self._preference.level(release)

    def running(self, identifier: str) -> Iterator[Candidate]:
        """The builds, toolkits or cuDNN releases that run if nothing else is requested, best first."""
        found = self.matches(identifier, self._limits_on(identifier))
        return (candidate for candidate in found if self._runs_alone(candidate))

    def left_by(self, requirement: Requirement) -> Iterator[int]:
        """The numbers of the candidates of a shared thing that meet ``requirement``."""
        if requirement.identifier not in self._numbers:
            every = enumerate(self.offered(requirement.identifier))
            self._numbers[requirement.identifier] = {id(candidate): number for number, candidate in every}
        numbers = self._numbers[requirement.identifier]
        for candidate in self.matches(requirement.identifier, [*self._limits_on(requirement.identifier), requirement]):
            if requirement.identifier not in _SHARED or self._runs_alone(candidate):
                yield numbers[id(candidate)]

    def roots_hold(self) -> bool:
        """Whether the machines and the requested CUDA are possible, before any framework is considered."""
        of_machines = (identifier for identifier in self._roots_of if identifier not in (*self._frameworks, *_ORDER))
        if not all(self.matches(identifier, self._roots_of[identifier]) for identifier in of_machines):
            return False
        return CUDA not in self._roots_of or next(self.running(CUDA), None) is not None

    def table(self, framework: str) -> FrameworkTable:
        """The matrix's table of a framework of the problem."""
        return self._catalogue.builds[framework].table

    def is_satisfied_by(self, requirement: Requirement, candidate: Candidate) -> bool:
        """Whether ``candidate`` meets ``requirement``."""
        return requirement.admits(candidate)

    def get_dependencies(self, candidate: Candidate) -> Iterable[Requirement]:
        """Return the requirements of ``candidate`` on undecided identifiers."""
        known = self._known.requirements.get(id(candidate.thing))
        if known is None:
            every = self._requirements_of(candidate)
            known = self._known.requirements[id(candidate.thing)] = [it for it in every if it.identifier in _ORDER]
        return known

    def requirements(self, chosen: Iterable[Candidate]) -> dict[str, list[Requirement]]:
        """Every requirement of the request, the machines, and ``chosen`` candidates, on machines too, by identifier."""
        found = {identifier: list(roots) for identifier, roots in self._roots_of.items()}
        for requirement in chain.from_iterable(map(self._requirements_of, chosen)):
            found.setdefault(requirement.identifier, []).append(requirement)
        return found

    def unmet(self, candidate: Candidate) -> Iterator[tuple[Requirement, ...]]:
        """Every chain of requirements, from ``candidate`` down, that the machines and the request alone do not meet."""
        for requirement in self._requirements_of(candidate):
            identifier = requirement.identifier
            matches = self.matches(identifier, [*self._limits_on(identifier), requirement])
            if not matches:
                yield (requirement,)
            elif identifier in _SHARED and not any(map(self._runs_alone, matches)):
                first = next(iter(matches))
                yield (requirement, *next(self.unmet(first)))

    def _limits_on(self, identifier: str) -> Sequence[Requirement]:
        """The requirements of the request and the machines on ``identifier``."""
        return self._roots_of.get(identifier, ())

    def _runs_alone(self, candidate: Candidate) -> bool:
        """Whether only another framework can exclude ``candidate``. This keeps hopeless builds out of the search."""
        known = self._known.alone.get(id(candidate.thing))
        if known is None:
            known = self._known.alone[id(candidate.thing)] = next(self.unmet(candidate), None) is None
        return known

    def _requirements_of(self, candidate: Candidate) -> Iterator[Requirement]:
        thing = candidate.thing
        if isinstance(thing, Release):
            return self.rules.of_release(thing)
        if isinstance(thing, Toolkit):
            return self.rules.of_toolkit(thing)
        if isinstance(thing, CudnnRelease):
            return self.rules.of_cudnn(thing)
        return iter(())

    def _of(self, identifier: str) -> Sequence[Candidate] | _Remembered[Candidate]:
        known = self._candidates.get(identifier)
        if known is None:
            known = self._candidates[identifier] = self._all(identifier)
        return known

    def _all(self, identifier: str) -> Sequence[Candidate] | _Remembered[Candidate]:
        libraries = self._catalogue.libraries
        if identifier in self._frameworks:
            request = self._frameworks[identifier]
            if request not in self._known.builds:
                found = (Candidate(identifier, release) for release in self._builds(identifier))
                self._known.builds[request] = _Remembered(found)
            return self._known.builds[request]
        if identifier == PYTHON:
            minors = {name: it for builds in self._catalogue.builds.values() for name, it in builds.pythons.items()}
            return [Candidate(PYTHON, minor) for minor in self._preference.pythons(minors.values())]
        if identifier == OWNER:
            return [Candidate(OWNER, owner) for owner in Owner]
        if identifier == CUDA:
            return [Candidate(CUDA, toolkit) for toolkit in libraries.cuda.toolkits]
        if identifier == CUDNN:
            return [Candidate(CUDNN, release) for release in self._preference.cudnns(libraries.cudnn)]
        return [Candidate(identifier, self._fact_of_machine(identifier))]

    def _fact_of_machine(self, identifier: str) -> DriverVersion | LibcVersion | ComputeCapability | None:
        kind, number, *gpu = identifier.split()
        machine = self.problem.machines[int(number)]
        if kind == "gpu":
            return ComputeCapability.parse(gpu[0])
        return machine.driver if kind == "driver" else machine.glibc

    def newer(self, framework: str, than: Version) -> Iterator[tuple[Version, Sequence[Release]]]:
        """The requested builds of each version newer than ``than``, newest first, whether they run or not."""
        wanted = self._wanted(framework)
        every = self._catalogue.builds[framework].by_version
        newer = takewhile(lambda entry: entry[0] > than, every)
        return ((version, found) for version, releases in newer if (found := wanted(version, releases)))

    def _builds(self, identifier: str) -> Iterator[Release]:
        framework = self._frameworks[identifier].framework
        return self._preference.builds(self._catalogue.builds[framework], self._wanted(framework))

    def _wanted(self, framework: str) -> Wanted:
        """A filter for the builds of one version that were requested, are old enough and have no known failure."""
        builds = self._catalogue.builds[framework]
        limit = FrameworkIn(self._frameworks[framework_identifier(framework)].specifier)

        def wanted(version: Version, releases: Sequence[Release]) -> Sequence[Release]:
            return [it for it in builds.named_by(limit, version, releases) if self._may_use(it)]

        return wanted

    def _may_use(self, release: Release) -> bool:
        if release.source not in self.sources or (release.cuda is None) is not self.problem.cpu:
            return False
        if not release.is_older_than(self._exclude_newer):
            return False
        return all(entry.capabilities for entry in self.rules.known_against(release))

    def _machine_roots(self) -> Iterator[Requirement]:
        for number, machine in enumerate(self.problem.machines):
            for gpu, _ in machine.gpus:
                reason = partial(Fact, f"the stack must run on {machine.gpu_label(gpu)}", "the request")
                yield Requirement(gpu_identifier(number, gpu), Anything(), reason)
                yield from self.rules.of_gpu(number, machine, gpu)

    def _request_roots(self) -> Iterator[Requirement]:
        for identifier, request in self._frameworks.items():
            reason = partial(Fact, f"{request} was requested", "the request")
            yield Requirement(identifier, FrameworkIn(request.specifier), reason)
        problem = self.problem
        if problem.python is not None:
            reason = partial(Fact, problem.limit("Python", problem.python), "the request")
            yield Requirement(PYTHON, PythonIn(problem.python), reason)
        libraries = self._catalogue.libraries
        if problem.cuda is not None:
            reason = partial(Fact, problem.limit("CUDA", problem.cuda), "the request")
            yield Requirement(CUDA, libraries.toolkit_limit(problem.cuda, None), reason)
        if self._toolkit is not None:
            text = f"CUDA {self._toolkit.version} is the newest that a stack for this request has"
            limit = libraries.only(self._toolkit)
            yield Requirement(CUDA, limit, partial(Fact, text, "--prefer newest-cuda"))


class _Remembered(Iterable[_T]):
    """An iterator's items, stored as they are read, so that it can be read several times and lazily."""

    def __init__(self, source: Iterator[_T]) -> None:
        self._source = source
        self._given: list[_T] = []

    def __iter__(self) -> Iterator[_T]:
        number = 0
        while True:
            if number == len(self._given):
                try:
                    self._given.append(next(self._source))
                except StopIteration:
                    return
            yield self._given[number]
            number += 1

    def __bool__(self) -> bool:
        return next(iter(self), None) is not None


def _floor_above_ceiling(limits: Sequence[Requirement]) -> bool:
    """Whether no driver at all can meet these limits, which matters if the driver is unknown."""
    floors = [it.limit.floor.parts[0] for it in limits if isinstance(it.limit, DriverFloor)]
    ceilings = [it.limit.below for it in limits if isinstance(it.limit, DriverCeiling)]
    return bool(floors and ceilings) and max(floors) >= min(ceilings)
