"""The stack of a Python lock: its frameworks and builds, and what packages must fit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.app.packages.lock_frameworks import constraint_on, python_of, requires_cuda
from envsolve.app.packages.requirements import Requirements
from envsolve.app.request.targets import Target, glibc_of
from envsolve.frameworks import FRAMEWORK_OF_WHEEL
from envsolve.index.fitting import Interpreter
from envsolve.model.package import Pin
from envsolve.model.release import Release
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.solution import Problem, Solution
from envsolve.resolve.solver import Solver


class Attempt(NamedTuple):
    """A stack, or None without frameworks, and the problem that it solves."""

    request: Request
    problem: Problem
    solution: Solution | None

    @property
    def interpreter(self) -> Interpreter:
        """The Python and the system that packages must fit."""
        return interpreter_of(self.problem, self.solution)

    @property
    def releases(self) -> tuple[Release, ...]:
        """The builds of the frameworks."""
        return () if self.solution is None else tuple(it.release for it in self.solution.choices)


def interpreter_of(problem: Problem, solution: Solution | None) -> Interpreter:
    """The Python and the system that packages around a stack, if there is one, must fit."""
    python = python_of(problem.python, None if solution is None else solution.python)
    return Interpreter(python, problem.platform, glibc_of(problem))


def problem_of(target: Target, wanted: Requirements) -> Problem:
    """The problem of ``target``. If no GPU was found but a requirement needs CUDA, a problem with an unknown GPU."""
    problem = target.problem
    if problem.cpu and target.fell_to_cpu and requires_cuda(wanted, problem):
        return problem._replace(cpu=False, machines=problem.machines[:1])
    return problem


def attempt_of(builds: Mapping[str, Release], request: Request, problem: Problem, solver: Solver) -> Attempt | None:
    """The stack with ``builds`` by framework, with the facts behind it; None if they do not fit together."""
    frameworks = tuple(it for it in problem.frameworks if it.framework in builds)
    request, problem = request._replace(frameworks=frameworks), problem._replace(frameworks=frameworks)
    if not frameworks:
        return Attempt(request, problem, None)
    solution = solver.stack_of([builds[it.framework] for it in frameworks], request, problem)
    return None if solution is None else Attempt(request, problem, solution)


def for_python(attempted: Problem, python: str) -> Problem:
    """The problem for one minor version of Python."""
    return attempted._replace(python=SpecifierSet(f"=={python}.*") & (attempted.python or SpecifierSet()))


def joined_among(pins: Iterable[Pin], problem: Problem) -> list[str]:
    """The frameworks in ``pins`` that are not in ``problem``: dependencies that may be for any GPU.

    Without those that only another framework requires: TensorFlow 2.12 uses JAX on the CPU.
    """
    known = {it.framework for it in problem.frameworks}
    new = (pin for pin in pins if pin.name in FRAMEWORK_OF_WHEEL and not FRAMEWORK_OF_WHEEL.keys() >= set(pin.via))
    return [it for it in dict.fromkeys(FRAMEWORK_OF_WHEEL[pin.name] for pin in new) if it not in known]


def with_joined(problem: Problem, wanted: Requirements, joined: Sequence[str]) -> Problem:
    """``problem`` with additional frameworks, limited by the constraints on them."""
    added = [FrameworkRequest(it, constraint_on(wanted, it, problem)) for it in joined]
    return problem._replace(frameworks=tuple(sorted((*problem.frameworks, *added), key=lambda it: it.framework)))
