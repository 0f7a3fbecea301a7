"""The main job: a request becomes the text of an environment, or an error that says why not and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from envsolve import __version__
from envsolve.app.command import command_of
from envsolve.app.targets import target_of
from envsolve.errors import Hint, UnsolvableError, UsageError
from envsolve.lock import PLANNED_FORMATS, Answer, write
from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.request import FrameworkRequest, Request, parse_framework, without_credentials
from envsolve.model.solution import Problem, Solution
from envsolve.solve.solver import Solver


class Solved(NamedTuple):
    """The text to write, and what to tell beside it."""

    text: str
    notes: tuple[str, ...]
    solution: Solution


def solve_request(request: Request, matrix: Matrix, environ: Mapping[str, str]) -> Solved:
    """The environment for ``request`` in its format.

    Raises UsageError for a request that contradicts itself or cannot be read, UnsolvableError where nothing fits.
    """
    if request.format in PLANNED_FORMATS:
        raise UsageError(
            "format-not-supported",
            f"this version of envsolve does not write the format {request.format!r}",
            hints=(Hint("--format environment and --format json are there"),),
        )
    request, hidden = _without_credentials(request)
    try:
        target = target_of(request, matrix, environ)
        solver = Solver(matrix)
        solution = solver.solve(request, target.problem)
        if solution is None:
            from envsolve.app.refusal import refusal  # the main job never pays for explanations

            raise refusal(request, target.problem, solver)
    except UnsolvableError as error:
        names = ("cuda", *(asked.framework for asked in request.frameworks))
        error.matrix_date = max(str(matrix.document(name).get("updated")) for name in names)
        raise
    date = _matrix_date(target.problem, matrix)
    answer = Answer(solution, target.hosts, command_of(request), date, __version__, own_matrix=not matrix.is_shipped)
    newer = () if target.fell_to_cpu else solution.newer_elsewhere
    return Solved(write(answer, request.format), (*target.notes, *solution.notes, *newer, *hidden), solution)


def _without_credentials(request: Request) -> tuple[Request, tuple[str, ...]]:
    """``request`` with bare addresses, and a note where credentials were left out of them."""
    bare = request._replace(
        channels=tuple(map(without_credentials, request.channels)),
        index_url=None if request.index_url is None else without_credentials(request.index_url),
        extra_index_urls=tuple(map(without_credentials, request.extra_index_urls)),
    )
    note = "user names and passwords in addresses are left out: keep them in .netrc, .condarc or a keyring"
    return bare, (note,) if bare != request else ()


def framework_request(text: str, matrix: Matrix) -> FrameworkRequest:
    """A framework as typed, by its name or an alias. Raises UsageError, with the nearest name, for one nobody knows."""
    try:
        name, specifier = parse_framework(text)
    except ValueError as error:
        raise UsageError("invalid-framework", str(error)) from error
    normalized = name.lower().replace("_", "-").replace(".", "-")
    known = _framework_aliases(matrix)
    if normalized not in known:
        known |= _file_aliases(matrix)
    if normalized in known:
        return FrameworkRequest(known[normalized], specifier)
    import difflib

    close = difflib.get_close_matches(normalized, known, n=1)
    hints = tuple(Hint(f"did you mean {found}?") for found in close)
    raise UsageError(
        "unknown-framework",
        f"{name!r} is no framework that envsolve knows",
        (f"known: {', '.join(matrix.framework_names)}",),
        hints,
    )


def framework_requests(texts: Sequence[str], matrix: Matrix) -> tuple[FrameworkRequest, ...]:
    """Every framework as typed; one that is named twice must meet both ranges."""
    asked: dict[str, FrameworkRequest] = {}
    for text in texts:
        request = framework_request(text, matrix)
        known = asked.get(request.framework)
        specifier = request.specifier if known is None else known.specifier & request.specifier
        asked[request.framework] = FrameworkRequest(request.framework, specifier)
    return tuple(asked.values())


_ALIASES = {"tf": "tensorflow", "torch": "pytorch"}
"""Aliases of the interface contract, known without reading a file; those in the files are read where these fail."""


def _file_aliases(matrix: Matrix) -> dict[str, str]:
    tables = [matrix.framework(name, Platform.LINUX_64) for name in matrix.framework_names]
    return {alias: table.name for table in tables for alias in table.aliases}


def _framework_aliases(matrix: Matrix) -> dict[str, str]:
    names = {name: name for name in matrix.framework_names}
    return names | {alias: name for alias, name in _ALIASES.items() if name in names}


def _matrix_date(problem: Problem, matrix: Matrix) -> str:
    dates = [matrix.framework(asked.framework, problem.platform).updated for asked in problem.frameworks]
    return max([matrix.cuda.updated, *dates])
