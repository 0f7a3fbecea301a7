"""Requests for releases that the matrix does not know yet. What finds them is imported only where one is wanted."""

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
    """What ``solve`` makes of ``matrix``; where it lacks a release that was requested, of one that has it.

    No one is asked before ``solve`` has failed for that reason. Raises what ``solve`` raises: where the indexes have no
    such release either, or do not answer, the error says so. ``show`` gets the name of what is read next.
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
