"""The worlds in which a Python lock is searched: one for each Python, with builds of frameworks among the packages.

Here a framework is like any package of the request: its builds are the candidates of a virtual project. The major
versions of CUDA are those of another virtual project, which the builds depend on. So a package that pins torch changes
torch. GPUs, driver and C library are constants: builds that do not run with them are not candidates.
:mod:`envsolve.resolve.closure.newest` defines the best answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property, partial
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.app.packages.lock_frameworks import python_of
from envsolve.app.packages.lock_indexes import Connection, Places
from envsolve.app.packages.requirements import Requirements, for_target
from envsolve.app.packages.stack_in_search import StackInSearch
from envsolve.app.packages.stack_wheels import Limits, files_for, index_of, is_lockable
from envsolve.app.request.targets import glibc_of
from envsolve.frameworks import FRAMEWORK_OF_WHEEL, GPU_WHEEL_OF, OWN_INDEX
from envsolve.index.client import Indexes
from envsolve.index.extended import Elsewhere, More
from envsolve.index.fitting import Interpreter
from envsolve.index.page import RawFile
from envsolve.matrix.load import Matrix
from envsolve.model.need import Need
from envsolve.model.reference import as_typed
from envsolve.model.release import Release, Source
from envsolve.model.request import LockedVersions, Packages, Request
from envsolve.model.solution import Problem
from envsolve.resolve.closure.ages import days_of
from envsolve.resolve.closure.bounds import THE_STACK
from envsolve.resolve.closure.newest import Ages, Answer, Candidates, Newest, newest_positions
from envsolve.resolve.closure.releases import Fit, Sources
from envsolve.resolve.closure.resolve import Conflict, Progress
from envsolve.resolve.closure.virtual import among
from envsolve.resolve.closure.world import Known, World
from envsolve.resolve.parts import framework_identifier, minor_lies_in
from envsolve.resolve.preference import is_a_year_old
from envsolve.resolve.solver import Solver

_DEPTH = 4
"""How far dependencies are followed to a framework."""


class Unbuilt(NamedTuple):
    """A package that must be built to read its requirements, with its requirers and the index that it refers to.

    ``address`` is "" for a package of an index, ``version`` if nothing states it.
    """

    name: str
    version: str
    address: str
    askers: tuple[str, ...]
    leads_to: str


class Chosen(NamedTuple):
    """The best answer, its Python, and the build of each framework in it."""

    answer: Answer
    interpreter: Interpreter
    builds: Mapping[str, Release]

    @property
    def versions(self) -> dict[str, str]:
        """The version of each package."""
        virtual = self.answer.provider.world.virtual
        return {name: it.version for name, it in self.answer.picks.items() if name not in virtual}

    @property
    def sources(self) -> Sources:
        """Which source distributions were allowed."""
        return self.answer.provider.world.wanted.sources

    @property
    def unbuilt(self) -> list[Unbuilt]:
        """The packages that must be built to read their requirements."""
        provider = self.answer.provider
        world = provider.world
        picks = [it for name, it in sorted(self.answer.picks.items()) if name not in world.virtual]
        found = []
        for it in picks:
            metadata, direct = world.metadata(it.releases, it.fit.best), world.indexes.direct(it.name)
            if metadata.needs_build:
                address = "" if direct is None else as_typed(direct.requested)
                askers = tuple(provider.required_by(it.name))
                found.append(Unbuilt(it.name, it.version, address, askers, metadata.leads_to))
        return found

    def is_exact(self, limits: Limits, packages: Packages) -> bool:
        """Whether the chosen packages are exactly those that would be installed, and lie within ``limits``.

        False if wheels come from another index than the search used, or if the metadata of another wheel of the same
        version was read.
        """
        if any(index_of(row, packages) is not None for row in self.builds.values()):
            return False
        world = self.answer.provider.world
        picks = [it for name, it in self.answer.picks.items() if name not in world.virtual]
        return all(world.reads_own_metadata(it.releases, it.fit.best) for it in picks) and all(
            limit.admitted(it.releases) >> it.position & 1 for it in picks for limit in limits(it.name)
        )


class Worlds:
    """The worlds of a problem, and the search for the best answer in them.

    ``requested`` are the frameworks of the request; the problem may have others, which are dependencies. ``in_part``
    allows packages that lose features with the CUDA of a build. ``as_if_built`` treats packages that must be built as
    if they had no requirements; until a build, this is always so.
    """

    def __init__(
        self,
        request: Request,
        problem: Problem,
        requested: Iterable[str],
        wanted: Requirements,
        solver: Solver,
        matrix: Matrix,
        where: Places,
        connection: Connection,
        *,
        more: More,
        in_part: bool = False,
        as_if_built: bool = False,
    ) -> None:
        self._matrix = matrix
        self._request, self._problem, self._wanted = request, problem, wanted
        self._requested = frozenset(requested)
        self._solver, self._where, self._connection = solver, where, connection
        self.in_part = in_part
        self._more = more
        self._as_if_built = as_if_built or request.packages.allow_builds
        self.conflicts: Mapping[str, Conflict] = {}
        """Why there is no answer, for each Python: with source distributions if these were searched."""
        self._worlds: list[World] = []
        self._alike: dict[tuple[str, str], RawFile] = {}
        self._known: dict[Interpreter, Known] = {}

    def close(self) -> None:
        """Stop the threads that prefetch. Raises OutsideError if one of them failed."""
        for world in self._worlds:
            world.close()

    @cached_property
    def builds(self) -> Mapping[str, tuple[Release, ...]]:
        """The builds of each framework that run on the machines, the best last."""
        return builds_of(self._solver, self._request, self._problem)

    @cached_property
    def stack(self) -> StackInSearch:
        """The same builds, as packages of the search."""
        return StackInSearch(
            self.builds, self._request, self._problem, self._solver, self._matrix, in_part=self.in_part
        )

    @cached_property
    def pythons(self) -> list[Version]:
        """The Pythons that some build supports, newest first; those released less than a year ago last."""
        minors = {Version(it) for rows in self.builds.values() for row in rows for it in row.pythons}
        return sorted(sorted(filter(self._is_requested, minors), reverse=True), key=self._is_young)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the requested packages, without frameworks and direct references."""
        named = (need.name for need, _ in self._wanted.needs if not need.url)
        return tuple(dict.fromkeys(it for it in named if it not in FRAMEWORK_OF_WHEEL))

    def seen(self, *, as_source: bool) -> Iterator[str]:
        """The packages that the search visited; with ``as_source`` only those whose newest version has no wheel."""
        for known in self._known.values():
            for name, releases in tuple(known.releases.items()):  # other threads may add to it
                if not as_source or releases is None or releases.newest_is_source(releases.mask("")):
                    yield name

    def floors_of(self, chosen: Chosen) -> dict[str, str]:
        """The chosen versions of the requested packages."""
        picks = chosen.answer.picks
        return {name: picks[name].version for name in self.names if name in picks}

    def newest_beside(self, builds: Mapping[str, Release], problem: Problem) -> dict[str, str]:
        """The newest versions in any world of the requested packages, and of the frameworks that have ``builds``.

        Those of frameworks are versions that ``problem`` allows.
        """
        settled = [it for it in self._candidates if not it.is_last_resort]
        found = newest_positions(settled or self._candidates, self.names)
        world = self._candidates[0].world
        releases = {name: world.releases(name) for name in found}
        versions = {name: it.project.versions[found[name]] for name, it in releases.items() if it is not None}
        allowed = {it.framework: it.specifier for it in problem.frameworks}
        for framework, build in builds.items():
            within = (
                it for it in reversed(self.builds[framework]) if it.lies_in(allowed.get(framework, SpecifierSet()))
            )
            versions[build.package] = str(next(within, build).version)
        return versions

    def best(
        self, versions: Mapping[str, str], locked: LockedVersions, end: float, progress: Progress | None
    ) -> Chosen | None:
        """The best answer; None if there is none.

        ``versions`` and ``locked`` are the versions in the existing lock. Raises OutsideError; UnsolvableError
        ``search-too-long`` if there is no answer before ``end``.
        """
        existing = {**versions, **dict(self._existing_builds(locked))} if versions else {}
        order = self._with_first(locked.python if versions else None)
        worlds = [self._candidates[number] for number in order]
        identifiers = {framework_identifier(it): it for it in self.builds}
        named = [it for it in (*self.names, *identifiers) if not self._stays(it, existing)]
        windowed = [it for it in named if identifiers.get(it, "") in ("", *self._requested)]
        ages = {it: self._ages_of(self.builds[name]) for it, name in identifiers.items()}
        rank = partial(self._ranked, worlds[0].world)
        search = Newest(worlds, named, windowed, rank, ages, end, existing, progress)
        found = search.answer()
        conflicts = (it for _, it in sorted(search.conflicts.items()))
        self.conflicts = {it.provider.world.wanted.interpreter.minor_version: it for it in conflicts}
        return None if found is None else self._chosen(found)

    @property
    def have_to_build(self) -> bool:
        """Whether some package must be built to read its requirements."""
        return any(world.to_build for world in self._worlds)

    def is_final(self, conflict: Conflict) -> bool:
        """Whether a conflict is the same around any stack.

        It is not if builds of frameworks, or the CUDA they need, take part in it. Nor if a version lacks a requested
        extra: the search around a stack ignores that extra.
        """
        names = {it.name for cause in conflict.causes for it in cause if it is not None}
        world = conflict.provider.world
        return names.isdisjoint({*self.stack.framework_of, *world.virtual}) and not conflict.provider.lacks_extra

    def _chosen(self, answer: Answer) -> Chosen:
        picks = answer.picks
        identifiers = {name: framework_identifier(name) for name in self.builds}
        builds = {name: self.builds[name][picks[it].position] for name, it in identifiers.items() if it in picks}
        return Chosen(answer, answer.provider.world.wanted.interpreter, builds)

    def _stays(self, name: str, existing: Mapping[str, str]) -> bool:
        """Whether the existing lock has a version of ``name`` that meets the request."""
        if name not in existing:
            return False
        specifiers = [
            need.specifier for need, _ in (*self._wanted.needs, *self._wanted.constraints) if need.name == name
        ]
        return all(SpecifierSet(it).contains(existing[name], prereleases=True) for it in specifiers)

    def _with_first(self, python: str | None) -> list[int]:
        """The indexes of the worlds, those for ``python`` first."""
        minors = [it.world.wanted.interpreter.minor_version for it in self._candidates]
        return sorted(range(len(minors)), key=lambda number: minors[number] != python)

    def _existing_builds(self, locked: LockedVersions) -> Iterator[tuple[str, str]]:
        for name, rows in self.builds.items():
            number = _number_of_existing(rows, locked)
            if number is not None:
                yield framework_identifier(name), str(number)

    @cached_property
    def _candidates(self) -> list[Candidates]:
        """Worlds with wheels for each Python, then those with source distributions if they are allowed."""
        wheels = list(self._for_pythons(Sources.NONE))
        pairs = zip(wheels, self._for_pythons(Sources.WITHOUT_WHEELS), strict=True)
        with_source = [it._replace(is_needed=partial(_lacks_wheels, of_wheels.world)) for of_wheels, it in pairs]
        builds = self._for_pythons(Sources.ANY) if self._request.packages.allow_builds else ()
        return [*wheels, *with_source, *builds]

    def _for_pythons(self, sources: Sources) -> Iterator[Candidates]:
        """A world for each Python; if nothing decides the Python, for the one that runs envsolve."""
        pythons: Sequence[Version | None] = self.pythons or (None,)
        for minor in pythons:
            python = python_of(self._problem.python, minor)
            interpreter = Interpreter(python, self._problem.platform, glibc_of(self._problem))
            wanted = for_target(self._wanted, self._connection.pool.markers(interpreter.marker_values()))
            of_builds = [
                (among(framework_identifier(it), _for_python(rows, minor)), THE_STACK)
                for it, rows in self.builds.items()
            ]
            is_young = minor is not None and self._is_young(minor) and self._problem.python is None
            is_last_resort = is_young or (sources is Sources.ANY and len(pythons) > 1)  # another Python has the wheels
            world = self._world(interpreter, wanted, sources)
            yield Candidates(world, (*wanted.needs, *of_builds), is_last_resort)  # frameworks come after the packages

    def _world(self, interpreter: Interpreter, wanted: Requirements, sources: Sources) -> World:
        indexes = Indexes(
            (*self._where.extra, self._where.default),
            self._connection.pool,
            self._where.mapped,
            wanted.by_name,
            {**self._more, **self._elsewhere},
        )
        files = files_for(wanted, self._problem.frameworks, interpreter, self._request.packages, sources, self._more)
        world = World(
            indexes,
            files._replace(as_if_built=self._as_if_built),
            Limits(None, wanted),
            {},
            self.stack.virtual,
            self.stack.judged,
            self._alike,
            self.stack.framework_of,
            None if sources is Sources.ANY else self._known.setdefault(interpreter, Known({}, set())),
        )
        self._worlds.append(world)
        return world

    @cached_property
    def _elsewhere(self) -> Mapping[str, Mapping[str, Sequence[Elsewhere]]]:
        """The builds of PyTorch in the folders of PyTorch's own index, and its companion packages there."""
        found: dict[str, dict[str, list[Elsewhere]]] = {}
        for row in (row for rows in self.builds.values() for row in reversed(rows)):
            if row.source is not Source.PYTORCH:
                continue
            index = index_of(row, self._request.packages)
            if index is None:
                continue
            full = str(row.full_version)
            found.setdefault(row.package, {}).setdefault(full, []).append(Elsewhere(index, full))
            local = row.full_version.local
            for package, versions in row.companions:
                version = versions.removeprefix("==")
                if package in OWN_INDEX and version != versions and local:
                    place = Elsewhere(index, f"{version}+{local}")
                    found.setdefault(package, {}).setdefault(version, []).append(place)
        return found

    def _is_requested(self, minor: Version) -> bool:
        return self._problem.python is None or minor_lies_in(minor, self._problem.python)

    def _is_young(self, minor: Version) -> bool:
        return not is_a_year_old(minor, self._solver.catalogue(self._problem).day_of(self._request))

    def _ranked(self, world: World) -> Sequence[str]:
        """The requested packages in order of priority: those that depend on a framework, the frameworks, the others."""
        packages = {row.package for rows in self.builds.values() for row in rows}
        dependent = {name for name in self.names if packages and _leads_to(packages, name, world)}
        frameworks = sorted(map(framework_identifier, self.builds))
        return [*sorted(dependent), *frameworks, *sorted(set(self.names) - dependent)]

    def _ages_of(self, rows: Sequence[Release]) -> Ages:
        older = [number for number, row in enumerate(rows) if row.version != rows[-1].version]
        return Ages(max(older, default=-1) + 1, partial(self._days_of, rows))

    def _days_of(self, rows: Sequence[Release]) -> list[float]:
        """The day since when each build, or a newer one, has been available."""
        world = self._candidates[0].world
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


def builds_of(solver: Solver, request: Request, problem: Problem) -> dict[str, tuple[Release, ...]]:
    """The builds of each framework that run on the machines, the best last; the best one alone of similar builds."""
    found: dict[str, dict[tuple[object, ...], Release]] = {it.framework: {} for it in problem.frameworks}
    for provider in solver.providers(request, problem):
        for framework, rows in found.items():
            for candidate in provider.running(framework_identifier(framework)):
                row = candidate.thing
                assert isinstance(row, Release)
                for each in _under_each_name(row) if row.source.is_wheel and is_lockable(row) else ():
                    rows.setdefault((each.package, each.version, each.cuda, each.pythons), each)
    return {framework: tuple(reversed(rows.values())) for framework, rows in found.items()}


def existing_builds(solver: Solver, request: Request, problem: Problem, locked: LockedVersions) -> dict[str, Release]:
    """The build of each framework in the existing lock, if it runs on the machines."""
    builds = builds_of(solver, request, problem)
    numbers = {framework: _number_of_existing(rows, locked) for framework, rows in builds.items()}
    return {framework: builds[framework][number] for framework, number in numbers.items() if number is not None}


def _number_of_existing(rows: Sequence[Release], locked: LockedVersions) -> int | None:
    for package, version, build in locked.packages:
        for number, row in enumerate(rows):
            is_it = row.package == package and str(row.full_version) == version
            if is_it and fnmatchcase(row.build, build or "*"):
                return number
    return None


def _under_each_name(row: Release) -> Iterator[Release]:
    """``row``, and a copy under the name by which others require it if its CPU build has a name of its own."""
    yield row
    if row.package in GPU_WHEEL_OF:
        yield row._replace(package=GPU_WHEEL_OF[row.package])


def _lacks_wheels(world: World) -> bool:
    return world.lacks_wheels


def _for_python(rows: Sequence[Release], minor: Version | None) -> Iterator[int]:
    return (number for number, row in enumerate(rows) if str(minor) in row.pythons)


def _leads_to(packages: Iterable[str], name: str, world: World) -> bool:
    """Whether the newest release of ``name`` depends on one of ``packages``, directly or not."""
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
    if name in world.virtual:
        return ()
    releases = world.releases(name)
    position = None if releases is None else releases.newest(world.limited(releases))
    fit = None if releases is None or position is None else releases.fit(position)
    return (world.needs(releases, fit.best, "") or ()) if releases is not None and isinstance(fit, Fit) else ()
