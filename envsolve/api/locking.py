"""Locks for a request: of package indexes, and of conda channels, which a separate process solves."""

from __future__ import annotations

import os

from envsolve.app.request.network import Network
from envsolve.app.status.results import LockFiles
from envsolve.errors import Hint, UsageError
from envsolve.matrix import Matrix
from envsolve.model.lock_format import PYTHON_FORMATS
from envsolve.model.request import Request


def lock_files(request: Request, matrix: Matrix, network: Network, existing: str | None) -> LockFiles:
    """A lock with few changes to an ``existing`` one.

    Raises UsageError if a request for a lock of package indexes has options that only exist for conda, OutsideError if
    py-rattler is needed and not installed.
    """
    from envsolve.app.any_lock.request_lock import make_lock
    from envsolve.app.lock.existing_locks import locks_named, nothing
    from envsolve.app.lock.lock_request import LockRequest
    from envsolve.app.packages.conda_requirements import is_environment_file
    from envsolve.lockfile.json_answer import write_locks

    of_conda = [*request.channels, *filter(is_environment_file, request.packages.files)]
    if of_conda and request.format in PYTHON_FORMATS:
        message = f"{of_conda[0]} is a conda file, but the format {request.format!r} uses package indexes"
        raise UsageError("contradictory-options", message, hints=(Hint("make a conda lock: format='conda-lock'"),))
    there = nothing if existing is None else locks_named(existing)
    solved = make_lock(LockRequest(request, network, there), matrix, os.environ)
    return LockFiles(
        solved.texts, solved.solutions, solved.notes, write_locks(solved.locks, solved.answers, solved.notes)
    )
