"""One request and its answer, counted."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock

from envsolve.index.address import Address
from envsolve.index.body import read_body
from envsolve.index.connections import Connections
from envsolve.index.fetch import Response


class Exchange:
    """Requests over ``connections``, counted: ``requests`` sent, and ``received`` bytes of bodies as they came."""

    def __init__(self, connections: Connections) -> None:
        self.connections = connections
        self.requests = 0
        self.received = 0
        self._counting = Lock()

    def once(self, address: Address, headers: Mapping[str, str], limit: int) -> Response:
        """What the server answers to one request, whatever its status. Raises Failure."""
        route = self.connections.route(address.origin)
        answer = None
        with self._counting:
            self.requests += 1
        try:
            answer = route.send(address, headers)
            try:
                body, packed = read_body(answer, limit, self._received)
            except BaseException:
                answer.release(whole=False)  # what is left of the body must not be taken for the next answer
                raise
            answer.release(whole=True)
        except route.errors as error:
            raise route.failure(error, answered=answer is not None) from error
        return Response(answer.status, answer.headers, body, address.url, packed)

    def _received(self, count: int) -> None:
        with self._counting:
            self.received += count
