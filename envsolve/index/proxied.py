"""The way to a server through a proxy: the one module that knows urllib3's pools and errors.

Retries, redirects and decoding are not left to urllib3, as it takes no word from outside while it waits.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from http.client import HTTPException
from importlib.util import find_spec
from ssl import SSLContext
from threading import Lock
from typing import NamedTuple
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
from envsolve.index.direct import failure_of
from envsolve.index.failures import Failure

_ONE_TRY = Retry(total=False, redirect=False)
"""Made once: urllib3 would make one for each request, at a sixth of what a request costs."""


class Settings(NamedTuple):
    """How to connect: up to ``size`` connections stay open, and seconds without a byte.

    ``context`` is for the server, None where that is asked over http; ``proxy_context`` for a proxy of https.
    """

    size: int
    connect_timeout: float
    read_timeout: float
    context: SSLContext | None
    proxy_context: SSLContext | None


class ProxiedRoute:
    """Connections to one server through the proxy ``address``, which may hold a login.

    Raises UsageError where that is no address of a proxy, or needs what is not installed.
    """

    errors = (HTTPError, HTTPException, OSError)

    def __init__(self, origin: Origin, address: str, settings: Settings) -> None:
        self.proxy = without_secrets(address)
        self._opened: WeakSet[HTTPConnection] = WeakSet()
        self._lock = Lock()
        self._closed = False
        pool = _manager(address, settings).connection_from_host(origin.host, origin.port, origin.scheme)
        plain, secure = _recorded(self._record)
        if pool.ConnectionCls is HTTPConnection:
            pool.ConnectionCls = plain
        elif pool.ConnectionCls is HTTPSConnection:
            pool.ConnectionCls = secure
        self._pool: HTTPConnectionPool = pool
        self._gets_whole_addresses = origin.scheme == "http" and not address.startswith("socks")

    def send(self, address: Address, headers: Mapping[str, str]) -> ProxiedAnswer:
        """See Route. The proxy gets whole addresses for http; for https it passes bytes on."""
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
        return ProxiedAnswer(answer)

    def failure(self, error: Exception, *, answered: bool) -> Failure:
        """See Route."""
        chain = tuple(_chain(error))
        through = "the proxy: " if any(isinstance(link, ProxyError) for link in chain) else ""
        if any(_is_timeout(link) for link in chain):
            chain = (TimeoutError(),)
        elif any(isinstance(link, NameResolutionError) for link in chain):
            chain = (socket.gaierror(),)
        found = failure_of(chain, answered=answered)
        if "Tunnel connection failed: 4" in found.reason:
            return Failure(found.code, through + found.reason, again=False)
        return Failure(found.code, through + found.reason, again=found.again)

    def close(self) -> None:
        """See Route."""
        with self._lock:
            self._closed = True
            opened = list(self._opened)
        for connection in opened:
            if isinstance(connection.sock, socket.socket):
                with suppress(OSError):  # socket's own method: that of a TLS socket would change what its reader holds
                    socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)
        self._pool.close()

    def _record(self, connection: HTTPConnection) -> None:
        with self._lock:
            self._opened.add(connection)
            if self._closed:
                raise ConnectionAbortedError


class ProxiedAnswer:
    """See Answer."""

    def __init__(self, response: BaseHTTPResponse) -> None:
        self._response = response
        self.status = response.status

    @cached_property
    def headers(self) -> Mapping[str, str]:
        """See Answer."""
        return {name.lower(): value for name, value in self._response.headers.itermerged()}

    def read(self, size: int) -> bytes:
        """See Answer."""
        return b"" if self._response.closed else self._response.read(size)

    def release(self, *, whole: bool) -> None:
        """See Answer."""
        if not whole:
            self._response.close()
        self._response.release_conn()


def _recorded(
    record: Callable[[HTTPConnection], None],
) -> tuple[type[HTTPConnection], type[HTTPSConnection]]:
    """Connections that ``record`` hears of before and after they are made; it may raise OSError to stop them."""

    class Plain(HTTPConnection):
        def connect(self) -> None:
            record(self)
            super().connect()
            record(self)

    class Secure(HTTPSConnection):
        def connect(self) -> None:
            record(self)
            super().connect()
            record(self)

    return Plain, Secure


def _manager(proxy: str, settings: Settings) -> PoolManager:
    """Pools behind a proxy. Its login goes into a header at once, as urllib3 names the proxy in errors."""
    from requests.utils import get_auth_from_url
    from urllib3 import make_headers

    timeout = Timeout(connect=settings.connect_timeout, read=settings.read_timeout)
    if settings.context is not None and not settings.context.check_hostname:
        _silence_warnings()
    if proxy.startswith("socks"):
        return _behind_socks(proxy, settings, timeout)
    try:
        user, password = get_auth_from_url(proxy)
        return ProxyManager(
            without_secrets(proxy),
            proxy_headers=make_headers(proxy_basic_auth=f"{user}:{password}") if user else None,
            proxy_ssl_context=settings.proxy_context,
            maxsize=settings.size,
            timeout=timeout,
            ssl_context=settings.context,
        )
    except ValueError as error:
        raise _unusable(proxy, "it must be a URL such as http://proxy.example.org:3128") from error


def _silence_warnings() -> None:
    """Whoever named a host as trusted needs no warning at each connection."""
    import warnings

    from urllib3.exceptions import InsecureRequestWarning

    warnings.filterwarnings("ignore", category=InsecureRequestWarning)


def _behind_socks(proxy: str, settings: Settings, timeout: Timeout) -> PoolManager:
    if find_spec("socks") is None:
        raise _unusable(proxy, "SOCKS needs the package PySocks", Hint("add it", "pip install pysocks"))
    from urllib3.contrib.socks import SOCKSProxyManager

    return SOCKSProxyManager(proxy, maxsize=settings.size, timeout=timeout, ssl_context=settings.context)


def _unusable(proxy: str, reason: str, *hints: Hint) -> UsageError:
    message = f"the proxy {without_secrets(proxy)} cannot be used: {reason}"
    every = (*hints, Hint("fix or unset HTTPS_PROXY, HTTP_PROXY and ALL_PROXY, or add the host to NO_PROXY"))
    return UsageError("invalid-environment-variable", message, hints=every)


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
