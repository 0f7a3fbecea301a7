"""Requests for releases that the matrix does not have yet. The code that finds these is imported only if needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from packaging.specifiers import SpecifierSet

from envsolve.app.request.network import Network
from envsolve.errors import UnsolvableError
from envsolve.matrix.load import Matrix
from envsolve.model.request import Request

T = TypeVar("T")


def knowing_new_releases(
    solve: Callable[[Matrix], T],
    request: Request,
    matrix: Matrix,
    network: Network,
    environ: Mapping[str, str],
    show: Callable[[str], None] = lambda _: None,
) -> T:
    """The result of ``solve`` with ``matrix``; if it lacks a requested release, with a matrix that has it.

    Indexes are queried only after ``solve`` has failed for that reason. Raises the errors of ``solve``; if the indexes
    have no such release either, or do not respond, the error says so. ``show`` gets the name of what is read next.
    """
    tried: set[str] = set()
    while True:
        try:
            return solve(matrix)
        except UnsolvableError as error:
            if error.unknown is None or error.unknown[0] in tried or not matrix.grows:
                raise
            from envsolve.app.matrix.inferring import inferred

            framework, versions = error.unknown
            tried.add(framework)
            show(f"releases of {framework} that the matrix lacks")
            more, why, hints = inferred(framework, SpecifierSet(versions), request, matrix, network, environ)
            if more is None:
                error.cause = (*error.cause, *why)
                error.hints = (*error.hints, *hints)
                raise
            matrix = more
