"""The way to a server: the one module that knows urllib3's pools and errors.

Retries, redirects and decoding are not left to urllib3, as it takes no word from outside while it waits.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from http.client import HTTPException
from importlib.util import find_spec
from threading import Lock
from time import monotonic
from typing import Any, NamedTuple
from weakref import WeakSet

from urllib3 import BaseHTTPResponse, HTTPConnectionPool, PoolManager, ProxyManager, Retry, Timeout
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NameResolutionError,
    NewConnectionError,
    ProxyError,
    ReadTimeoutError,
)

from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, UsageError
from envsolve.index.address import Address, Origin
from envsolve.index.certificates import Certificates
from envsolve.index.failures import Failure

_ONE_TRY = Retry(total=False, redirect=False)
"""Made once: urllib3 would make one for each request, at a sixth of what a request costs."""

_FINAL = 200
"""From this status on an answer is one, and not the announcement of one, after which another follows."""


_STEP = 1 << 20
"""Bytes of a body that are read at once, each within the deadline: 20 kB/s and more are patiently read to the end."""


class Settings(NamedTuple):
    """How to connect: up to ``size`` connections stay open, and seconds without a byte.

    Within ``deadline`` seconds an answer's head and the first MB of its body must have come, and so each further one: a
    server that sends a byte a second is never without one for long.
    """

    size: int
    connect_timeout: float
    read_timeout: float
    deadline: float
    certificates: Certificates


class Route:
    """Connections to one server, through the proxy that the environment names. Safe to use from many threads at once.

    ``proxy`` is its address without its login, ``errors`` are what sending and reading raise. Raises UsageError where
    what is named is no address of a proxy, or needs what is not installed.
    """

    errors = (HTTPError, HTTPException, OSError)

    def __init__(self, origin: Origin, settings: Settings) -> None:
        address = _proxy_for(origin)
        self.proxy = None if address is None else without_secrets(address)
        self._deadline = settings.deadline
        self._opened: WeakSet[_Recorded] = WeakSet()
        self._lock = Lock()
        self.is_closed = False
        pool = _manager(address, origin, settings).connection_from_host(origin.host, origin.port, origin.scheme)
        if pool.ConnectionCls in (HTTPConnection, HTTPSConnection):  # one through SOCKS is another
            pool.ConnectionCls = _Recorded if pool.ConnectionCls is HTTPConnection else _Secure
            pool.conn_kw["record"] = self._record
        self._pool: HTTPConnectionPool = pool
        through_http = address is not None and not address.startswith("socks")
        self._gets_whole_addresses = origin.scheme == "http" and through_http

    def send(self, address: Address, headers: Mapping[str, str]) -> Answer:
        """Ask once. A proxy gets whole addresses for http; for https it passes bytes on."""
        answer = self._pool.urlopen(
            "GET",
            address.url if self._gets_whole_addresses else address.target,
            headers=headers,
            retries=_ONE_TRY,
            redirect=False,
            assert_same_host=False,
            preload_content=False,
            decode_content=False,
        )
        if answer.status < _FINAL:
            answer.close()
        return Answer(self, answer)

    def failure(self, error: Exception, *, answered: bool) -> Failure:
        """What one of ``errors`` means. ``answered``: the head of an answer had come."""
        chain = tuple(_chain(error))
        through = "the proxy: " if any(isinstance(link, ProxyError) for link in chain) else ""
        if any(_is_timeout(link) for link in chain):
            chain = (TimeoutError(),)
        elif any(isinstance(link, NameResolutionError) for link in chain):
            chain = (socket.gaierror(),)
        found = _failure_of(chain, answered=answered)
        if "Tunnel connection failed: 4" in found.reason:
            return Failure(found.code, through + found.reason, again=False)
        return Failure(found.code, through + found.reason, again=found.again)

    def close(self) -> None:
        """End all connections, those included on which another thread waits for an answer."""
        with self._lock:
            self.is_closed = True
            opened = list(self._opened)
        for connection in opened:
            connection.end()
        self._pool.close()

    def end_overdue(self) -> None:
        """End the connections whose answer is overdue, or that were unused for as long."""
        with self._lock:
            opened = list(self._opened)
        for connection in opened:
            if monotonic() - connection.since > self._deadline:
                connection.end()

    def _record(self, connection: _Recorded) -> None:
        with self._lock:
            self._opened.add(connection)
            if self.is_closed:
                raise ConnectionAbortedError


class Answer:
    """The head of an answer, and its body as it comes."""

    def __init__(self, route: Route, response: BaseHTTPResponse) -> None:
        self._route, self._response = route, response
        self.status = response.status

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """What comes several times is one list; names are in lower case."""
        return {name.lower(): value for name, value in self._response.headers.itermerged()}

    def read(self) -> bytes:
        """The next bytes of the body as they were sent; none at its end. Raises errors of the route."""
        connection = self._response.connection
        try:
            part = b"" if self._response.closed else self._response.read(_STEP)
        except ValueError as error:  # of a chunk of a negative length
            raise HTTPException("a chunk has no length") from error
        if isinstance(connection, _Recorded):
            if connection.is_ended:  # a body whose end is that of its connection only looks whole
                raise ConnectionAbortedError
            connection.since = monotonic()
        return part

    def release(self, *, whole: bool) -> None:
        """Leave the connection to the next request; where the body was not read as a ``whole``, end it."""
        if not whole:
            self._response.close()
        self._response.release_conn()


class _Recorded(HTTPConnection):
    """A connection that ``record`` hears of before and after it is made; it may raise OSError to stop it."""

    def __init__(self, *arguments: Any, record: Callable[[_Recorded], None], **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._tell = record
        self._made: socket.socket | None = None
        """Kept, as http.client lets go of it where it ends with its answer."""
        self.since = monotonic()
        """When the request was made, or the last bytes of its answer came."""
        self.is_ended = False

    def connect(self) -> None:
        self.since, self.is_ended = monotonic(), False
        self._tell(self)
        super().connect()
        self._made = self.sock
        self._tell(self)

    def request(self, *arguments: Any, **named: Any) -> None:
        self.since = monotonic()
        super().request(*arguments, **named)

    def end(self) -> None:
        """End it; who waits for an answer gets an OSError, or what looks like the end of it."""
        self.is_ended = True
        for made in {self.sock, self._made}:
            if isinstance(made, socket.socket):
                with suppress(OSError):  # socket's own method: a TLS socket's would change what its reader holds
                    socket.socket.shutdown(made, socket.SHUT_RDWR)


class _Secure(_Recorded, HTTPSConnection):
    """The same for TLS: ``connect`` of the next class in order is HTTPSConnection's."""


def _proxy_for(origin: Origin) -> str | None:
    """The proxy that the environment, or the system on Windows and macOS, names for a server, unless NO_PROXY does."""
    from urllib.request import getproxies

    proxies = getproxies()
    if not proxies.keys() - {"no"}:
        return None
    from requests.utils import select_proxy, should_bypass_proxies

    url = "{}://{}:{}/".format(*origin)
    proxy = None if should_bypass_proxies(url, None) else select_proxy(url, proxies)
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def _manager(proxy: str | None, origin: Origin, settings: Settings) -> PoolManager:
    """Pools. The login of a proxy goes into a header at once, as urllib3 names the proxy in errors."""
    certificates = settings.certificates
    context = certificates.context(origin.host, origin.port) if origin.scheme == "https" else None
    if context is not None and not context.check_hostname:
        _silence_warnings()
    timeout = Timeout(connect=settings.connect_timeout, read=settings.read_timeout)
    common: dict[str, Any] = {"maxsize": settings.size, "timeout": timeout, "ssl_context": context}
    if proxy is None:
        return PoolManager(**common)
    if proxy.startswith("socks"):
        return _behind_socks(proxy, common)
    from requests.utils import get_auth_from_url
    from urllib3 import make_headers

    try:
        user, password = get_auth_from_url(proxy)
        return ProxyManager(
            without_secrets(proxy),
            proxy_headers=make_headers(proxy_basic_auth=f"{user}:{password}") if user else None,
            proxy_ssl_context=certificates.checked if proxy.startswith("https") else None,
            **common,
        )
    except ValueError as error:
        raise _unusable(proxy, "it must be a URL such as http://proxy.example.org:3128") from error


def _silence_warnings() -> None:
    """Whoever named a host as trusted needs no warning at each connection."""
    import warnings

    from urllib3.exceptions import InsecureRequestWarning

    warnings.filterwarnings("ignore", category=InsecureRequestWarning)


def _behind_socks(proxy: str, common: Mapping[str, Any]) -> PoolManager:
    if find_spec("socks") is None:
        raise _unusable(proxy, "SOCKS needs the package PySocks", Hint("add it", "pip install pysocks"))
    from urllib3.contrib.socks import SOCKSProxyManager

    return SOCKSProxyManager(proxy, **common)


def _unusable(proxy: str, reason: str, *hints: Hint) -> UsageError:
    message = f"the proxy {without_secrets(proxy)} cannot be used: {reason}"
    every = (*hints, Hint("fix or unset HTTPS_PROXY, HTTP_PROXY and ALL_PROXY, or add the host to NO_PROXY"))
    return UsageError("invalid-environment-variable", message, hints=every)


def _failure_of(chain: tuple[BaseException, ...], *, answered: bool) -> Failure:
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


def _chain(error: BaseException) -> Iterator[BaseException]:
    """``error`` and what it was made of, as urllib3 keeps it: as its cause, or among its arguments."""
    yield error
    inner = [argument for argument in error.args if isinstance(argument, BaseException)]
    for link in [*inner, error.__cause__]:
        if link is not None:
            yield from _chain(link)
            return


def _is_timeout(link: BaseException) -> bool:
    """urllib3 counts a connection that was refused among the time-outs."""
    return isinstance(link, (ReadTimeoutError, ConnectTimeoutError)) and not isinstance(link, NewConnectionError)
