"""The way to a server without a proxy: http.client, and connections that stay open.

The standard library's client, as urllib3 takes 30 ms more to import and twice as long for a request (measured), which
a small lock feels; a lock that is made behind a proxy has urllib3 do what the standard library cannot.
"""

from __future__ import annotations

import re
import select
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from threading import Lock
from typing import Any
from weakref import WeakSet

from envsolve.index.address import Address, Origin
from envsolve.index.failures import Failure

_PLAIN_TARGET = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*")
"""What may be sent as it is (RFC 3986, sections 3.3 and 3.4), or was escaped before."""
_NO_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNTOUCHED = "!$&'()*+,;=:@/?~%"
_FOLD = re.compile(r"\r?\n[ \t]+")
"""Where the value of a header goes on in another line, which once was allowed (RFC 9112, section 5.2)."""
_FINAL = 200
"""From this status on an answer is one, and not the announcement of one."""


class DirectRoute:
    """Connections to one server: up to ``size`` wait for the next request, each where its answer was read as a whole.

    ``connect_timeout`` and ``read_timeout`` are seconds without a byte.
    """

    proxy = None
    errors = (HTTPException, OSError)

    def __init__(
        self, origin: Origin, size: int, connect_timeout: float, read_timeout: float, context: ssl.SSLContext | None
    ) -> None:
        self._origin = origin
        self._size = size
        self._timeouts = connect_timeout, read_timeout
        self._context = context
        self._waiting: list[_Connection] = []
        self._opened: WeakSet[_Connection] = WeakSet()
        self._lock = Lock()
        self.is_closed = False

    def send(self, address: Address, headers: Mapping[str, str]) -> DirectAnswer:
        """See Route. A connection that its server has left in the meantime is not used again."""
        connection = self._connection()
        try:
            connection.request("GET", _sendable(address.target), headers=headers)
            answer = connection.getresponse()
            _require_one_length(answer)
        except BaseException:
            connection.close()
            raise
        return DirectAnswer(self, connection, answer)

    def failure(self, error: Exception, *, answered: bool) -> Failure:
        """See Route."""
        return failure_of((error,), answered=answered)

    def close(self) -> None:
        """See Route."""
        with self._lock:
            self.is_closed = True
            opened = list(self._opened)
            waiting, self._waiting = self._waiting, []
        for connection in opened:
            connection.shut_down()
        for connection in waiting:
            connection.close()

    def keep(self, connection: _Connection) -> None:
        """Take a connection back, whose answer was read."""
        with self._lock:
            if not self.is_closed and len(self._waiting) < self._size:
                self._waiting.append(connection)
                return
        connection.close()

    def record(self, connection: _Connection) -> None:
        """Hear of a connection that is being made, so that it can be ended. Raises OSError where all were."""
        with self._lock:
            self._opened.add(connection)
            if self.is_closed:
                raise ConnectionAbortedError

    def _connection(self) -> _Connection:
        while True:
            with self._lock:
                connection = self._waiting.pop() if self._waiting else None
            if connection is None:
                return _Connection(self, self._origin, self._timeouts, self._context)
            if connection.is_quiet():
                return connection
            connection.close()


class DirectAnswer:
    """See Answer. A body that ends before its announced length raises HTTPException, which http.client leaves out."""

    def __init__(self, route: DirectRoute, connection: _Connection, response: HTTPResponse) -> None:
        self._route, self._connection, self._response = route, connection, response
        self.status = response.status
        self.headers = _joined(response)

    def read(self, size: int) -> bytes:
        """See Answer."""
        try:
            part = self._response.read(size)
        except ValueError as error:  # of a chunk of a negative length
            raise HTTPException("a chunk has no length") from error
        if not part and self._response.length:
            raise HTTPException(f"it ends early, {self._response.length} more expected")
        if not part and self._route.is_closed:  # a body whose end is that of its connection only looks whole
            raise ConnectionAbortedError
        return part

    def release(self, *, whole: bool) -> None:
        """See Answer."""
        is_over = self.status >= _FINAL and self._response.isclosed()
        if whole and is_over and self._connection.sock is not None:
            self._route.keep(self._connection)
        else:
            self._response.close()
            self._connection.close()


class _Connection(HTTPConnection):
    """One connection, with TLS where there is a ``context``; it is made with the first request."""

    def __init__(
        self, route: DirectRoute, origin: Origin, timeouts: tuple[float, float], context: ssl.SSLContext | None
    ) -> None:
        super().__init__(origin.host.strip("[]"), origin.port)
        self.default_port = 80 if context is None else 443
        self._route, self._timeouts, self._context = route, timeouts, context
        self._made: socket.socket | None = None

    def connect(self) -> None:
        """Connect; a name goes as bytes, as looking up text loads 3 ms of tables for names beyond ASCII."""
        self._route.record(self)
        connect_timeout, read_timeout = self._timeouts
        host = self.host.encode("ascii")
        place: tuple[Any, int] = host, self.port  # typeshed knows no bytes, which getaddrinfo takes
        self.sock = self._made = socket.create_connection(place, connect_timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._context is not None:
            named = host.rstrip(b".")  # the dot at the end of a whole name is in no certificate
            secure = self._context.wrap_socket(self.sock, server_hostname=named, do_handshake_on_connect=False)
            self.sock = self._made = secure
            self._route.record(self)
            secure.do_handshake()
        self.sock.settimeout(read_timeout)
        self._route.record(self)

    def is_quiet(self) -> bool:
        """Whether nothing waits to be read: what comes unasked is the end of the connection."""
        if isinstance(self.sock, ssl.SSLSocket) and self.sock.pending():
            return False
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(self.sock, select.POLLIN)
            return not poll.poll(0)
        return not select.select([self.sock], [], [], 0)[0]

    def shut_down(self) -> None:
        """End the connection under whoever reads from it, be it one that http.client lets go of with its answer."""
        if self._made is not None:
            with suppress(OSError):  # socket's own method: that of a TLS socket would change what its reader holds
                socket.socket.shutdown(self._made, socket.SHUT_RDWR)


def failure_of(chain: tuple[BaseException, ...], *, answered: bool) -> Failure:
    """What errors on the way to a server mean, the first one made of those that follow."""
    for link in chain:
        if isinstance(link, ssl.SSLCertVerificationError):
            return Failure("certificate-invalid", link.verify_message or str(link), again=False)
    last = chain[-1]
    if isinstance(last, TimeoutError):
        return Failure("index-timeout", "no data arrived in time", again=True)
    if isinstance(last, socket.gaierror):
        reason = "the host name is unknown"
    else:
        reason = (isinstance(last, OSError) and last.strerror) or str(last) or type(last).__name__
    return Failure("response-cut" if answered else "index-unreachable", reason, again=True)


def _joined(response: HTTPResponse) -> dict[str, str]:
    """The headers; what comes several times is one list (RFC 9110, section 5.2)."""
    found: dict[str, str] = {}
    for name, value in response.headers.items():
        key, text = name.lower(), _FOLD.sub(" ", value)
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found


def _require_one_length(response: HTTPResponse) -> None:
    """Raise HTTPException where a body has two lengths, of which each reader may take another (RFC 9112, 6.3)."""
    lengths = dict.fromkeys(response.headers.get_all("content-length", ()))
    if len(lengths) > 1:
        raise HTTPException(f"it has several lengths: {', '.join(lengths)}")


def _sendable(target: str) -> str:
    if _PLAIN_TARGET.fullmatch(target):
        return target
    from urllib.parse import quote

    return quote(_NO_ESCAPE.sub("%25", target).encode("utf-8", "surrogatepass"), safe=_UNTOUCHED)
