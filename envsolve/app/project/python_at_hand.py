"""The Python for a new project if the newest one for its stack is not installed and there is no uv to fetch it.

It is one that `envsolve create` finds on this machine, with the same releases of the frameworks. The user decides
whether an older framework is better than installing a Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.app.project.project_requests import file_requests
from envsolve.app.request.targets import targets_of
from envsolve.create.interpreter import pythons_here
from envsolve.create.tools import find_uv
from envsolve.errors import EnvsolveError
from envsolve.host.machine import this_platform
from envsolve.matrix.load import Matrix
from envsolve.model.lock_format import PYTHON_FORMATS
from envsolve.model.request import Packages, Request
from envsolve.model.solution import Solution
from envsolve.project import Project
from envsolve.resolve.solver import Solver

_OF_THIS_MACHINE = ((), ("auto",), ("none",))


class AtHand(NamedTuple):
    """An installed Python, and the one that the locks would have otherwise, both as ``3.12``."""

    python: str
    newest: str


def python_at_hand(project: Project, matrix: Matrix, environ: Mapping[str, str]) -> AtHand | None:
    """The Python for the Python locks of ``project``; None if none needs to be named.

    That is so if the project is for another machine or names its Python, if uv is installed, or if no installed Python
    fits the stack. The current directory is that of the project. No index is queried, and locking will report errors in
    the project.
    """
    if not _is_for_this_machine(project) or find_uv() is not None:
        return None
    try:
        first = next(
            (it for it in file_requests(project, matrix, environ, Packages()) if it.request.format in PYTHON_FORMATS),
            None,
        )
        stacks = None if first is None else _Stacks(first.request, matrix, environ)
        best = None if stacks is None else stacks.best(None)
        if first is None or stacks is None or best is None:
            return None
        here = pythons_here(environ, first.request.python)
        if str(best.python) in here:
            return None
        found = next((it for it in here if _releases(stacks.best(it)) == _releases(best)), None)
    except EnvsolveError:
        return None
    return None if found is None else AtHand(found, str(best.python))


def _is_for_this_machine(project: Project) -> bool:
    """Whether the locks are for environments on this machine, with a Python that is not named."""
    if len(project.parts) > 1 or any(len(part.machines) > 1 or part.settings.names_python for part in project.parts):
        return False
    machines = [machine for part in project.parts for machine in part.machines]
    return all(
        it.gpus in _OF_THIS_MACHINE and it.driver is None and not it.hosts and it.platforms in ((), (this_platform(),))
        for it in machines
    )


class _Stacks:
    """The frameworks of a request, solved for different Pythons."""

    def __init__(self, request: Request, matrix: Matrix, environ: Mapping[str, str]) -> None:
        from envsolve.app.packages.lock_indexes import places, settings_of
        from envsolve.app.packages.requirements import read_requirements

        self._wanted = read_requirements(request.packages)
        self._where = places(request, self._wanted, settings_of(environ))
        self._target = targets_of(request._replace(channels=()), matrix, environ)[0]
        self._solver = Solver(matrix)

    def best(self, python: str | None) -> Solution | None:
        """The best stack for ``python``, or for any Python that the project allows if None.

        None if there is none, or no framework.
        """
        from envsolve.app.packages.lock_frameworks import with_frameworks

        versions = self._target.request.python
        if python is not None:
            versions = (versions or SpecifierSet()) & SpecifierSet(f"=={python}.*")
        target = with_frameworks(self._target.with_bounds(python=versions), self._wanted, self._where)
        return self._solver.solve(target.request, target.problem) if target.problem.frameworks else None


def _releases(solution: Solution | None) -> set[tuple[str, str]]:
    choices = () if solution is None else solution.choices
    return {(it.release.framework, str(it.release.version)) for it in choices}
