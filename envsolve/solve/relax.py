"""Ways out of a conflict: give up one constraint at a time, solve again, keep what works. Least change first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.model.host import Platform
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.solution import Machine, Problem, Solution
from envsolve.model.versions import DriverVersion

Attempt = Callable[[Request, Problem], Solution | None]


class WayOut(NamedTuple):
    """A request that has an answer, what it gives up, in words, and the answer."""

    text: str
    request: Request
    solution: Solution


class Drivers(NamedTuple):
    """Drivers worth trying, oldest first; the last branch that drives every GPU, if any, and where the next begins."""

    known: tuple[DriverVersion, ...]
    last_branch: int | None
    below: int | None


def ways_out(request: Request, problem: Problem, attempt: Attempt, drivers: Drivers) -> list[WayOut]:
    """Every single relaxation that leads to a stack; two at once, and CPU, only where no single one does."""
    found = [way for relax in _RELAXATIONS for way in relax(request, problem, attempt)]
    found += [*_newer_driver(request, problem, attempt, drivers), *_older_driver(request, problem, attempt, drivers)]
    return found or list(_anything_anywhere(request, problem, attempt)) or list(_cpu(request, problem, attempt))


def _any_source(request: Request, problem: Problem, attempt: Attempt) -> Iterator[WayOut]:
    if not request.sources:
        return
    relaxed = request._replace(sources=())
    solution = attempt(relaxed, problem)
    if solution is not None:
        release = solution.choices[0].release
        yield WayOut(f"{release.label} fits: allow its source", request._replace(sources=(release.source,)), solution)


def _any_version(request: Request, problem: Problem, attempt: Attempt) -> Iterator[WayOut]:
    for number, asked in enumerate(problem.frameworks):
        if not asked.specifier:
            continue
        frameworks = _with(problem.frameworks, number, FrameworkRequest(asked.framework, SpecifierSet()))
        anywhere = request._replace(frameworks=frameworks, format="json")
        solution = attempt(anywhere, problem._replace(frameworks=frameworks))
        if solution is None:
            continue
        release = solution.choices[number].release
        cuda = f", CUDA {release.cuda}" if release.cuda else ""
        pinned = FrameworkRequest(asked.framework, SpecifierSet(f"=={release.version}"))
        yield WayOut(
            f"the newest {asked.framework} that fits is {release.version} ({release.source}{cuda})",
            request._replace(frameworks=_with(problem.frameworks, number, pinned)),
            solution,
        )


def _any_python(request: Request, problem: Problem, attempt: Attempt) -> Iterator[WayOut]:
    if problem.python is None:
        return
    relaxed = request._replace(python=None)
    solution = attempt(relaxed, problem._replace(python=None))
    if solution is not None:
        python = SpecifierSet(f"=={solution.python}.*")
        yield WayOut(f"with Python {solution.python} it fits", request._replace(python=python), solution)


def _any_cuda(request: Request, problem: Problem, attempt: Attempt) -> Iterator[WayOut]:
    if problem.cuda is None:
        return
    relaxed = request._replace(cuda=None)
    solution = attempt(relaxed, problem._replace(cuda=None))
    if solution is not None and solution.toolkit is not None:
        cuda = SpecifierSet(f"=={solution.toolkit.version}.*")
        yield WayOut(f"with CUDA {solution.toolkit.version} it fits", request._replace(cuda=cuda), solution)


def _newer_driver(request: Request, problem: Problem, attempt: Attempt, drivers: Drivers) -> Iterator[WayOut]:
    """The oldest driver with which there is a stack. A newer driver within the GPUs' life never loses one: bisect."""
    if len(problem.machines) > 1:
        return  # a driver on the command line stands for all machines, also for those that have a newer one
    newer = [driver for driver in drivers.known if _would_change(problem, driver, drivers.below)]
    found: tuple[DriverVersion, Solution] | None = None
    while newer:
        middle = (len(newer) - 1) // 2 if found else len(newer) - 1
        solution = attempt(request, _with_driver(problem, newer[middle]))
        if solution is None and found is None:
            return
        if solution is None:
            newer = newer[middle + 1 :]
        else:
            found = (newer[middle], solution)
            newer = newer[:middle]
    if found is not None:
        driver, solution = found
        text = f"install NVIDIA driver {driver} or newer: {solution.choices[0].release.label} then fits"
        yield WayOut(text, request._replace(driver=driver), solution)


def _would_change(problem: Problem, driver: DriverVersion, below: int | None) -> bool:
    if below is not None and driver.parts[0] >= below:
        return False
    return any(machine.driver is not None and not machine.driver.meets(driver) for machine in problem.machines)


def _with_driver(problem: Problem, driver: DriverVersion) -> Problem:
    machines = tuple(
        machine if machine.driver is not None and machine.driver.meets(driver) else machine._replace(driver=driver)
        for machine in problem.machines
    )
    return problem._replace(machines=machines)


def _older_driver(request: Request, problem: Problem, attempt: Attempt, drivers: Drivers) -> Iterator[WayOut]:
    branch, below = drivers.last_branch, drivers.below
    new = [it for it in problem.machines if it.driver is not None and below is not None and it.driver.parts[0] >= below]
    if branch is None or not new or len(problem.machines) > 1:
        return
    driver = DriverVersion((branch,), str(branch))
    machines = tuple(machine._replace(driver=driver) for machine in problem.machines)
    solution = attempt(request, problem._replace(machines=machines))
    if solution is not None:
        text = f"install a driver of branch R{branch}: {solution.choices[0].release.label} then fits"
        yield WayOut(text, request._replace(driver=driver), solution)


def _anything_anywhere(request: Request, problem: Problem, attempt: Attempt) -> Iterator[WayOut]:
    """Any version from any source with any Python and CUDA: what the machine itself can run."""
    frameworks = tuple(FrameworkRequest(asked.framework, SpecifierSet()) for asked in problem.frameworks)
    free = request._replace(frameworks=frameworks, sources=(), python=None, cuda=None, format="json")
    solution = attempt(free, problem._replace(frameworks=frameworks, python=None, cuda=None))
    if solution is not None:
        releases = [choice.release for choice in solution.choices]
        pinned = tuple(
            FrameworkRequest(release.framework, SpecifierSet(f"=={release.version}")) for release in releases
        )
        sources = tuple(dict.fromkeys(release.source for release in releases))
        text = f"{' with '.join(release.label for release in releases)} fits"
        yield WayOut(text, free._replace(frameworks=pinned, sources=sources, format=request.format), solution)


def _fewer_gpus(request: Request, problem: Problem, attempt: Attempt) -> Iterator[WayOut]:
    gpus = sorted({gpu for machine in problem.machines for gpu, _ in machine.gpus})
    if len(gpus) <= 1:
        return
    for gpu in gpus:
        machines = tuple(
            machine._replace(gpus=tuple(entry for entry in machine.gpus if entry[0] == gpu))
            for machine in problem.machines
        )
        solution = attempt(request, problem._replace(machines=machines))
        if solution is not None:
            text = f"for the GPU of compute capability {gpu} alone {solution.choices[0].release.label} fits"
            drivers = [it.driver for it in problem.machines if it.driver is not None]
            driver = min(drivers, key=lambda it: it.parts) if request.hosts and drivers else request.driver
            yield WayOut(text, _typed(request._replace(gpus=(str(gpu),), driver=driver), solution), solution)


def _linux(request: Request, problem: Problem, attempt: Attempt) -> Iterator[WayOut]:
    """WSL2 runs Linux builds on the Windows driver; typed inside, detection finds the same machine."""
    if problem.platform is not Platform.WIN_64:
        return
    inside = request._replace(platform=None, gpus=("auto",), hosts=(), driver=None)
    solution = attempt(inside, problem._replace(platform=Platform.LINUX_64))
    if solution is not None:
        yield WayOut(f"in WSL2 {solution.choices[0].release.label} fits; type there", inside, solution)


def _cpu(request: Request, problem: Problem, attempt: Attempt) -> Iterator[WayOut]:
    relaxed = request._replace(gpus=("none",), driver=None, cuda=None)
    machines = tuple(Machine(None, (), machine.glibc) for machine in problem.machines)
    solution = attempt(relaxed, problem._replace(cpu=True, machines=machines, cuda=None))
    if solution is not None:
        yield WayOut(f"{solution.choices[0].release.label} runs without the GPU", _typed(relaxed, solution), solution)


def _typed(request: Request, solution: Solution) -> Request:
    """``request`` without its host files: what they said of platform and C library, as far as options can say it.

    No option names a C library, so the releases that go with it are named instead.
    """
    if not request.hosts:
        return request
    pinned = tuple(
        FrameworkRequest(choice.release.framework, SpecifierSet(f"=={choice.release.version}"))
        for choice in solution.choices
    )
    platform = solution.choices[0].release.platform
    return request._replace(hosts=(), frameworks=pinned, platform=platform)


_RELAXATIONS = (_any_version, _any_source, _any_cuda, _any_python, _fewer_gpus, _linux)


def _with(
    frameworks: tuple[FrameworkRequest, ...], number: int, framework: FrameworkRequest
) -> tuple[FrameworkRequest, ...]:
    return (*frameworks[:number], framework, *frameworks[number + 1 :])
