"""Which kind of lock, and so which kind of environment, a request without a format gets.

Decided by, in order: 1. something that only one kind supports: a channel, an environment.yml, a source, overrides 2.
the stack that `envsolve` prints for the request: conda packages, if the matrix's policy chooses any of it from a
channel 3. without a framework nothing needs conda: a venv.
"""

from __future__ import annotations

from collections.abc import Mapping

from envsolve.app.packages.conda_requirements import is_environment_file
from envsolve.app.request.channel_order import solver_of
from envsolve.app.solve.solving import stacks_of
from envsolve.matrix.load import Matrix
from envsolve.model.request import Request

CONDA_FORMAT = "conda-lock"
PYTHON_FORMAT = "pylock"


def usual_format(request: Request, matrix: Matrix, environ: Mapping[str, str]) -> str:
    """The format of the lock. Raises the same errors as :func:`envsolve.app.solve.solving.stacks_of`."""
    if request.channels or any(map(is_environment_file, request.packages.files)):
        return CONDA_FORMAT
    if request.sources:
        return PYTHON_FORMAT if all(source.is_wheel for source in request.sources) else CONDA_FORMAT
    if not request.frameworks or request.index_url is not None or request.packages.overrides:
        return PYTHON_FORMAT
    _, (solution, *_), _ = stacks_of(request, matrix, environ, solver_of(request, matrix))
    of_conda = any(not choice.release.source.is_wheel for choice in solution.choices)
    return CONDA_FORMAT if of_conda else PYTHON_FORMAT
