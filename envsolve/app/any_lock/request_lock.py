"""The lock of a request, of package indexes or of conda channels, begun before all of the request is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from envsolve.app.lock.lock_request import LockRequest
from envsolve.app.matrix.unknown_releases import knowing_new_releases
from envsolve.errors import UsageError
from envsolve.host.machine import this_platform
from envsolve.lockfile.formats import load_conda_writers
from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.lock_format import PYTHON_FORMATS
from envsolve.model.request import Request

if TYPE_CHECKING:
    from envsolve.app.solve.solving import Solved


Making = Callable[[Request, Matrix], "Solved"]
"""Makes the lock of a request. Raises UsageError, UnsolvableError, OutsideError."""


@contextmanager
def begun(asked: LockRequest, environ: Mapping[str, str]) -> Iterator[Making]:
    """What makes the lock of ``asked``, once the frameworks in it are known.

    It is begun here, so that servers answer, or the solver of conda packages starts, while the rest is loaded.
    """
    words, network = asked.request, asked.network
    if words.format in PYTHON_FORMATS:
        from envsolve.app.packages.lock_indexes import start

        started = start(words, network, environ)

        def python_lock(request: Request, matrix: Matrix) -> Solved:
            from envsolve.app.lock.locking import lock

            bare = asked._replace(request=request._replace(channels=()))

            def made(known: Matrix) -> Solved:
                return lock(bare, known, environ, started if known is matrix else None)

            return knowing_new_releases(made, request, matrix, network, environ, asked.show)

        try:
            yield python_lock
        finally:
            started.lines.close()
        return

    from envsolve.app.packages.conda_sessions import conda_session

    with conda_session(network, words.channels, words.platforms or _this_platform(), environ) as session:
        session.meanwhile = load_conda_writers

        def conda_lock(request: Request, matrix: Matrix) -> Solved:
            from envsolve.app.conda.conda_locking import lock_conda

            now = asked._replace(request=request)
            return knowing_new_releases(
                lambda known: lock_conda(now, session, known, environ), request, matrix, network, environ, asked.show
            )

        yield conda_lock


def _this_platform() -> tuple[Platform, ...]:
    """The platform that is solved for where none is named; none where this machine is of no kind that is known."""
    try:
        return (this_platform(),)
    except UsageError:
        return ()
