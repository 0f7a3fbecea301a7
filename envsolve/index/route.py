"""The seam between the errors of HTTP libraries and what is made of them: a way to a server, and one answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from envsolve.index.address import Address
from envsolve.index.failures import Failure


class Answer(Protocol):
    """The head of an answer, and its body as it comes."""

    @property
    def status(self) -> int:
        """The status code."""

    @property
    def headers(self) -> Mapping[str, str]:
        """What comes several times is one list; names are in lower case."""

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes of the body as they were sent; none at its end. Raises errors of the route."""

    def release(self, *, whole: bool) -> None:
        """Leave the connection to the next request; where the body was not read as a ``whole``, end it."""


class Route(Protocol):
    """One way to one server. Safe to use from many threads at once."""

    @property
    def proxy(self) -> str | None:
        """The address of the proxy on the way, without login."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What sending and reading raise."""

    def send(self, address: Address, headers: Mapping[str, str]) -> Answer:
        """Ask once. Raises errors of the route."""

    def failure(self, error: Exception, *, answered: bool) -> Failure:
        """What one of its ``errors`` means. ``answered``: the head of an answer had come."""

    def close(self) -> None:
        """End all connections, those included on which another thread waits for an answer."""
