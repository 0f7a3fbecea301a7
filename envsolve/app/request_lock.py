"""The lock of a request, of package indexes or of conda channels, begun before all of the request is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from envsolve.app.held_locks import LockFor, nothing
from envsolve.app.network import Network
from envsolve.app.unknown_releases import knowing_new_releases
from envsolve.errors import UsageError
from envsolve.host.machine import this_platform
from envsolve.lockfile.formats import PYTHON_FORMATS, load_conda_writers
from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.request import Request

if TYPE_CHECKING:
    from envsolve.app.solving import Solved


class How(NamedTuple):
    """How a lock is made: near to the one that is ``there``, for conda with a file for each platform if ``apart``.

    ``show`` gets a text on each step, ``counted`` how many packages are picked, and the last of them.
    """

    there: LockFor = nothing
    apart: bool = False
    show: Callable[[str], None] = lambda _: None
    counted: Callable[[int, str], None] = lambda _, __: None


Making = Callable[[Request, Matrix, How], "Solved"]
"""Makes the lock of a request. Raises UsageError, UnsolvableError, OutsideError."""


@contextmanager
def begun(words: Request, network: Network, environ: Mapping[str, str]) -> Iterator[Making]:
    """What makes the lock of ``words``, once their frameworks are known.

    It is begun here, so that servers answer, or the solver of conda packages starts, while the rest is loaded.
    """
    if words.format in PYTHON_FORMATS:
        from envsolve.app.lock_indexes import start

        started = start(words, network, environ)

        def python_lock(request: Request, matrix: Matrix, how: How) -> Solved:
            from envsolve.app.locking import LockRequest, lock

            asked = LockRequest(request._replace(channels=()), network, how.there, how.counted)

            def made(known: Matrix) -> Solved:
                return lock(asked, known, environ, started if known is matrix else None)

            return knowing_new_releases(made, request, matrix, network, environ)

        try:
            yield python_lock
        finally:
            started.lines.close()
        return

    from envsolve.app.conda_sessions import conda_session

    with conda_session(network, words.channels, words.platforms or _this_platform(), environ) as session:
        session.meanwhile = load_conda_writers

        def conda_lock(request: Request, matrix: Matrix, how: How) -> Solved:
            from envsolve.app.conda_locking import lock_conda
            from envsolve.app.conda_part import CondaLockRequest

            asked = CondaLockRequest(request, session, network, how.there, how.show, how.counted, apart=how.apart)
            return knowing_new_releases(
                lambda known: lock_conda(asked, known, environ), request, matrix, network, environ
            )

        yield conda_lock


def _this_platform() -> tuple[Platform, ...]:
    """The platform that is solved for where none is named; none where this machine is of no kind that is known."""
    try:
        return (this_platform(),)
    except UsageError:
        return ()
