"""The lock of a request, from package indexes or conda channels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from envsolve.app.lock.lock_request import LockRequest
from envsolve.app.matrix.unknown_releases import knowing_new_releases
from envsolve.app.request.targets import platforms_of
from envsolve.matrix.load import Matrix
from envsolve.model.lock_format import PYTHON_FORMATS

if TYPE_CHECKING:
    from envsolve.app.solve.solving import Solved


def make_lock(lock_request: LockRequest, matrix: Matrix, environ: Mapping[str, str]) -> Solved:
    """Make the lock for ``lock_request``. Raises UsageError, UnsolvableError, OutsideError."""
    request, network = lock_request.request, lock_request.network
    if request.format in PYTHON_FORMATS:
        from envsolve.app.lock.locking import lock

        bare = lock_request._replace(request=request._replace(channels=()))
        return knowing_new_releases(
            lambda known: lock(bare, known, environ), request, matrix, network, environ, lock_request.show
        )

    from envsolve.app.packages.conda_sessions import conda_session

    with conda_session(network, request.channels, platforms_of(request, matrix), environ) as session:
        from envsolve.app.conda.conda_locking import lock_conda  # the channels are read during this import

        return knowing_new_releases(
            lambda known: lock_conda(lock_request, session, known, environ),
            request,
            matrix,
            network,
            environ,
            lock_request.show,
        )
