"""The listener of the tests' servers: on the loopback interface, and completely closed when a test ends."""

from __future__ import annotations

import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Generic, TypeVar

Owner = TypeVar("Owner")


class Listener(ThreadingHTTPServer, Generic[Owner]):
    """Listens on a free port, for ``owner``, which its handlers use."""

    daemon_threads = False  # closing waits for every answer that is under way, so that none outlives its test
    request_queue_size = 128

    def __init__(self, owner: Owner, handler: type[BaseHTTPRequestHandler]) -> None:
        self.owner = owner
        self._open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), handler)

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        """Accept a connection, and remember it."""
        request, address = super().get_request()
        self._open.add(request)
        return request, address

    def hang_up(self) -> None:
        """Close open connections: a client that keeps its connection would keep its thread here."""
        for request in self._open.copy():  # the thread that listens may take one more meanwhile
            try:
                request.shutdown(socket.SHUT_RDWR)
            except OSError:  # closed before
                continue

    def handle_error(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        """A client that closes its connection is not an error."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)
