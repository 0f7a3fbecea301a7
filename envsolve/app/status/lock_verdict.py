"""What the matrix says against a stack that a file holds, on some machines.

The stack is put to the solver as if it were all that the matrix knows: what it then says against it is the reason.
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
    """The builds of ``held`` as all that the matrix has. ``request`` and ``problem`` say for which machines."""

    def __init__(self, held: LockedStack, request: Request, matrix: Matrix) -> None:
        self._held, self._matrix = held, matrix

        def narrowed(table: FrameworkTable) -> FrameworkTable:
            return table._replace(releases=held.releases[table.name])

        self._solver = Solver(matrix, narrowed)
        rows = [row for rows in held.releases.values() for row in rows]
        python = None if held.python is None else SpecifierSet(f"=={held.python}.*")
        self._request = request._replace(
            frameworks=tuple(FrameworkRequest(name, SpecifierSet()) for name in held.releases),
            python=python,
            sources=tuple(dict.fromkeys(row.source for row in rows)),
        )
        if not held.lock.conda:
            self._request = self._request._replace(format="requirements")

    def solution(self, problem: Problem) -> Solution | None:
        """The stack as it is on the machines of ``problem``; None if it does not run on them."""
        return self._solver.solve(*self._put(problem))

    def reasons(self, problem: Problem) -> Iterator[str]:
        """Why the stack does not run on the machines of ``problem``."""
        from envsolve.app.request.refusal import refusal

        error: UnsolvableError = refusal(*self._put(problem), self._solver)
        yield from error.cause or (error.message,)

    def _put(self, problem: Problem) -> tuple[Request, Problem]:
        held = self._held
        cuda = SpecifierSet(f"=={held.cuda}") if held.cuda is not None and not problem.cpu else None
        request = self._request._replace(cuda=cuda)
        python, frameworks = request.python, request.frameworks
        return request, problem._replace(frameworks=frameworks, python=python, cuda=cuda, of_lock=True)


def against_builds(held: LockedStack, request: Request, problem: Problem, matrix: Matrix) -> Iterator[str]:
    """Why the builds of the stack do not run there; nothing where they do."""
    alone = Alone(held, request, matrix)
    if alone.solution(problem) is None:
        yield from alone.reasons(problem)


def against_cudnn(held: LockedStack, problem: Problem, matrix: Matrix) -> Iterator[str]:
    """GPUs that the very cuDNN of the file has no code for: the solver would have chosen another."""
    if held.cudnn is None:
        return
    same = [it for it in matrix.cudnn if it.version == held.cudnn]
    for gpu in problem.gpus:
        if same and not any(it.serves(gpu, problem.platform) for it in same):
            yield f"cuDNN {held.cudnn} has no code for compute capability {gpu}"


def against_packages(held: LockedStack, problem: Problem, matrix: Matrix) -> Iterator[str]:
    """Further packages that do not run on the GPUs, with the driver, or beside the CUDA of the file."""
    cudas = _cudas_of(held)
    drivers = drivers_of(problem, matrix.cuda)
    versions = {pin.name: pin.version for pin in held.pins}
    for label, facts in facts_in(held, problem.platform, matrix):
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


def have_code(held: LockedStack, problem: Problem, matrix: Matrix) -> bool:
    """Whether the further packages have code for the GPUs of ``problem``, as far as it is known."""
    cudas = _cudas_of(held)
    known = facts_in(held, problem.platform, matrix)
    return all(_without_code(facts, cudas, problem.gpus, None) is None for _, facts in known)


def facts_in(held: LockedStack, platform: Platform, matrix: Matrix) -> Iterator[tuple[str, BuildFacts]]:
    """What is known of the builds of further packages and has to fit, each with the package and its version."""
    for pin in held.pins:
        is_known = pin.version and parsed_version(pin.version) is not None
        for facts in matrix.build_facts(pin.name, platform) if is_known else ():
            if facts.covers(pin.version) and not facts.loss and (not facts.beside or facts.beside in held.releases):
                yield f"{pin.name} {pin.version}", facts


def _cudas_of(held: LockedStack) -> set[CudaVersion]:
    return {row.cuda for rows in held.releases.values() for row in rows if row.cuda is not None}


def _without_code(
    facts: BuildFacts, cudas: set[CudaVersion], gpus: Sequence[ComputeCapability], compiles: CudaVersion | None
) -> ComputeCapability | None:
    """The first of ``gpus`` for which builds have no code, whichever of ``cudas`` the stack has."""
    found = [facts.without_code_for(gpus, cuda, compiles) for cuda in cudas or (None,)]
    return found[0] if None not in found else None
