"""Builds of frameworks in the search for a Python lock: what they require, and what packages require of them.

Each framework is a virtual project whose versions are its builds, and the major versions of CUDA are another. So the
builds that a wheel can run with are a requirement like any other: a build with the CUDA that the wheel loads, with code
for the GPUs, or compiled for the same framework.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.app.packages.stack_wheels import Rivals, cuda_majors_of, places_of, required_by_builds
from envsolve.frameworks import FRAMEWORK_OF_WHEEL, OWN_INDEX, rivals_of
from envsolve.matrix.load import Matrix
from envsolve.model.build_facts import BuildFacts
from envsolve.model.capability import DeviceCode
from envsolve.model.need import Need, specifier_of
from envsolve.model.release import Release, Source
from envsolve.model.request import Request
from envsolve.model.solution import Problem
from envsolve.model.versions import CudaVersion
from envsolve.resolve.closure.bounds import Drivers, constraints_of, cuda_major_of, drivers_of, may_be_installed_with
from envsolve.resolve.closure.virtual import Virtual, among
from envsolve.resolve.closure.world import Judge
from envsolve.resolve.parts import CUDA, CUDNN, OWNER, framework_identifier
from envsolve.resolve.provider import Provider as RowsProvider
from envsolve.resolve.solver import Solver


class StackInSearch:
    """The builds of each framework of ``problem`` that run on its machines, among the packages of a search.

    ``in_part`` allows builds that lose features with a CUDA; ``met_what_runs_in_part`` says whether there was one.
    ``rivals`` are packages that require another name for something in the stack.
    """

    def __init__(
        self,
        builds: Mapping[str, tuple[Release, ...]],
        request: Request,
        problem: Problem,
        solver: Solver,
        matrix: Matrix,
        *,
        in_part: bool = False,
    ) -> None:
        self._builds, self._request, self._problem = builds, request, problem
        self._solver, self._matrix, self._in_part = solver, matrix, in_part
        self.met_what_runs_in_part = False
        self.rivals: Rivals = {}
        self._shared: dict[str, tuple[frozenset[int] | None, ...]] = {}

    @cached_property
    def virtual(self) -> tuple[Virtual, ...]:
        """The builds of each framework, and their CUDA major versions."""
        rows = (
            Virtual(framework_identifier(name), tuple(tuple(self._needs_of(row)) for row in rows))
            for name, rows in self._builds.items()
        )
        return (*rows, Virtual(CUDA, ((),) * len(self._majors)), *self._places)

    @cached_property
    def _places(self) -> tuple[Virtual, ...]:
        return places_of(self._matrix) if self._majors else ()

    @cached_property
    def _required(self) -> Judge:
        platform = self._problem.platform
        return required_by_builds(self._matrix, platform, self._places, self.framework_of, self.rivals)

    @cached_property
    def _majors(self) -> list[int]:
        return sorted({it.cuda.major for rows in self._builds.values() for it in rows if it.cuda is not None})

    def _needs_of(self, row: Release) -> Iterator[Need]:
        yield Need(row.package, tuple(sorted(row.extras)), f"==={row.full_version}", "")
        if row.cuda is not None:
            yield self._of_major(row.cuda.major)
        for framework, rows in self._builds.items():
            if framework > row.framework:
                fit = (number for number, other in enumerate(rows) if self._go_together(row, other))
                yield among(framework_identifier(framework), fit)

    def _go_together(self, row: Release, other: Release) -> bool:
        """Whether two builds allow a common CUDA toolkit that the machines can have, and a common cuDNN."""
        return all(
            one is None or another is None or not one.isdisjoint(another)
            for one, another in zip(self._shared_by(row), self._shared_by(other), strict=True)
        )

    def _shared_by(self, row: Release) -> tuple[frozenset[int] | None, ...]:
        """The toolkits, cuDNNs and owners that a build allows and all frameworks must share; None for any."""
        if row.label not in self._shared:
            found: dict[str, frozenset[int]] = {}
            for requirement in self._provider.rules.of_release(row) if row.cuda is not None else ():
                if requirement.identifier in (CUDA, CUDNN, OWNER):
                    admitted = frozenset(self._provider.left_by(requirement))
                    found[requirement.identifier] = found.get(requirement.identifier, admitted) & admitted
            self._shared[row.label] = tuple(found.get(it) for it in (CUDA, CUDNN, OWNER))
        return self._shared[row.label]

    @cached_property
    def _provider(self) -> RowsProvider:
        return self._solver.providers(self._request, self._problem)[0]

    def _of_major(self, major: int) -> Need:
        return among(CUDA, (number for number, it in enumerate(self._majors) if it == major))

    @property
    def builds(self) -> Mapping[str, tuple[Release, ...]]:
        """The builds of each framework, the best last."""
        return self._builds

    def judged(self, name: str, version: str, needs: tuple[Need, ...]) -> tuple[Need, ...]:
        """What a wheel requires of frameworks and CUDA, in addition to its metadata."""
        of_extras = [need for need in needs if need.for_extra]
        needs = tuple(need for need in needs if not need.for_extra)
        framework = self.framework_of.get(name)
        if framework is not None:
            alike = (
                number
                for number, it in enumerate(self._builds[framework])
                if it.package == name and it.full_version == Version(version)
            )
            return (*needs, among(framework_identifier(framework), alike))
        needs = self._required(name, version, needs)
        of_stack = (*self._of_stack(name, version), *self._of_dependency(name, version))
        return (*needs, *of_stack, *self._of_builds(name, version), *self._of_extras(of_extras))

    def _of_extras(self, needs: Iterable[Need]) -> Iterator[Need]:
        """The builds that are new enough for a package, as an extra with the name of the framework says."""
        for need in needs:
            rows = self._builds.get(FRAMEWORK_OF_WHEEL[need.name], ())
            if rows:
                versions = specifier_of(need.specifier)
                fit = (it for it, row in enumerate(rows) if versions.contains(row.version, prereleases=True))
                yield among(framework_identifier(rows[0].framework), fit)

    @cached_property
    def framework_of(self) -> Mapping[str, str]:
        """The framework that each package is a build of."""
        return {row.package: framework for framework, rows in self._builds.items() for row in rows}

    def _of_builds(self, name: str, version: str) -> Iterator[Need]:
        """The frameworks that builds of a package require: with the CUDA that they load, on supported GPUs.

        Builds on PyTorch's own index are for the CUDA of their PyTorch.
        """
        known = [it for it in self._facts_of(name) if it.covers(version)]
        self.met_what_runs_in_part |= any(it.loss and it.need_cuda for it in known)
        counting = [it for it in known if not (self._in_part and it.loss)]
        for facts in counting:
            for framework, rows in self._builds.items():
                yield among(framework_identifier(framework), self._that_go_with(facts, name, rows))

    def _that_go_with(self, facts: BuildFacts, name: str, rows: Sequence[Release]) -> Iterator[int]:
        for number, row in enumerate(rows):
            is_own_index = row.source is Source.PYTORCH and name in OWN_INDEX
            if is_own_index or self._suit(facts, row.cuda):
                yield number

    def _suit(self, facts: BuildFacts, cuda: CudaVersion | None) -> bool:
        """Whether builds with ``facts`` run with a framework for ``cuda``; None is for the CPU."""
        if facts.without_code_for(self._problem.gpus, cuda, self._drivers.compile) is not None:
            return False
        return cuda is None or (facts.go_with(cuda) and facts.run_with(self._drivers.run or cuda.major))

    def runs_beside_a_build(self, name: str, version: str) -> bool:
        """Whether a version of a package fits a build of each framework, as far as known."""
        counting = [it for it in self._facts_of(name) if it.covers(version)]
        return all(list(self._that_go_with(it, name, rows)) for it in counting for rows in self._builds.values())

    def code_of(self, name: str, version: str, cuda: str) -> DeviceCode | None:
        """The GPUs that builds of a version with ``cuda`` are compiled for, whoever publishes them; None if unknown."""
        known = (it for it in self._facts_of(name) if it.code is not None and it.covers(version))
        return next((it.code for it in known if it.with_cuda is None or it.with_cuda.contains(cuda)), None)

    def _facts_of(self, name: str) -> tuple[BuildFacts, ...]:
        return self._matrix.build_facts(name, self._problem.platform)

    @cached_property
    def _drivers(self) -> Drivers:
        return drivers_of(self._problem, self._matrix.cuda)

    def _of_stack(self, name: str, version: str) -> Iterator[Need]:
        if cuda_major_of(name) is not None and self._majors:
            fit = (it for it, major in enumerate(self._majors) if may_be_installed_with(name, major, self._facts_of))
            yield among(CUDA, fit)
        for framework, rows in self._builds.items():
            identifier = framework_identifier(framework)
            if name in rivals_of(framework):
                yield among(identifier, ())
            constraints = self._constraints[framework].get(name, ())
            bound = {
                number for number, need in constraints if version not in SpecifierSet(need.specifier, prereleases=True)
            }
            if bound:
                yield among(identifier, set(range(len(rows))) - bound)

    def _of_dependency(self, name: str, version: str) -> Iterator[Need]:
        """The CUDA of a framework that is only a dependency, but will be a part of the stack."""
        if self._majors and (built_for := cuda_majors_of(self._matrix, name, version, self._problem.platform)):
            yield among(CUDA, (number for number, major in enumerate(self._majors) if major in built_for))

    @cached_property
    def _constraints(self) -> Mapping[str, Mapping[str, list[tuple[int, Need]]]]:
        """The packages that limit the builds of each framework, with the index of the build and the requirement."""
        found: dict[str, dict[str, list[tuple[int, Need]]]] = {framework: {} for framework in self._builds}
        for framework, rows in self._builds.items():
            for number, row in enumerate(rows):
                for need in constraints_of(row, self._facts_of):
                    found[framework].setdefault(need.name, []).append((number, need))
        return found
