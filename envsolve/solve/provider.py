"""The resolvelib provider: which candidates exist, in which order they are tried, and what each requires.

Decided in this order, so that a reason is found where it belongs: facts of the machines, frameworks as asked, CUDA,
cuDNN, Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from packaging.version import Version
from resolvelib import AbstractProvider
from resolvelib.structs import RequirementInformation

from envsolve.matrix.load import CudaTable, FrameworkTable
from envsolve.model.capability import ComputeCapability
from envsolve.model.fact import Fact
from envsolve.model.release import CudnnRelease, Release, Source, Toolkit
from envsolve.model.solution import Problem
from envsolve.solve.parts import (
    CUDA,
    CUDNN,
    PYTHON,
    Anything,
    Candidate,
    DriverCeiling,
    DriverFloor,
    FrameworkIn,
    PythonIn,
    Requirement,
    ToolkitIn,
    driver_identifier,
    framework_identifier,
    glibc_identifier,
    gpu_identifier,
)
from envsolve.solve.preference import Preference
from envsolve.solve.rules import Rules

_ORDER = ("driver", "glibc", "gpu", "framework", CUDA, CUDNN, PYTHON)


class Tables(NamedTuple):
    """The parts of the matrix that one problem needs."""

    cuda: CudaTable
    cudnn: tuple[CudnnRelease, ...]
    frameworks: Mapping[str, FrameworkTable]


class Provider(AbstractProvider[Requirement, Candidate, str]):
    """Candidates and requirements of one problem, from ``sources`` only."""

    def __init__(self, problem: Problem, tables: Tables, sources: Sequence[Source], *, ranked: bool) -> None:
        self.problem = problem
        self.sources = tuple(sources)
        self._tables = tables
        self._preference = Preference(problem, tables.cuda, sources if ranked else ())
        from_conda = Source.CONDA_FORGE in sources
        self.rules = Rules(problem, tables.cuda, tables.frameworks, from_conda=from_conda)
        self._requirements: dict[int, list[Requirement]] = {}
        self._alone: dict[int, bool] = {}
        self._matched: dict[tuple[object, ...], list[Candidate]] = {}
        self._candidates = {identifier: list(found) for identifier, found in self._all_candidates(sources)}

    @cached_property
    def roots(self) -> tuple[Requirement, ...]:
        """What the request and the machines themselves require."""
        return (*self._machine_roots(), *self._request_roots())

    def identify(self, requirement_or_candidate: Requirement | Candidate) -> str:
        """The identifier of either."""
        return requirement_or_candidate.identifier

    def get_preference(
        self,
        identifier: str,
        resolutions: Mapping[str, Candidate],
        candidates: Mapping[str, Iterator[Candidate]],
        information: Mapping[str, Iterator[RequirementInformation[Requirement, Candidate]]],
        backtrack_causes: Sequence[RequirementInformation[Requirement, Candidate]],
    ) -> tuple[int, int]:
        """Machines first, then frameworks as asked, CUDA, cuDNN and Python."""
        kind, _, name = identifier.partition(" ")
        asked = [request.framework for request in self.problem.frameworks]
        return _ORDER.index(kind), asked.index(name) if kind == "framework" else 0

    def find_matches(
        self,
        identifier: str,
        requirements: Mapping[str, Iterator[Requirement]],
        incompatibilities: Mapping[str, Iterator[Candidate]],
    ) -> list[Candidate]:
        """The candidates that meet every requirement and were not refused yet, best first."""
        refused = {id(candidate) for candidate in incompatibilities[identifier]}
        found = self.matches(identifier, list(requirements[identifier]))
        if identifier.startswith("framework "):
            found = [candidate for candidate in found if self._runs_alone(candidate)]
        return [candidate for candidate in found if id(candidate) not in refused]

    def matches(self, identifier: str, limits: Sequence[Requirement]) -> list[Candidate]:
        """The candidates of ``identifier`` that meet every limit, best first. Many builds share their limits."""
        key = (identifier, *(asked.limit for asked in limits))
        known = self._matched.get(key)
        if known is None:
            known = self._matched[key] = self._matches(identifier, limits)
        return known

    def _matches(self, identifier: str, limits: Sequence[Requirement]) -> list[Candidate]:
        if _floor_above_ceiling(limits):
            return []
        found = self._candidates.get(identifier, [])
        admitted = [candidate for candidate in found if all(limit.admits(candidate) for limit in limits)]
        if identifier == CUDA:
            built = {asked.limit.built for asked in limits if isinstance(asked.limit, ToolkitIn)}
            admitted.sort(key=lambda candidate: self._preference.of_toolkit(_toolkit(candidate), built))
        return admitted

    def is_satisfied_by(self, requirement: Requirement, candidate: Candidate) -> bool:
        """Whether ``candidate`` meets ``requirement``."""
        return requirement.admits(candidate)

    def get_dependencies(self, candidate: Candidate) -> Iterable[Requirement]:
        """What ``candidate`` requires of the rest, from the rules."""
        known = self._requirements.get(id(candidate))
        if known is None:
            known = self._requirements[id(candidate)] = list(self._requirements_of(candidate))
        return known

    def unmet(self, candidate: Candidate) -> Iterator[tuple[Requirement, ...]]:
        """Every chain of requirements, from ``candidate`` down, that the machines and the request alone do not meet."""
        for requirement in self.get_dependencies(candidate):
            also = [root for root in self.roots if root.identifier == requirement.identifier]
            matches = self.matches(requirement.identifier, [*also, requirement])
            if not matches:
                yield (requirement,)
            elif requirement.identifier in (CUDA, CUDNN) and not any(map(self._runs_alone, matches)):
                yield (requirement, *next(self.unmet(matches[0])))

    def _runs_alone(self, candidate: Candidate) -> bool:
        """Whether nothing but another framework can rule ``candidate`` out. Keeps hopeless builds out of the search."""
        known = self._alone.get(id(candidate))
        if known is None:
            known = self._alone[id(candidate)] = next(self.unmet(candidate), None) is None
        return known

    def _requirements_of(self, candidate: Candidate) -> Iterator[Requirement]:
        thing = candidate.thing
        if isinstance(thing, Release):
            yield from self.rules.of_release(thing)
        elif isinstance(thing, Toolkit):
            yield from self.rules.of_toolkit(thing)
        elif isinstance(thing, CudnnRelease):
            yield from self.rules.of_cudnn(thing)
        elif isinstance(thing, ComputeCapability):
            number = int(candidate.identifier.split()[1])
            yield from self.rules.of_gpu(number, self.problem.machines[number], thing)

    def _all_candidates(self, sources: Sequence[Source]) -> Iterator[tuple[str, Iterable[Candidate]]]:
        pythons: set[str] = set()
        for name, table in self._tables.frameworks.items():
            releases = [release for release in table.releases if self._may_use(release, sources)]
            releases.sort(key=self._preference.of_release)
            pythons.update(python for release in releases for python in release.pythons)
            identifier = framework_identifier(name)
            yield identifier, [Candidate(identifier, release) for release in releases]
        newest_first = sorted((Version(python) for python in pythons), reverse=True)
        yield PYTHON, [Candidate(PYTHON, python) for python in newest_first]
        yield CUDA, [Candidate(CUDA, toolkit) for toolkit in self._tables.cuda.toolkits]
        yield CUDNN, [Candidate(CUDNN, release) for release in self._tables.cudnn]
        for number, machine in enumerate(self.problem.machines):
            yield driver_identifier(number), [Candidate(driver_identifier(number), machine.driver)]
            yield glibc_identifier(number), [Candidate(glibc_identifier(number), machine.glibc)]
            for gpu, _ in machine.gpus:
                yield gpu_identifier(number, gpu), [Candidate(gpu_identifier(number, gpu), gpu)]

    def _may_use(self, release: Release, sources: Sequence[Source]) -> bool:
        if release.source not in sources or (release.cuda is None) is not self.problem.cpu:
            return False
        return not any(not entry.capabilities for entry in self.rules.known_against(release))

    def _machine_roots(self) -> Iterator[Requirement]:
        for number, machine in enumerate(self.problem.machines):
            for gpu, _ in machine.gpus:
                fact = Fact(f"the stack must run on {machine.gpu_name(gpu)} ({gpu})", "the request")
                yield Requirement(gpu_identifier(number, gpu), Anything(), fact)

    def _request_roots(self) -> Iterator[Requirement]:
        for request in self.problem.frameworks:
            identifier = framework_identifier(request.framework)
            fact = Fact(f"{request} was asked for", "the request")
            yield Requirement(identifier, FrameworkIn(request.specifier), fact)
        if self.problem.python is not None:
            fact = Fact(f"Python {self.problem.python} was asked for", "the request")
            yield Requirement(PYTHON, PythonIn(self.problem.python), fact)
        if self.problem.cuda is not None:
            fact = Fact(f"CUDA {self.problem.cuda} was asked for", "the request")
            yield Requirement(CUDA, ToolkitIn(self.problem.cuda, None), fact)


def _floor_above_ceiling(limits: Sequence[Requirement]) -> bool:
    """Whether no driver at all can meet these limits; matters where the driver is not known."""
    floors = [asked.limit.floor.parts[0] for asked in limits if isinstance(asked.limit, DriverFloor)]
    ceilings = [asked.limit.below for asked in limits if isinstance(asked.limit, DriverCeiling)]
    return bool(floors and ceilings) and max(floors) >= min(ceilings)


def _toolkit(candidate: Candidate) -> Toolkit:
    assert isinstance(candidate.thing, Toolkit)
    return candidate.thing
