"""A request for a lock, with the existing lock and the functions that show progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from envsolve.app.lock.existing_locks import LockFor, nothing
from envsolve.app.request.network import Network
from envsolve.model.request import Request


class LockRequest(NamedTuple):
    """A request for a lock that changes the existing one as little as possible. ``there`` reads the existing lock.

    ``show`` gets a text for each step; ``counted`` gets the number of chosen packages and the name of the last one.
    ``recorded`` is the request to record in the lock if it differs from ``request``. ``apart`` means that each platform
    of a conda lock gets its own file. ``writes`` means that the text of the lock is needed, and with it digests that a
    channel may lack.
    """

    request: Request
    network: Network = Network()
    there: LockFor = nothing
    show: Callable[[str], None] = lambda _: None
    counted: Callable[[int, str], None] = lambda _, __: None
    recorded: Request | None = None
    apart: bool = False
    writes: bool = True
