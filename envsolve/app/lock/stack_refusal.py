"""The error if no stack of frameworks fits."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envsolve.app.packages.lock_frameworks import depends_on_python
from envsolve.app.packages.requirements import Requirements
from envsolve.app.request.refusal import refusal
from envsolve.app.solve.contradictions import bounds_on_frameworks, without_contradictions
from envsolve.errors import Hint, UnsolvableError
from envsolve.frameworks import FRAMEWORK_OF_WHEEL, FRAMEWORKS
from envsolve.model.request import Request
from envsolve.model.solution import Problem
from envsolve.resolve.solver import Solver

_CUDA_BUILD = re.compile(r"cu\d+")


def stack_refusal(
    request: Request, problem: Problem, solver: Solver, wanted: Requirements, *, typed: Request
) -> UnsolvableError:
    """The error if the stack has no solution. ``typed`` is the request without the frameworks among ``wanted``.

    A hint has a command if everything is on the command line. A framework in a file must be changed there.
    """
    frameworks = {it.framework for it in typed.frameworks}
    implied = frozenset(it.framework for it in problem.frameworks if it.framework not in frameworks)
    requester = typed.requester._replace(implied=implied)
    request = request._replace(frameworks=problem.frameworks, cuda=typed.cuda, requester=requester)
    error = _build_of_other_kind(request, problem) or refusal(request, problem, solver)
    hints = without_contradictions(error.hints, bounds_on_frameworks(wanted))
    error.hints = (*hints, *_cpu_hints(request, problem, solver, wanted, typed))
    if typed.python is None and depends_on_python(wanted):
        named = typed.requester.name_of("python")
        error.hints = (Hint(f"the framework requirements depend on the Python version: choose one with {named}"),)
    return error


def _cpu_hints(
    request: Request, problem: Problem, solver: Solver, wanted: Requirements, typed: Request
) -> Iterator[Hint]:
    """Suggest the CPU build of a framework that is only a requirement, if the other frameworks have a stack without it.

    The CPU build is never chosen unless requested: next to the CUDA libraries of the others, a build for other GPUs
    would use the GPU and fail.
    """
    for framework in problem.frameworks:
        others = tuple(it for it in problem.frameworks if it is not framework)
        needs = [
            (need, origin) for need, origin in wanted.needs if FRAMEWORK_OF_WHEEL.get(need.name) == framework.framework
        ]
        builds = FRAMEWORKS[framework.framework].cpu_wheels if framework.framework in FRAMEWORKS else {}
        is_named = framework.framework in {it.framework for it in typed.frameworks}
        if is_named or not (others and needs and builds):
            continue
        if solver.can_solve(request._replace(frameworks=others), problem._replace(frameworks=others)):
            requirements = " and ".join(f"{need} ({origin})" for need, origin in needs)
            text = f"require {next(iter(builds))} instead of {requirements} to run it on the CPU"
            yield Hint(text, kind="cpu")


def _build_of_other_kind(request: Request, problem: Problem) -> UnsolvableError | None:
    """The error if a version names a CUDA build without a GPU, or a CPU build with one."""
    named = (
        (f"{it.framework}{clause}", local)
        for it in problem.frameworks
        for clause in it.specifier
        if (local := clause.version.partition("+")[2]) and clause.operator in ("==", "===")
    )
    for_cpu = request.requester.setting("gpus", "none")
    for spelled, local in named:
        if problem.cpu and _CUDA_BUILD.fullmatch(local):
            code, kind = "gpu-build-without-gpu", "a CUDA build"
            why = f"{for_cpu} requests a CPU build" if request.wants_cpu else "no GPU was found or named"
            way = f"name the target GPU with {request.requester.name_of('gpus')}"
        elif local == "cpu" and not problem.cpu:
            code, kind, why = "cpu-build-with-gpu", "a CPU build", "the request is for a GPU"
            way = f"use {for_cpu} for CPU builds"
        else:
            continue
        hints = (Hint(way), Hint(f"or omit +{local}: envsolve chooses the build for the machine"))
        return UnsolvableError(code, f"{spelled} is {kind}, and {why}", (f"{spelled} is required",), hints)
    return None
