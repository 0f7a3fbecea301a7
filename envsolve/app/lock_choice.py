"""Which Python, which releases of frameworks and which CUDA a lock is for, where what is asked for beside them decides.

Here a framework is one package among those that were asked for: its builds are the candidates of a virtual project, the
majors of CUDA those of another that the builds depend on, and a package that pins torch moves torch. See
:mod:`envsolve.resolve.closure.newest` for which answer is the best.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.app.asked_packages import Given, for_target
from envsolve.app.lock_frameworks import python_of
from envsolve.app.lock_indexes import OF_PYTORCH, Lines, Places
from envsolve.app.stack_wheels import Limits, places_of, required_by_builds
from envsolve.app.targets import glibc_for
from envsolve.frameworks import FRAMEWORK_OF_WHEEL, rivals_of
from envsolve.index.client import Indexes
from envsolve.index.fitting import Interpreter
from envsolve.index.page import RawFile
from envsolve.matrix.load import Matrix
from envsolve.model.build_facts import BuildFacts
from envsolve.model.need import Markers, Need
from envsolve.model.release import Release, Source
from envsolve.model.request import Request
from envsolve.model.solution import Problem, Solution
from envsolve.resolve.closure.ages import days_of
from envsolve.resolve.closure.bounds import THE_STACK, constraints_of, cuda_major_of, may_stand_beside
from envsolve.resolve.closure.newest import Candidates, Found, Newest, newest_positions
from envsolve.resolve.closure.releases import Wanted
from envsolve.resolve.closure.virtual import Virtual, among
from envsolve.resolve.closure.world import Judge, World
from envsolve.resolve.parts import framework_identifier, minor_lies_in
from envsolve.resolve.preference import is_a_year_old
from envsolve.resolve.solver import Solver

_CUDA = "cuda"
_OF_CUDA = ("nvidia-", "cuda-")
_SECONDS = 60.0
_DEPTH = 4
"""How far is looked for a framework behind what was asked for."""


class Choice(NamedTuple):
    """What is decided: the Python, the version of each framework by its name, and the major of CUDA, None for the CPU.

    ``floors`` are the versions that were found of what was asked for, by their positions.
    """

    python: Version
    frameworks: Mapping[str, Version]
    cuda: int | None
    floors: Mapping[str, int]

    def narrowed(self, request: Request, problem: Problem) -> tuple[Request, Problem]:
        """The request and the problem that allow nothing else."""
        python = SpecifierSet(f"=={self.python}.*") & (problem.python or SpecifierSet())
        cuda = problem.cuda
        if self.cuda is not None:
            cuda = SpecifierSet(f"=={self.cuda}.*") & (cuda or SpecifierSet())
        frameworks = tuple(
            it._replace(specifier=it.specifier & SpecifierSet(f"=={self.frameworks[it.framework]}"))
            for it in problem.frameworks
        )
        return (
            request._replace(frameworks=frameworks, python=python, cuda=cuda),
            problem._replace(frameworks=frameworks, python=python, cuda=cuda),
        )


class Choosing:
    """The worlds of a request, and the search for the best answer in them."""

    def __init__(
        self,
        request: Request,
        problem: Problem,
        wanted: Given,
        solver: Solver,
        matrix: Matrix,
        where: Places,
        lines: Lines,
    ) -> None:
        self._facts_of = matrix.build_facts
        self._matrix = matrix
        self._request, self._problem, self._wanted = request, problem, wanted
        self._solver, self._where, self._lines = solver, where, lines
        self._worlds: list[World] = []
        self._alike: dict[tuple[str, str], RawFile] = {}
        self._known_constraints: dict[str, tuple[Need, ...]] = {}

    def newest(self, interpreter: Interpreter, solution: Solution | None) -> Mapping[str, int]:
        """Of what was asked for by name the newest version for some Python of the stack, by its position.

        Raises OutsideError.
        """
        minors = {Version(it) for choice in (solution.choices if solution else ()) for it in choice.release.pythons}
        settled = (it for it in minors if self._is_asked(it) and not self._is_young(it))
        pythons = [python_of(self._problem.python, it) for it in settled]
        worlds = [
            self._world(interpreter._replace(python=python), (), None)
            for python in dict.fromkeys((interpreter.python, *pythons))
        ]
        return newest_positions([Candidates(world, tuple(wanted.needs)) for world, wanted in worlds], self.names)

    def versions(self, positions: Mapping[str, int]) -> dict[str, str]:
        """The versions at ``positions``, by name. Raises OutsideError."""
        found = {name: self._worlds[0].releases(name) for name in positions} if self._worlds else {}
        return {name: it.project.versions[positions[name]] for name, it in found.items() if it is not None}

    @cached_property
    def _builds(self) -> Mapping[str, tuple[Release, ...]]:
        return {it.framework: self._builds_of(it.framework) for it in self._problem.frameworks}

    @cached_property
    def _places(self) -> tuple[Virtual, ...]:
        return places_of(self._matrix) if self._majors else ()

    @cached_property
    def _required(self) -> Judge:
        return required_by_builds(self._matrix, self._places)

    @cached_property
    def _majors(self) -> list[int]:
        return sorted({it.cuda.major for rows in self._builds.values() for it in rows if it.cuda is not None})

    def choice(self) -> Choice | None:
        """The best choice; None where there is none, or none in time. Raises OutsideError."""
        try:
            worlds = [self._candidates(minor) for minor in self._pythons]
            if not worlds or not all(self._builds.values()):
                return None
            found = Newest(worlds, self._ranked(worlds[0]), self._days(worlds[0].world), _SECONDS).answer()
        finally:
            for world in self._worlds:
                world.close()
        return None if found is None else self._chosen(found)

    def _chosen(self, found: Found) -> Choice:
        frameworks = {
            name: rows[found.picks[framework_identifier(name)].position].version for name, rows in self._builds.items()
        }
        cuda = found.picks.get(_CUDA)
        floors = {name: found.picks[name].position for name in self.names if name in found.picks}
        major = None if cuda is None else self._majors[cuda.position]
        return Choice(self._pythons[found.world], frameworks, major, floors)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What was asked for by name, beside frameworks and files by their address."""
        named = (need.name for need, _ in self._wanted.needs if not need.url)
        return tuple(dict.fromkeys(it for it in named if it not in FRAMEWORK_OF_WHEEL))

    @cached_property
    def _pythons(self) -> list[Version]:
        """The Pythons that some build was made for, the newest first, those younger than a year last."""
        minors = {Version(it) for rows in self._builds.values() for row in rows for it in row.pythons}
        return sorted(sorted(filter(self._is_asked, minors), reverse=True), key=self._is_young)

    def _is_asked(self, minor: Version) -> bool:
        return self._problem.python is None or minor_lies_in(minor, self._problem.python)

    def _is_young(self, minor: Version) -> bool:
        return not is_a_year_old(minor, self._solver.catalogue(self._problem).date)

    def _builds_of(self, framework: str) -> tuple[Release, ...]:
        """The builds that run on the machines, the best one last; of those that are alike here the best alone."""
        found: dict[tuple[object, ...], Release] = {}
        for provider in self._solver.providers(self._request, self._problem):
            for candidate in provider.running(framework_identifier(framework)):
                row = candidate.thing
                assert isinstance(row, Release)
                if row.source.is_wheel:
                    major = None if row.cuda is None else row.cuda.major
                    found.setdefault((row.package, row.version, major, row.pythons), row)
        return tuple(reversed(found.values()))

    def _candidates(self, minor: Version) -> Candidates:
        problem = self._problem
        interpreter = Interpreter(python_of(problem.python, minor), problem.platform, glibc_for(problem, None))
        world, wanted = self._world(interpreter, tuple(self._virtual()), self._judged)
        builds = [among(framework_identifier(it), self._for_python(rows, minor)) for it, rows in self._builds.items()]
        asked = (*wanted.needs, *((need, THE_STACK) for need in builds))  # what depends on a framework decides on it
        return Candidates(world, asked, self._is_young(minor) and problem.python is None)

    def _world(self, interpreter: Interpreter, virtual: Sequence[Virtual], judge: Judge | None) -> tuple[World, Given]:
        """The packages for one Python, and what is asked for with it."""
        wanted = for_target(self._wanted, Markers(interpreter.marker_values()))
        packages = self._request.packages
        world = World(
            Indexes((*self._where.extra, self._where.default), self._lines.pool, self._where.mapped, wanted.direct),
            Wanted(interpreter, packages.exclude_newer, packages.allow_builds, wanted.hashes),
            Limits(None, wanted),
            {},
            virtual,
            judge,
            self._alike,
            {row.package for rows in self._builds.values() for row in rows} if virtual else (),
            passes_over_missing=True,
        )
        self._worlds.append(world)
        return world, wanted

    def _for_python(self, rows: Sequence[Release], minor: Version) -> Iterator[int]:
        return (number for number, row in enumerate(rows) if str(minor) in row.pythons)

    def _virtual(self) -> Iterator[Virtual]:
        """The builds of each framework, and the majors of CUDA that they are for."""
        for framework, rows in self._builds.items():
            yield Virtual(framework_identifier(framework), tuple(tuple(self._needs_of(row)) for row in rows))
        yield Virtual(_CUDA, ((),) * len(self._majors))
        yield from self._places

    def _needs_of(self, row: Release) -> Iterator[Need]:
        yield Need(row.package, tuple(sorted(row.extras)), f"=={row.version}", "")
        if row.cuda is not None:
            yield self._of_major(row.cuda.major)

    def _of_major(self, major: int) -> Need:
        return among(_CUDA, (number for number, it in enumerate(self._majors) if it == major))

    def _judged(self, name: str, version: str, needs: tuple[Need, ...]) -> tuple[Need, ...]:
        """What a wheel requires of the frameworks and of CUDA beside what its metadata say."""
        framework = FRAMEWORK_OF_WHEEL.get(name, "")
        if framework in self._builds:
            rows = self._builds[framework]
            public = Version(Version(version).public)
            alike = (number for number, it in enumerate(rows) if it.package == name and it.version == public)
            needs = (*needs, among(framework_identifier(framework), alike))
            if any(it.source is Source.PYTORCH for it in rows):  # its other builds require other parts of CUDA
                needs = tuple(it for it in needs if not it.name.startswith(_OF_CUDA))
            return needs
        needs = self._required(name, version, needs)
        return (*needs, *self._of_stack(name, version), *self._of_builds(name, version))

    def _of_builds(self, name: str, version: str) -> Iterator[Need]:
        """The CUDA that builds of a package load; those in PyTorch's own index are for the CUDA of its PyTorch."""
        for facts in self._facts_of(name):
            if facts.covers(version):
                for framework, rows in self._builds.items():
                    yield among(framework_identifier(framework), self._that_go_with(facts, name, rows))

    def _that_go_with(self, facts: BuildFacts, name: str, rows: Sequence[Release]) -> Iterator[int]:
        for number, row in enumerate(rows):
            is_own_index = row.source is Source.PYTORCH and name in OF_PYTORCH
            if row.cuda is None or is_own_index or facts.go_with(row.cuda):
                yield number

    def _of_stack(self, name: str, version: str) -> Iterator[Need]:
        if cuda_major_of(name) is not None and self._majors:
            fit = (it for it, major in enumerate(self._majors) if may_stand_beside(name, major, self._facts_of))
            yield among(_CUDA, fit)
        for framework, rows in self._builds.items():
            identifier = framework_identifier(framework)
            if name in rivals_of(framework):
                yield among(identifier, ())
            bound = [number for number, row in enumerate(rows) if not _admits(self._constraints(row), name, version)]
            if bound:
                yield among(identifier, set(range(len(rows))).difference(bound))

    def _constraints(self, row: Release) -> tuple[Need, ...]:
        if row.label not in self._known_constraints:
            self._known_constraints[row.label] = tuple(constraints_of(row, self._facts_of))
        return self._known_constraints[row.label]

    def _ranked(self, candidates: Candidates) -> list[str]:
        """What was asked for: what depends on a framework, the frameworks, then the others, by name within a rank."""
        packages = {row.package for rows in self._builds.values() for row in rows}
        dependent = {name for name in self.names if _leads_to(packages, name, candidates.world)}
        frameworks = sorted(map(framework_identifier, self._builds))
        return [*sorted(dependent), *frameworks, *sorted(set(self.names) - dependent)]

    def _days(self, world: World) -> Mapping[str, list[float]]:
        return {framework_identifier(name): self._days_of(rows, world) for name, rows in self._builds.items()}

    def _days_of(self, rows: Sequence[Release], world: World) -> list[float]:
        """Since when each build, or a newer one, is there."""
        known: dict[str, list[float]] = {}
        found: list[float] = []
        day = float("inf")
        for row in reversed(rows):
            releases = world.releases(row.package)
            position = None if releases is None else releases.position(str(row.version))
            if releases is not None and position is not None:
                if row.package not in known:
                    known[row.package] = days_of(releases)
                day = min(day, known[row.package][position])
            found.append(day)
        return found[::-1]


def _admits(constraints: Iterable[Need], name: str, version: str) -> bool:
    """Whether no constraint on ``name`` excludes ``version``."""
    needs = (need for need in constraints if need.name == name)
    return all(SpecifierSet(need.specifier).contains(version, prereleases=True) for need in needs)


def _leads_to(packages: Iterable[str], name: str, world: World) -> bool:
    """Whether the newest release of ``name`` requires one of ``packages``, or something that does."""
    wanted, seen = set(packages), {name}
    names = [name]
    for _ in range(_DEPTH):
        needs = {need.name for it in names for need in _newest_needs(it, world)} - seen
        if needs & wanted:
            return True
        seen |= needs
        names = sorted(needs)
    return False


def _newest_needs(name: str, world: World) -> tuple[Need, ...]:
    from envsolve.resolve.closure.releases import Fit

    if name in world.virtual:
        return ()
    releases = world.releases(name)
    position = None if releases is None else releases.newest(world.limited(releases))
    fit = None if releases is None or position is None else releases.fit(position)
    return (world.needs(releases, fit.best, "") or ()) if releases is not None and isinstance(fit, Fit) else ()
