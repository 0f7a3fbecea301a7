"""Find ways out of a conflict: drop one constraint at a time, solve again, keep what works. Least change first.

Only constraints of a smallest conflicting set are tried, because a stack has to give up one of them. The order is:
another source (the same release), including sources that are used only if named; another version of a framework,
another CUDA, another Python, a later date, another driver, fewer GPUs, one framework less, Linux instead of Windows.
Two changes at once, and CPU, are tried only if no single change leads to a stack.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.matrix.tables import CudaTable
from envsolve.model.host import Platform
from envsolve.model.lock_format import PYTHON_FORMATS
from envsolve.model.release import Source
from envsolve.model.request import FrameworkRequest, LockedVersions, Policy, Request
from envsolve.model.solution import Machine, Problem, Solution
from envsolve.model.versions import DriverVersion
from envsolve.model.words import parse_moment
from envsolve.resolve.conflict import Constraint, Kind, up_to
from envsolve.resolve.solver import Solver

_ONLY_BY_NAME = (Source.PYTORCH_CHANNEL, Source.JAX_RELEASES)


class WayOut(NamedTuple):
    """A request that has an answer, what it gives up, in words, and the answer.

    ``on`` names the hosts on which something has to be installed first, for which there is no option. ``kind`` is its
    code.
    """

    text: str
    request: Request
    solution: Solution
    on: tuple[str, ...] = ()
    kind: str | None = None


class Drivers(NamedTuple):
    """Drivers worth trying, oldest first.

    Also the last branch that drives every GPU, if any, and the start of the next branch.
    """

    known: tuple[DriverVersion, ...]
    last_branch: int | None
    below: int | None


def drivers_for(machines: Sequence[Machine], cuda: CudaTable) -> Drivers:
    """Return the drivers that could make a difference: floors, full support, and first releases of branches."""
    windows = machines[0].windows_driver
    named = {toolkit.floor(windows=windows) for toolkit in cuda.toolkits}
    named |= {full for toolkit in cuda.toolkits if (full := toolkit.full(windows=windows)) is not None}
    named |= {branch.first(windows=windows) for branch in cuda.branches}
    lives = [cuda.life_of(gpu) for machine in machines for gpu, _ in machine.gpus]
    last = min((life.last_branch for life in lives if life is not None and life.last_branch is not None), default=None)
    below = None if last is None else cuda.after(last)
    return Drivers(tuple(sorted(named, key=lambda driver: driver.parts)), last, below)


def ways_out(request: Request, problem: Problem, minimal: Collection[Constraint], solver: Solver) -> list[WayOut]:
    """Return every single relaxation of ``minimal`` that leads to a stack, the least change first."""
    relax = _Relax(request, problem, minimal, solver)
    return list(relax.one()) or list(relax.all_that_was_typed()) or list(relax.to_cpu())


class _Relax:
    """The relaxations of one request that has no stack."""

    def __init__(self, request: Request, problem: Problem, minimal: Collection[Constraint], solver: Solver) -> None:
        self._request = request
        self._problem = problem
        self._minimal = tuple(minimal)
        self._solver = solver

    def one(self) -> Iterator[WayOut]:
        """Drop one constraint at a time."""
        ways = (
            ("other-source", self._source),
            ("other-source", self._source_by_name),
            ("other-version", self._versions),
            ("other-cuda", self._cuda),
            ("other-python", self._python),
            ("later-date", self._date),
            ("other-driver", self._drivers),
            ("forward-compatibility", self._forward_compatibility),
            ("fewer-gpus", self._fewer_gpus),
            ("fewer-frameworks", self._fewer_frameworks),
            ("on-linux", self._linux),
        )
        for kind, found in ways:
            yield from (it._replace(kind=kind) for it in found())

    def _numbers(self, kind: Kind) -> list[int]:
        return sorted({constraint.number for constraint in self._minimal if constraint.kind is kind})

    def _try(self, request: Request, problem: Problem) -> Solution | None:
        return self._solver.solve(request, problem)

    def _source(self) -> Iterator[WayOut]:
        if not self._numbers(Kind.SOURCE):
            return
        solution = self._try(self._request._replace(sources=(), also=self._request.sources), self._problem)
        if solution is not None:
            sources = tuple(dict.fromkeys(choice.release.source for choice in solution.choices))
            text = f"{_label(solution)} fits: allow its source"
            yield WayOut(text, self._request._replace(sources=sources), solution)

    def _source_by_name(self) -> Iterator[WayOut]:
        """Sources that are used only if named, because they have ended."""
        wheels_only = self._request.format in PYTHON_FORMATS
        for source in _ONLY_BY_NAME if not self._request.sources else ():
            if wheels_only and not source.is_wheel:
                continue
            request = self._request._replace(sources=(source,))
            solution = self._try(request, self._problem)
            if solution is not None:
                yield WayOut(f"{_label(solution)} fits: name its source", request, solution)

    def _versions(self) -> Iterator[WayOut]:
        for number in self._numbers(Kind.VERSION):
            requested = self._problem.frameworks[number]
            newest = self._newest(number)
            if newest is None:
                continue
            near = self._nearest_above(number, newest)
            if near is not None:
                yield self._version(number, near, f"the nearest {requested.framework} that fits is")
            yield self._version(number, newest, f"the newest {requested.framework} that fits is")

    def _newest(self, number: int) -> Solution | None:
        """A stack with the newest version of a framework that fits, whatever the request prefers or a lock pins."""
        plain = self._request._replace(prefer=Policy.NEWEST_FRAMEWORK, locked=LockedVersions())
        newest = self._with_version(number, SpecifierSet(), plain)
        if newest is None or plain == self._request:
            return newest
        return self._with_version(number, SpecifierSet(f"=={newest.choices[number].release.version}"), self._request)

    def _with_version(self, number: int, specifier: SpecifierSet, request: Request) -> Solution | None:
        frameworks = self._with_versions(number, specifier)
        problem = self._problem._replace(frameworks=frameworks)
        return self._solver.newest(request._replace(frameworks=frameworks), problem)

    def _with_versions(self, number: int, specifier: SpecifierSet) -> tuple[FrameworkRequest, ...]:
        frameworks = self._problem.frameworks
        changed = FrameworkRequest(frameworks[number].framework, specifier)
        return (*frameworks[:number], changed, *frameworks[number + 1 :])

    def _nearest_above(self, number: int, newest: Solution) -> Solution | None:
        """If everything that fits is newer than requested, a stack with the oldest of it: the least change."""
        requested = self._problem.frameworks[number]
        table = self._solver.catalogue(self._problem).builds[requested.framework]
        meant = [version for version, _ in table.by_version if requested.specifier.contains(version)]
        best = newest.choices[number].release.version
        if not meant or best < max(meant):
            return None
        newer = sorted(version for version, _ in table.by_version if max(meant) < version < best)
        found = (self._with_version(number, SpecifierSet(f"=={version}"), self._request) for version in newer)
        return next((solution for solution in found if solution is not None), None)

    def _version(self, number: int, solution: Solution, words: str) -> WayOut:
        release = solution.choices[number].release
        cuda = f", CUDA {release.cuda}" if release.cuda else ""
        frameworks = self._with_versions(number, SpecifierSet(f"=={release.version}"))
        text = f"{words} {release.version} ({release.source}{cuda})"
        return WayOut(text, self._request._replace(frameworks=frameworks), solution)

    def _cuda(self) -> Iterator[WayOut]:
        if not self._numbers(Kind.CUDA):
            return
        solution = self._try(self._request._replace(cuda=None), self._problem._replace(cuda=None))
        if solution is not None and solution.toolkit is not None:
            cuda = SpecifierSet(f"=={solution.toolkit.version}.*")
            text = f"with CUDA {solution.toolkit.version} it fits"
            yield WayOut(text, self._request._replace(cuda=cuda), solution)

    def _python(self) -> Iterator[WayOut]:
        if not self._numbers(Kind.PYTHON):
            return
        solution = self._try(self._request._replace(python=None), self._problem._replace(python=None))
        if solution is not None:
            python = SpecifierSet(f"=={solution.python}.*")
            yield WayOut(f"with Python {solution.python} it fits", self._request._replace(python=python), solution)

    def _date(self) -> Iterator[WayOut]:
        """The first later day with a stack. It is the day of a release, and a later day never removes a build."""
        moment = self._request.packages.exclude_newer
        if not self._numbers(Kind.DATE) or moment is None:
            return
        builds = self._solver.catalogue(self._problem).builds.values()
        days = {it.released for of_one in builds for it in of_one.table.releases if it.released is not None}
        later = [at for day in sorted(days) if (at := parse_moment(day)) > moment]
        place = bisect_left(later, True, key=lambda at: self._solver.can_solve(up_to(at, self._request), self._problem))
        solution = self._try(up_to(later[place], self._request), self._problem) if place < len(later) else None
        if solution is not None:
            text = f"{_label(solution)} fits with a later date"
            yield WayOut(text, up_to(later[place], self._request), solution)

    def _drivers(self) -> Iterator[WayOut]:
        """Another driver for the machines whose drivers are in the way."""
        numbers = self._numbers(Kind.DRIVER)
        if not numbers:
            return
        machines = self._problem.machines
        drivers = drivers_for([machines[number] for number in numbers], self._solver.cuda)
        newer = self._newer_driver(numbers, drivers)
        if newer is not None:
            yield self._driver(newer[0], newer[1], numbers, f"install NVIDIA driver {newer[0]} or newer")
        older = self._older_driver(numbers, drivers)
        if older is not None:
            yield self._driver(older[0], older[1], numbers, f"install a driver of branch R{older[0]}")

    def _forward_compatibility(self) -> Iterator[WayOut]:
        """The oldest toolkit that cuda-compat makes available to drivers that are in the way, on GPUs that allow it."""
        machines = [self._problem.machines[number] for number in self._numbers(Kind.DRIVER)]
        cuda = self._solver.cuda
        for forward in cuda.forward if self._problem.platform.is_linux else ():
            if not all(machine.driver and not machine.windows_driver for machine in machines) or not all(
                forward.serves(name) for machine in machines for _, name in machine.gpus
            ):
                continue
            for version, branches in forward.branches:
                driver = cuda.driver_for(version, windows=False)
                runs = all(machine.driver and machine.driver.parts[0] in branches for machine in machines)
                if not runs or driver is None:
                    continue
                solution = self._with_driver(self._numbers(Kind.DRIVER), driver, lower=False)
                if solution is not None:
                    package = f"cuda-compat-{version.major}-{version.minor}"
                    words = f"keep the driver and install {package} for forward compatibility on data-centre GPUs"
                    yield self._driver(driver, solution, self._numbers(Kind.DRIVER), words)
                    return

    def _driver(self, driver: DriverVersion, solution: Solution, numbers: Sequence[int], words: str) -> WayOut:
        machines = [self._problem.machines[number] for number in numbers]
        hosts = tuple(name for machine in machines for name in machine.hosts)
        where = f" on {' and '.join(machine.name for machine in machines)}" if hosts else ""
        text = f"{words}{where}: {_label(solution)} then fits"
        if hosts:
            return WayOut(text, self._request, solution, hosts)
        return WayOut(text, self._request._replace(driver=driver), solution)

    def _newer_driver(self, numbers: Sequence[int], drivers: Drivers) -> tuple[DriverVersion, Solution] | None:
        """The oldest driver with which there is a stack.

        Within the GPUs' life a newer driver never loses a stack, so the search is a bisection.
        """
        machines = [self._problem.machines[number] for number in numbers]
        newer = [driver for driver in drivers.known if _would_change(machines, driver, drivers.below)]
        found: tuple[DriverVersion, Solution] | None = None
        while newer:
            middle = (len(newer) - 1) // 2 if found else len(newer) - 1
            solution = self._with_driver(numbers, newer[middle], lower=False)
            if solution is None and found is None:
                return None
            if solution is None:
                newer = newer[middle + 1 :]
            else:
                found = (newer[middle], solution)
                newer = newer[:middle]
        return found

    def _older_driver(self, numbers: Sequence[int], drivers: Drivers) -> tuple[DriverVersion, Solution] | None:
        branch, below = drivers.last_branch, drivers.below
        machines = [self._problem.machines[number] for number in numbers]
        new = [it for it in machines if it.driver is not None and below is not None and it.driver.parts[0] >= below]
        if branch is None or not new:
            return None
        driver = DriverVersion((branch,), str(branch))
        solution = self._with_driver(numbers, driver, lower=True)
        return None if solution is None else (driver, solution)

    def _with_driver(self, numbers: Sequence[int], driver: DriverVersion, *, lower: bool) -> Solution | None:
        machines = tuple(
            machine._replace(driver=driver)
            if number in numbers and machine.driver is not None and (lower or not machine.driver.meets(driver))
            else machine
            for number, machine in enumerate(self._problem.machines)
        )
        return self._try(self._request, self._problem._replace(machines=machines))

    def _fewer_gpus(self) -> Iterator[WayOut]:
        """The fewest environments that serve all GPUs of a machine: one for each group of them."""
        problem, request = self._problem, self._request
        if len(problem.gpus) <= 1 or len(problem.machines) > 1 or not self._numbers(Kind.GPU):
            return
        from envsolve.resolve.fleet import smallest_split

        (machine,) = problem.machines
        apart = problem._replace(machines=tuple(machine._replace(gpus=(entry,)) for entry in machine.gpus))
        for group in smallest_split(request, apart, self._solver):
            gpus = [machine.gpus[number][0] for number in group.numbers]
            driver = machine.driver if request.hosts else request.driver
            typed = _typed(request._replace(gpus=tuple(map(str, gpus)), driver=driver), group.solution)
            one = f"the GPU of compute capability {gpus[0]}"
            several = f"the GPUs of compute capability {' and '.join(map(str, gpus))}"
            text = f"only for {one if len(gpus) == 1 else several}, {_label(group.solution)} fits"
            yield WayOut(text, typed, group.solution)

    def _fewer_frameworks(self) -> Iterator[WayOut]:
        """An environment without one of the conflicting frameworks, which gets its own environment."""
        frameworks = self._problem.frameworks
        numbers = self._numbers(Kind.FRAMEWORK)
        for number in numbers if len(frameworks) > 1 else ():
            rest = (*frameworks[:number], *frameworks[number + 1 :])
            solution = self._try(self._request._replace(frameworks=rest), self._problem._replace(frameworks=rest))
            if solution is not None:
                text = f"use a separate environment for {frameworks[number]}: {_label(solution)} fits without it"
                yield WayOut(text, self._request._replace(frameworks=rest), solution)

    def _linux(self) -> Iterator[WayOut]:
        """Linux in WSL2, which runs on the Windows driver. Run there, detection finds the same machine."""
        if self._problem.platform is not Platform.WIN_64:
            return
        inside = self._request._replace(platforms=(), gpus=("auto",), hosts=(), driver=None)
        solution = self._try(inside, self._problem._replace(platform=Platform.LINUX_64))
        if solution is not None:
            yield WayOut(f"{_label(solution)} fits in WSL2: run this there", inside, solution)

    def all_that_was_typed(self) -> Iterator[WayOut]:
        """Any version, date, source, Python and CUDA: what the machine itself can run."""
        frameworks = tuple(
            FrameworkRequest(requested.framework, SpecifierSet()) for requested in self._problem.frameworks
        )
        free = up_to(None, self._request)._replace(frameworks=frameworks, sources=(), python=None, cuda=None)
        solution = self._solver.newest(free, self._problem._replace(frameworks=frameworks, python=None, cuda=None))
        if solution is not None:
            releases = [choice.release for choice in solution.choices]
            sources = tuple(dict.fromkeys(release.source for release in releases))
            typed = free._replace(frameworks=_pinned(solution), sources=sources)
            yield WayOut(f"{_label(solution)} fits", typed, solution, kind="any-release")

    def to_cpu(self) -> Iterator[WayOut]:
        """The frameworks without the GPU, described as that."""
        relaxed = self._request._replace(gpus=("none",), driver=None, cuda=None)
        machines = tuple(machine._replace(driver=None, gpus=()) for machine in self._problem.machines)
        solution = self._try(relaxed, self._problem._replace(cpu=True, machines=machines, cuda=None))
        if solution is not None:
            text = f"{_label(solution)} runs without the GPU"
            yield WayOut(text, _typed(relaxed, solution), solution, kind="cpu")


def _label(solution: Solution) -> str:
    return " with ".join(choice.release.label for choice in solution.choices)


def _would_change(machines: Sequence[Machine], driver: DriverVersion, below: int | None) -> bool:
    if below is not None and driver.parts[0] >= below:
        return False
    return any(machine.driver is not None and not machine.driver.meets(driver) for machine in machines)


def _typed(request: Request, solution: Solution) -> Request:
    """``request`` without its host files: their platform and C library, as far as options can express them.

    No option sets a C library, so the releases that fit it are named instead.
    """
    if not request.hosts:
        return request
    platforms = (solution.problem.platform,)
    return request._replace(hosts=(), frameworks=_pinned(solution), platforms=platforms)


def _pinned(solution: Solution) -> tuple[FrameworkRequest, ...]:
    return tuple(
        FrameworkRequest(choice.release.framework, SpecifierSet(f"=={choice.release.version}"))
        for choice in solution.choices
    )
