"""Locks for a request: of package indexes, and of conda channels, which a process of its own solves."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from envsolve.api.results import LockFiles
from envsolve.app.network import Network
from envsolve.errors import Hint, UsageError
from envsolve.matrix import Matrix
from envsolve.model.request import Request

if TYPE_CHECKING:
    from envsolve.app.solving import Solved


def python_lock(request: Request, matrix: Matrix, network: Network, existing: str | None) -> LockFiles:
    """A lock of package indexes, near to an ``existing`` one.

    Raises UsageError where the request names what only conda has.
    """
    from envsolve.app.conda_asked import is_environment_file
    from envsolve.app.held_locks import held_by_python_lock, locks_named
    from envsolve.app.locking import LockRequest, lock
    from envsolve.app.unknown_releases import knowing_new_releases

    of_conda = [*request.channels, *filter(is_environment_file, request.packages.files)]
    if of_conda:
        message = f"{of_conda[0]} is a conda file, but the format {request.format!r} uses package indexes"
        raise UsageError("contradictory-options", message, hints=(Hint("make a conda lock: format='conda-lock'"),))
    asked = LockRequest(request, network)
    if existing is not None:
        asked = asked._replace(held=held_by_python_lock(locks_named(existing)))

    def made(known: Matrix) -> Solved:
        return lock(asked, known, os.environ)

    solved = knowing_new_releases(made, request, matrix, network, os.environ)
    return LockFiles(solved.texts, solved.solutions, solved.notes)


def conda_lock(request: Request, matrix: Matrix, network: Network, existing: str | None) -> LockFiles:
    """A lock of conda channels, near to an ``existing`` one.

    Raises OutsideError where py-rattler is not installed.
    """
    from envsolve.app.conda_locking import lock_conda
    from envsolve.app.conda_part import CondaLockRequest
    from envsolve.app.conda_sessions import conda_session
    from envsolve.app.held_locks import held_by_conda_lock, locks_named
    from envsolve.app.unknown_releases import knowing_new_releases
    from envsolve.lockfile.formats import load_conda_writers, write_conda_lock

    with conda_session(network, request.channels, request.platforms, os.environ) as session:
        session.meanwhile = load_conda_writers
        asked = CondaLockRequest(request, session, network)
        if existing is not None:
            asked = asked._replace(held=held_by_conda_lock(locks_named(existing), request.packages))
        made = knowing_new_releases(
            lambda known: lock_conda(asked, known, os.environ), request, matrix, network, os.environ
        )
    return LockFiles(tuple(write_conda_lock(made.locks, request.format)), made.solutions, made.notes)
