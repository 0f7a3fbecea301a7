"""The connections to a server: the only module that knows urllib3's pools and errors.

urllib3 does not do retries, redirects and decoding here, because it cannot be interrupted while it waits.
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
"""Made once: urllib3 would make one for each request, which takes a sixth of the time of a request."""

_FINAL = 200
"""The first status of a final response; lower ones announce another response."""


_STEP = 1 << 20
"""Bytes of a body that are read at once. Each step has the deadline, so 20 kB/s is fast enough for any file."""


class Settings(NamedTuple):
    """How to connect: up to ``size`` connections stay open, and the timeouts are seconds without a byte.

    The head of a response and the first MB of its body must arrive within ``deadline`` seconds, and so must each
    further MB: a server that sends a byte a second would never reach the timeouts.
    """

    size: int
    connect_timeout: float
    read_timeout: float
    deadline: float
    certificates: Certificates


class Route:
    """Connections to one server, through the proxy in the environment. Safe to use from many threads at once.

    ``proxy`` is the proxy's address without login. Sending and reading raise ``errors``. Raises UsageError if the proxy
    setting is invalid, or needs a package that is not installed.
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
        if pool.ConnectionCls in (HTTPConnection, HTTPSConnection):  # a connection through SOCKS has another class
            pool.ConnectionCls = _Recorded if pool.ConnectionCls is HTTPConnection else _Secure
            pool.conn_kw["record"] = self._record
        self._pool: HTTPConnectionPool = pool
        through_http = address is not None and not address.startswith("socks")
        self._gets_whole_addresses = origin.scheme == "http" and through_http

    def send(self, address: Address, headers: Mapping[str, str]) -> Answer:
        """Send one request. For http a proxy gets the whole address; for https it forwards bytes."""
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
        """The failure for one of ``errors``. ``answered``: the head of a response had arrived."""
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
        """End all connections, even if another thread waits for a response."""
        with self._lock:
            self.is_closed = True
            opened = list(self._opened)
        for connection in opened:
            connection.end()
        self._pool.close()

    def end_overdue(self) -> None:
        """End connections with an overdue response, and those unused for the same time."""
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
    """The head of a response, and its body as it arrives."""

    def __init__(self, route: Route, response: BaseHTTPResponse) -> None:
        self._route, self._response = route, response
        self.status = response.status

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """The headers; repeated ones are joined to a list, names are in lower case."""
        return {name.lower(): value for name, value in self._response.headers.itermerged()}

    def read(self) -> bytes:
        """The next bytes of the body as sent; empty at its end. Raises errors of the route."""
        connection = self._response.connection
        try:
            part = b"" if self._response.closed else self._response.read(_STEP)
        except ValueError as error:  # a chunk with a negative length
            raise HTTPException("a chunk has no length") from error
        if isinstance(connection, _Recorded):
            if connection.is_ended:  # a body that ends with its connection only looks complete
                raise ConnectionAbortedError
            connection.since = monotonic()
        return part

    def release(self, *, whole: bool) -> None:
        """Return the connection to the pool, or end it if the body was not read as a ``whole``."""
        if not whole:
            self._response.close()
        self._response.release_conn()


class _Recorded(HTTPConnection):
    """A connection that calls ``record`` before and after it connects; ``record`` may raise OSError to stop it."""

    def __init__(self, *arguments: Any, record: Callable[[_Recorded], None], **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._record = record
        self._made: socket.socket | None = None
        """Stored here because http.client drops a socket that ends with its response."""
        self.since = monotonic()
        """The time of the request, or of the last bytes of its response."""
        self.is_ended = False

    def connect(self) -> None:
        self.since, self.is_ended = monotonic(), False
        self._record(self)
        super().connect()
        self._made = self.sock
        self._record(self)

    def request(self, *arguments: Any, **named: Any) -> None:
        self.since = monotonic()
        super().request(*arguments, **named)

    def end(self) -> None:
        """End it. A thread that waits for a response gets an OSError, or an apparent end of the body."""
        self.is_ended = True
        for made in {self.sock, self._made}:
            if isinstance(made, socket.socket):
                with suppress(OSError):  # socket's own method: a TLS socket's would disturb its reader
                    socket.socket.shutdown(made, socket.SHUT_RDWR)


class _Secure(_Recorded, HTTPSConnection):
    """The same for TLS: ``connect`` of the next class in order is HTTPSConnection's."""


def _proxy_for(origin: Origin) -> str | None:
    """The proxy for a server from the environment, or from the system on Windows and macOS; respects NO_PROXY."""
    from urllib.request import getproxies

    proxies = getproxies()
    if not proxies.keys() - {"no"}:
        return None
    from requests.utils import select_proxy, should_bypass_proxies

    url = "{}://{}:{}/".format(*origin)
    proxy = None if should_bypass_proxies(url, None) else select_proxy(url, proxies)
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def _manager(proxy: str | None, origin: Origin, settings: Settings) -> PoolManager:
    """The pools. The login of a proxy goes into a header, because urllib3 names the proxy in errors."""
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
    """A user who trusts a host does not need a warning for each connection."""
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
    """The failure for a chain of errors; each one wraps the next."""
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
    """``error`` and the errors that it wraps: urllib3 has them as the cause, or in the arguments."""
    yield error
    inner = [argument for argument in error.args if isinstance(argument, BaseException)]
    for link in [*inner, error.__cause__]:
        if link is not None:
            yield from _chain(link)
            return


def _is_timeout(link: BaseException) -> bool:
    """Whether it is a timeout. In urllib3 a refused connection is a subclass of its timeout, but is none."""
    return isinstance(link, (ReadTimeoutError, ConnectTimeoutError)) and not isinstance(link, NewConnectionError)
