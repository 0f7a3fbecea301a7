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


def ways_out(request: Request, problem: Problem, attempt: Attempt, last_branch: int | None) -> list[WayOut]:
    """Every single relaxation that leads to a stack. ``last_branch`` is the last driver branch for the GPUs, if any."""
    found = [way for relax in _RELAXATIONS for way in relax(request, problem, attempt)]
    if last_branch is not None:
        found += _older_driver(request, problem, attempt, last_branch)
    return found or list(_cpu(request, problem, attempt))


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


def _newer_driver(request: Request, problem: Problem, attempt: Attempt) -> Iterator[WayOut]:
    if all(machine.driver is None for machine in problem.machines):
        return
    machines = tuple(machine._replace(driver=None) for machine in problem.machines)
    solution = attempt(request, problem._replace(machines=machines))
    needed = solution.minimum_driver if solution is not None else None
    if solution is None or needed is None or all(_meets(machine, needed) for machine in problem.machines):
        return
    release = solution.choices[0].release
    name = "Windows driver" if problem.platform.is_windows else "NVIDIA driver"
    yield WayOut(
        f"install {name} {needed} or newer: {release.label} then fits", request._replace(driver=needed), solution
    )


def _older_driver(request: Request, problem: Problem, attempt: Attempt, branch: int) -> Iterator[WayOut]:
    driver = DriverVersion((branch,), str(branch))
    if all(machine.driver is None or machine.driver.branch <= branch for machine in problem.machines):
        return
    machines = tuple(machine._replace(driver=driver) for machine in problem.machines)
    solution = attempt(request, problem._replace(machines=machines))
    if solution is not None:
        text = f"install a driver of branch R{branch}: {solution.choices[0].release.label} then fits"
        yield WayOut(text, request._replace(driver=driver), solution)


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
            yield WayOut(text, request._replace(gpus=(str(gpu),), hosts=()), solution)


def _linux(request: Request, problem: Problem, attempt: Attempt) -> Iterator[WayOut]:
    if problem.platform is not Platform.WIN_64:
        return
    relaxed = request._replace(platform=Platform.LINUX_64)
    solution = attempt(relaxed, problem._replace(platform=Platform.LINUX_64))
    if solution is not None:
        yield WayOut(f"inside WSL2 {solution.choices[0].release.label} fits", relaxed, solution)


def _cpu(request: Request, problem: Problem, attempt: Attempt) -> Iterator[WayOut]:
    relaxed = request._replace(gpus=("none",), driver=None, hosts=(), cuda=None)
    machines = tuple(Machine(None, (), machine.glibc) for machine in problem.machines)
    solution = attempt(relaxed, problem._replace(cpu=True, machines=machines, cuda=None))
    if solution is not None:
        yield WayOut(f"{solution.choices[0].release.label} runs without the GPU", relaxed, solution)


_RELAXATIONS = (_any_version, _any_source, _newer_driver, _any_cuda, _any_python, _fewer_gpus, _linux)


def _meets(machine: Machine, needed: DriverVersion) -> bool:
    return machine.driver is not None and machine.driver.meets(needed)


def _with(
    frameworks: tuple[FrameworkRequest, ...], number: int, framework: FrameworkRequest
) -> tuple[FrameworkRequest, ...]:
    return (*frameworks[:number], framework, *frameworks[number + 1 :])
