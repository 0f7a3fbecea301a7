"""A request for a lock, with the existing lock and the functions that show progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from envsolve.app.lock.existing_locks import LockFor, nothing
from envsolve.app.request.network import Network
from envsolve.model.request import Request


class LockRequest(NamedTuple):
    """A request for a lock that changes the existing one, which ``there`` reads, as little as possible.

    ``show`` gets a text on each step, ``counted`` how many packages are picked, and the last of them. ``recorded`` is
    the request that the lock says it was made for, where that is another one. ``apart`` says that of a conda lock each
    platform gets a file of its own, ``writes`` that its texts are wanted: they need digests that a channel may lack.
    """

    request: Request
    network: Network = Network()
    there: LockFor = nothing
    show: Callable[[str], None] = lambda _: None
    counted: Callable[[int, str], None] = lambda _, __: None
    recorded: Request | None = None
    apart: bool = False
    writes: bool = True
