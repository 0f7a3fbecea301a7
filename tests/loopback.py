"""Common parts of the tests' servers: counted requests, credentials, and faults that occur a given number of times.

Every answer counts before its body is sent: once a client has it, so has ``requests``.
"""

from __future__ import annotations

import base64
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from tests.listener import Listener


class ServedRequest(NamedTuple):
    """One request: the path as the client sent it, and the status of the answer, 0 for a connection that was reset."""

    method: str
    path: str
    status: int


class Reply(NamedTuple):
    """What is sent to a client; the header Content-Length is added."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


class Fault(Protocol):
    """How a server answers some paths."""

    def meets(self, path: str) -> bool:
        """Whether it applies to ``path``."""


Wrong = TypeVar("Wrong", bound=Fault)


class LoopbackServer(Generic[Wrong]):
    """A server that a test starts, queries and stops, and the requests that it received.

    ``requests`` and ``headers`` hold one entry for each request, in the order of the answers; the names of headers are
    in lower case.
    """

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self.requests: list[ServedRequest] = []
        self.headers: list[dict[str, str]] = []
        self.stopping = threading.Event()
        self._faults: list[tuple[Wrong, list[int]]] = []
        self._credentials: dict[str, str] = {}
        self._lock = threading.Lock()
        self._server = Listener(self, handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.004,), daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Scheme, host and port, without a slash at the end."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        """Start to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Stop at once, whatever is in progress."""
        self.stopping.set()
        self._server.shutdown()
        self._server.hang_up()
        self._server.server_close()
        self._thread.join()

    def require(self, user: str, password: str, *, under: str = "/") -> None:
        """Require a name and a password on paths that start with ``under``."""
        self._credentials[under] = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def allows(self, path: str, authorization: str) -> bool:
        """Whether the credentials are sufficient for ``path``."""
        return all(authorization == it for under, it in self._credentials.items() if path.startswith(under))

    def due(self, fault: Wrong, times: int) -> None:
        """Make ``fault`` happen so many times; of several for a path the first one happens."""
        self._faults.append((fault, [times]))

    def heal(self) -> None:
        """Remove all faults."""
        with self._lock:
            self._faults.clear()

    def fault_for(self, path: str) -> Wrong | None:
        """The fault for ``path``, which then happens once less."""
        with self._lock:
            for fault, left in self._faults:
                if left[0] > 0 and fault.meets(path):
                    left[0] -= 1
                    return fault
        return None

    def count(self, pattern: str = "*", *, method: str = "*") -> int:
        """How many requests came for paths that match ``pattern``."""
        return sum(fnmatchcase(it.path, pattern) and fnmatchcase(it.method, method) for it in self.requests)

    def note(self, request: ServedRequest, headers: dict[str, str]) -> None:
        """Record one request."""
        with self._lock:
            self.requests.append(request)
            self.headers.append(headers)


class Answer(BaseHTTPRequestHandler, ABC):
    """One connection; a server's own handler decides the answer."""

    server: Listener[Any]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    @abstractmethod
    def answer(self) -> None:
        """Send the answer for the path and the headers."""

    def do_GET(self) -> None:
        """Answer."""
        self.answer()

    def do_HEAD(self) -> None:
        """Answer as to GET; :meth:`send` leaves out the body."""
        self.answer()

    def request_headers(self) -> dict[str, str]:
        """The headers of the request, their names in lower case."""
        return {name.lower(): value for name, value in self.headers.items()}

    def send(self, reply: Reply, *, cut: bool = False, pause: float = 0.0) -> None:
        """Count the request and answer it; with ``cut`` hang up in the middle of the body, ``pause`` seconds later."""
        self.server.owner.note(ServedRequest(self.command, self.path, reply.status), self.request_headers())
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.status != 304:
            self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if self.command == "HEAD" or reply.status == 304:
            return
        if not cut:
            self.wfile.write(reply.body)
            return
        self.wfile.write(reply.body[: len(reply.body) // 2])
        self.wfile.flush()
        self.server.owner.stopping.wait(pause)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in http.server
        """No output."""
