"""The searches for the Python lock of one target, and what they find out for the searches after them.

A search is among all builds and Pythons (lock_worlds), for a stack alone, or for the packages around one stack.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from envsolve.app.lock.existing_locks import stays, versions_in_python_lock
from envsolve.app.lock.lock_refusal import build_hint, packages_refusal
from envsolve.app.lock.lock_request import LockRequest
from envsolve.app.lock.lock_worlds import Chosen, Worlds, builds_of
from envsolve.app.packages.extension_wheels import ExtensionWheels
from envsolve.app.packages.lock_frameworks import with_versions
from envsolve.app.packages.lock_indexes import Connection, Places
from envsolve.app.packages.lock_stacks import Attempt, problem_of
from envsolve.app.packages.requirements import Requirements, for_interpreter
from envsolve.app.packages.stack_in_search import StackInSearch
from envsolve.app.packages.stack_wheels import Limits, Rivals, indexes_for, limits_around, question_around
from envsolve.app.request.targets import Target
from envsolve.errors import OutsideError, UnsolvableError
from envsolve.frameworks import FRAMEWORKS, needs_gpu
from envsolve.index.client import Indexes
from envsolve.matrix.load import Matrix
from envsolve.matrix.tables import FrameworkTable
from envsolve.model.need import Need
from envsolve.model.release import Release, Source
from envsolve.model.solution import Problem
from envsolve.model.versions import CudaVersion, DriverVersion
from envsolve.resolve.closure.explain import contested
from envsolve.resolve.closure.releases import Sources
from envsolve.resolve.closure.resolve import Conflict, Found, end_of_search, found_for
from envsolve.resolve.solver import Solver


class TargetSearch:
    """The searches for one target. ``is_plain`` means that frameworks are packages like any other.

    This is so if there is no GPU, and a single index without CPU builds. ``matrix``, ``versions`` and ``end`` may
    change between searches.
    """

    def __init__(
        self,
        lock_request: LockRequest,
        matrix: Matrix,
        target: Target,
        wanted: Requirements,
        where: Places,
        connection: Connection,
    ) -> None:
        self.lock_request, self.matrix, self.request = lock_request, matrix, target.request
        self._where, self._connection = where, connection
        self.problem, self.solver = problem_of(target, wanted), Solver(matrix)
        self.is_plain = self._has_no_builds(target)
        self.wanted = wanted._replace(needs=(*self._by_name(), *wanted.needs)) if self.is_plain else wanted
        there = lock_request.there(target.problem.platform)
        pins, locked = versions_in_python_lock(there)
        packages = lock_request.request.packages
        self.old_pins = () if there is None else there.pins
        self.versions = {it.name: it.version for it in pins if stays(packages, it.name)}
        """The versions in the existing lock that stay if they fit."""
        self._locked = locked._replace(packages=tuple(it for it in locked.packages if stays(packages, it[0])))
        self._left_out: frozenset[str] = frozenset()
        self.rivals: Rivals = {}
        self.end = end_of_search(builds=packages.allow_builds)
        """When to stop, on the monotonic clock."""
        self.extensions = self._extension_wheels()
        self.find_wheels(need for need, _ in self.wanted.needs)

    def _has_no_builds(self, target: Target) -> bool:
        problem = self.problem
        only_gpu = any(needs_gpu(it.framework) for it in problem.frameworks)
        may_be = problem.cpu and target.fell_to_cpu and not self._where.is_plain and not only_gpu
        return may_be and bool(problem.frameworks) and self.solver.solve(self.request, problem) is None

    def _by_name(self) -> Iterator[tuple[Need, str]]:
        """The frameworks of the request, as packages."""
        requested = {it.framework for it in self.lock_request.request.frameworks}
        for it in self.problem.frameworks:
            if it.framework in requested:
                package = FRAMEWORKS[it.framework].wheels[0]
                yield Need(package, (), str(it.specifier), ""), str(self.lock_request.request.requester)

    def _extension_wheels(self) -> ExtensionWheels:
        """The search for GPU wheels that are not on an index."""
        problem = self.problem
        builds = {} if problem.cpu or self.is_plain else builds_of(self.solver, self.request, problem)
        stack = StackInSearch(builds, self.request, problem, self.solver, self.matrix)
        indexes = Indexes((*self._where.extra, self._where.default), self._connection.pool, self._where.mapped)
        return ExtensionWheels(stack, problem, indexes, self.lock_request.request)

    def find_wheels(self, needs: Iterable[Need]) -> bool:
        """Whether wheels for ``needs`` were found outside of the indexes. Adds them to the search and to the matrix."""
        packages = self.lock_request.request.packages
        facts = self.extensions.found(needs)
        self.matrix = self.matrix.with_builds(facts)
        existing = self.extensions.existing_versions(self.old_pins).items()
        self.versions |= {name: version for name, version in existing if stays(packages, name)}
        return bool(facts)

    def worlds(self, problem: Problem, *, in_part: bool, as_if_built: bool = False) -> Worlds:
        """The worlds of ``problem``, see :class:`Worlds`. The caller closes them."""
        return Worlds(
            self.request,
            problem._replace(frameworks=()) if self.is_plain else problem,
            {it.framework for it in self.problem.frameworks},
            self.wanted,
            self.solver,
            self.matrix,
            self._where,
            self._connection,
            more=self.extensions.more,
            in_part=in_part,
            as_if_built=as_if_built,
        )

    def best_in(self, worlds: Worlds) -> Chosen | None:
        """The best answer in ``worlds``; None if there is none. Raises OutsideError, UnsolvableError."""
        request = self.lock_request.request
        try:
            return worlds.best(self.versions, self._locked, self.end, self.lock_request.counted)
        except UnsolvableError as error:  # no answer before the end
            if worlds.have_to_build and not request.packages.allow_builds:
                error.hints = (build_hint(request), *error.hints)
            raise

    def best_stack(self, problem: Problem) -> Attempt | None:
        """The best stack regardless of packages; None if there is none."""
        if not problem.frameworks or self.is_plain:
            return Attempt(self.request, problem, None)
        problem = with_versions(problem, self.wanted)
        solution = self.solver.solve(self.request, problem)
        return None if solution is None else Attempt(self.request, problem, solution)

    def newer_drivers(self, problem: Problem) -> Iterator[tuple[DriverVersion, CudaVersion]]:
        """Yield the oldest driver of each newer CUDA major that the best stack of ``problem`` then has, with that CUDA.

        Without a framework every newer major counts. There are none for several machines, or without a known driver.
        """
        machine = problem.machines[0] if len(problem.machines) == 1 and not problem.machines[0].hosts else None
        if machine is None or machine.driver is None:
            return
        floors: dict[int, tuple[DriverVersion, CudaVersion]] = {}
        for it in sorted(self.matrix.cuda.toolkits, key=lambda it: it.version, reverse=True):
            floors[it.version.major] = it.floor(windows=machine.windows_driver), it.version
        for major, (driver, first) in sorted(floors.items()):
            if machine.driver.meets(driver):
                continue
            stack = self.best_stack(problem._replace(machines=(machine._replace(driver=driver),)))
            if stack is not None and stack.solution is None:
                yield driver, first
            toolkit = None if stack is None or stack.solution is None else stack.solution.toolkit
            if toolkit is not None and toolkit.version.major == major:
                yield driver, toolkit.version

    def wanted_on(self, attempt: Attempt) -> Requirements:
        """The requirements that apply to the Python of a stack."""
        return for_interpreter(self.wanted, attempt.interpreter)

    def limits(self, attempt: Attempt, *, in_part: bool) -> Limits:
        """The limits on the packages around a stack."""
        return limits_around(attempt.solution, self.wanted_on(attempt), self.matrix, in_part=in_part)

    def packages_around(
        self,
        attempt: Attempt,
        limits: Limits,
        floors: Mapping[str, str] | None = None,
        newest: Mapping[str, str] | None = None,
        chosen: Chosen | None = None,
    ) -> Found:
        """All packages that fit a stack, none below its floor; the versions in ``chosen`` are preferred.

        An answer that is ``chosen`` may have taken all the time, and is still completed. Raises Conflict, OutsideError,
        UnsolvableError.
        """
        solution, wanted, packages = attempt.solution, self.wanted_on(attempt), self.request.packages
        most = Sources.ANY if packages.allow_builds else Sources.WITHOUT_WHEELS
        more = self.extensions.more
        question = question_around(
            solution,
            wanted,
            attempt.interpreter,
            packages,
            self.matrix,
            limits,
            sources=most if chosen is None else chosen.sources,
            rivals=self.rivals,
            more=more,
        )
        question = question._replace(
            locked={} if chosen is None else chosen.versions,
            floors=floors or {},
            newest=newest or {},
            frameworks=[it.package for it in attempt.releases],
        )
        indexes = indexes_for(solution, wanted, packages, self._where, self._connection, more)
        end = self.end if chosen is None else end_of_search(builds=packages.allow_builds)
        return found_for(question, indexes, end, self.lock_request.counted)

    def refusal_of(self, attempt: Attempt, floors: Mapping[str, str]) -> UnsolvableError | None:
        """Why no packages fit a stack if none may be below its floor. None if some do, or the reason is unknown."""
        try:
            self.packages_around(attempt, self.limits(attempt, in_part=False), floors)
        except Conflict as conflict:
            return packages_refusal(conflict, attempt.request, attempt.solution)
        except UnsolvableError as error:
            return error
        except OutsideError:
            return None  # an explanation must not end in an error of its own
        return None

    def absent(self, releases: Iterable[Release], conflict: Conflict) -> set[str]:
        """The labels of missing builds, looked up folder by folder: another folder may have what one lacks."""
        world, names = conflict.provider.world, contested(conflict)
        absent: set[str] = set()
        for release in (it for it in releases if it.package in names):
            found = world.releases(release.package)
            if found is None or found.position(str(release.full_version)) is None:
                alike = (it for it in self.in_folder(release) if it.package == release.package)
                absent |= {it.label for it in alike if found is None or found.position(str(it.full_version)) is None}
        return absent

    def in_folder(self, release: Release) -> Iterator[Release]:
        """The builds of a framework in the folder of an index that has ``release``."""
        table = self.matrix.framework(release.framework, release.platform)
        return (it for it in table.releases if _folder(it) == _folder(release))

    def leave_out(self, labels: Iterable[str]) -> None:
        """Search without the builds of these labels from now on."""
        self._left_out = self._left_out.union(labels)
        self.solver = Solver(self.matrix, self._without_left_out)

    def _without_left_out(self, table: FrameworkTable) -> FrameworkTable:
        return table._replace(releases=tuple(it for it in table.releases if it.label not in self._left_out))


def _folder(release: Release) -> tuple[Source, str]:
    return release.source, release.build if release.source is Source.PYTORCH else ""
