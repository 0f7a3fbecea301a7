"""Why a locked stack does not run on a machine, according to the matrix.

The solver gets a matrix with only the builds of the stack. Its explanation, if it finds no solution, is the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from packaging.specifiers import SpecifierSet

from envsolve.app.status.locked_stack import LockedStack
from envsolve.errors import UnsolvableError
from envsolve.matrix.load import Matrix
from envsolve.matrix.tables import FrameworkTable
from envsolve.model.build_facts import BuildFacts
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.solution import Problem, Solution
from envsolve.model.versions import CudaVersion, parsed_version
from envsolve.resolve.closure.bounds import drivers_of
from envsolve.resolve.solver import Solver


class Alone:
    """A solver with only the builds of ``stack``. ``request`` and ``problem`` describe the machines."""

    def __init__(self, stack: LockedStack, request: Request, matrix: Matrix) -> None:
        self._stack, self._matrix = stack, matrix

        def narrowed(table: FrameworkTable) -> FrameworkTable:
            return table._replace(releases=stack.releases[table.name])

        self._solver = Solver(matrix, narrowed)
        rows = [row for rows in stack.releases.values() for row in rows]
        python = None if stack.python is None else SpecifierSet(f"=={stack.python}.*")
        self._request = request._replace(
            frameworks=tuple(FrameworkRequest(name, SpecifierSet()) for name in stack.releases),
            python=python,
            sources=tuple(dict.fromkeys(row.source for row in rows)),
        )
        if not stack.lock.conda:
            self._request = self._request._replace(format="requirements")

    def solution(self, problem: Problem) -> Solution | None:
        """The stack on the machines of ``problem``; None if it does not run on them."""
        return self._solver.solve(*self._put(problem))

    def reasons(self, problem: Problem) -> Iterator[str]:
        """Why the stack does not run on the machines of ``problem``."""
        from envsolve.app.request.refusal import refusal

        error: UnsolvableError = refusal(*self._put(problem), self._solver)
        yield from error.cause or (error.message,)

    def _put(self, problem: Problem) -> tuple[Request, Problem]:
        stack = self._stack
        cuda = SpecifierSet(f"=={stack.cuda}") if stack.cuda is not None and not problem.cpu else None
        request = self._request._replace(cuda=cuda)
        python, frameworks = request.python, request.frameworks
        return request, problem._replace(frameworks=frameworks, python=python, cuda=cuda, of_lock=True)


def against_builds(stack: LockedStack, request: Request, problem: Problem, matrix: Matrix) -> Iterator[str]:
    """Why the builds of the stack do not run on the machines; empty if they do."""
    alone = Alone(stack, request, matrix)
    if alone.solution(problem) is None:
        yield from alone.reasons(problem)


def against_cudnn(stack: LockedStack, problem: Problem, matrix: Matrix) -> Iterator[str]:
    """GPUs that the locked cuDNN has no code for. The solver may have chosen another cuDNN."""
    if stack.cudnn is None:
        return
    same = [it for it in matrix.cudnn if it.version == stack.cudnn]
    for gpu in problem.gpus:
        if same and not any(it.serves(gpu, problem.platform) for it in same):
            yield f"cuDNN {stack.cudnn} has no code for compute capability {gpu}"


def against_packages(stack: LockedStack, problem: Problem, matrix: Matrix) -> Iterator[str]:
    """Packages outside of the stack that do not fit the GPUs, the driver, or the CUDA of the file."""
    cudas = _cudas_of(stack)
    drivers = drivers_of(problem, matrix.cuda)
    versions = {pin.name: pin.version for pin in stack.pins}
    for label, facts in facts_in(stack, problem.platform, matrix):
        yield from (f"{label} {it}" for it in facts.unmet(versions))
        gpu = _without_code(facts, cudas, problem.gpus, drivers.compile)
        if gpu is not None:
            yield f"{label} has no code for compute capability {gpu}"
        if cudas and not any(map(facts.go_with, cudas)):
            beside = " and ".join(map(str, sorted(cudas)))
            yield f"{label} loads the libraries of {facts.cuda_text}, and the frameworks are for CUDA {beside}"
        if drivers.run is not None and not facts.run_with(drivers.run):
            linked = f"{label} has the runtime of CUDA {facts.linked_cuda} linked in"
            yield f"{linked}, the driver runs CUDA {drivers.run} at most"


def have_code(stack: LockedStack, problem: Problem, matrix: Matrix) -> bool:
    """Whether the packages outside of the stack have code for the GPUs of ``problem``, as far as known."""
    cudas = _cudas_of(stack)
    known = facts_in(stack, problem.platform, matrix)
    return all(_without_code(facts, cudas, problem.gpus, None) is None for _, facts in known)


def facts_in(stack: LockedStack, platform: Platform, matrix: Matrix) -> Iterator[tuple[str, BuildFacts]]:
    """The facts about builds of packages outside of the stack that matter, each with the package and its version."""
    for pin in stack.pins:
        is_known = pin.version and parsed_version(pin.version) is not None
        for facts in matrix.build_facts(pin.name, platform) if is_known else ():
            if facts.covers(pin.version) and not facts.loss and (not facts.beside or facts.beside in stack.releases):
                yield f"{pin.name} {pin.version}", facts


def _cudas_of(stack: LockedStack) -> set[CudaVersion]:
    return {row.cuda for rows in stack.releases.values() for row in rows if row.cuda is not None}


def _without_code(
    facts: BuildFacts, cudas: set[CudaVersion], gpus: Sequence[ComputeCapability], compiles: CudaVersion | None
) -> ComputeCapability | None:
    """The first of ``gpus`` that builds have no code for, with any of ``cudas``."""
    found = [facts.without_code_for(gpus, cuda, compiles) for cuda in cudas or (None,)]
    return found[0] if None not in found else None
