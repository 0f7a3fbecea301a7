"""Connections that stay open, one pool for each server: the one module that knows urllib3's pools.

Requests go through urllib3's pools rather than through ``requests``: a request costs less than half, which counts where
a lock needs a thousand of them. Retries, redirects and decoding are not left to urllib3 either, as it takes no word
from outside while it waits.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from ssl import SSLContext
from threading import Lock
from typing import NamedTuple
from weakref import WeakSet

from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPSConnectionPool, PoolManager, ProxyManager, Retry, Timeout
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import InsecureRequestWarning

from envsolve.errors import Hint, UsageError
from envsolve.index.address import Address, Origin, without_login
from envsolve.index.certificates import Certificates

_ONE_TRY = Retry(total=False, redirect=False)
"""Made once: urllib3 would make one for each request, at a sixth of what a request costs."""


class Route(NamedTuple):
    """The way to a server: its pool, and the proxy, without login, where there is one.

    ``forwarded``: the proxy gets whole addresses, as it does for http; for https it passes bytes on.
    """

    pool: HTTPConnectionPool
    proxy: str | None = None
    forwarded: bool = False


class Connections:
    """All connections of one fetcher, safe to use from many threads. Proxies are read from the environment."""

    def __init__(self, size: int, connect_timeout: float, read_timeout: float, certificates: Certificates) -> None:
        self._size = size
        self._timeout = Timeout(connect=connect_timeout, read=read_timeout)
        self._certificates = certificates
        self._routes: dict[Origin, Route] = {}
        self._opened: WeakSet[HTTPConnection] = WeakSet()
        self._lock = Lock()
        self._closed = False
        self._plain, self._secure = _recorded(self._record)

    def send(self, address: Address, headers: Mapping[str, str]) -> BaseHTTPResponse:
        """The head of the answer to one GET; its body is still to be read, its connection to be released.

        Raises what urllib3 raises.
        """
        route = self.route(address.origin)
        return route.pool.urlopen(
            "GET",
            address.url if route.forwarded else address.target,
            headers=headers,
            retries=_ONE_TRY,
            redirect=False,
            assert_same_host=False,
            preload_content=False,
            decode_content=False,
        )

    def route(self, origin: Origin) -> Route:
        """The way to a server, made when it is first asked for. Raises UsageError for settings that cannot be used."""
        route = self._routes.get(origin)
        if route is None:
            with self._lock:
                route = self._routes.get(origin) or self._new_route(origin)
                self._routes[origin] = route
        return route

    def close(self) -> None:
        """End all connections, those included on which another thread waits for an answer."""
        import socket
        from contextlib import suppress

        with self._lock:
            self._closed = True
            opened = list(self._opened)
            routes = list(self._routes.values())
        for connection in opened:
            if isinstance(connection.sock, socket.socket):
                with suppress(OSError):  # socket's own method: that of a TLS socket would change what its reader holds
                    socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)
        for route in routes:
            route.pool.close()

    def _record(self, connection: HTTPConnection) -> None:
        with self._lock:
            self._opened.add(connection)
            if self._closed:
                raise ConnectionAbortedError

    def _new_route(self, origin: Origin) -> Route:
        proxy = _proxy_for(origin)
        if proxy is None:
            pool = self._direct(origin)
        else:
            pool = self._behind(proxy, origin).connection_from_host(origin.host, origin.port, origin.scheme)
        if pool.ConnectionCls is HTTPConnection:
            pool.ConnectionCls = self._plain
        elif pool.ConnectionCls is HTTPSConnection:
            pool.ConnectionCls = self._secure
        forwarded = proxy is not None and origin.scheme == "http" and not proxy.startswith("socks")
        return Route(pool, None if proxy is None else without_login(proxy), forwarded)

    def _direct(self, origin: Origin) -> HTTPConnectionPool:
        if origin.scheme == "http":
            return HTTPConnectionPool(origin.host, origin.port, timeout=self._timeout, maxsize=self._size)
        context = self._context(origin)
        return HTTPSConnectionPool(
            origin.host, origin.port, timeout=self._timeout, maxsize=self._size, ssl_context=context
        )

    def _behind(self, proxy: str, origin: Origin) -> PoolManager:
        """Pools behind a proxy. Its login goes into a header at once, as urllib3 names the proxy in errors."""
        from requests.utils import get_auth_from_url
        from urllib3 import make_headers

        context = self._context(origin) if origin.scheme == "https" else None
        if proxy.startswith("socks"):
            return _behind_socks(proxy, self._size, self._timeout, context)
        try:
            user, password = get_auth_from_url(proxy)
            return ProxyManager(
                without_login(proxy),
                proxy_headers=make_headers(proxy_basic_auth=f"{user}:{password}") if user else None,
                proxy_ssl_context=self._certificates.checked if proxy.startswith("https") else None,
                maxsize=self._size,
                timeout=self._timeout,
                ssl_context=context,
            )
        except ValueError as error:
            raise _proxy_unusable(proxy, "it must be an address such as http://proxy.example.org:3128") from error

    def _context(self, origin: Origin) -> SSLContext:
        context = self._certificates.context(origin.host, origin.port)
        if not context.check_hostname:  # whoever named the host as trusted needs no warning at each connection
            warnings.filterwarnings("ignore", category=InsecureRequestWarning)
        return context


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


def _proxy_for(origin: Origin) -> str | None:
    """The proxy that the environment, or the system on Windows and macOS, names for a server, unless NO_PROXY does."""
    if sys.platform not in ("win32", "darwin") and not any(name.lower().endswith("_proxy") for name in os.environ):
        return None  # the module that reads them takes 9 ms to import
    from urllib.request import getproxies

    proxies = getproxies()
    if not proxies.keys() - {"no"}:
        return None
    from requests.utils import select_proxy, should_bypass_proxies

    url = "{}://{}:{}/".format(*origin)
    proxy = None if should_bypass_proxies(url, None) else select_proxy(url, proxies)
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def _behind_socks(proxy: str, size: int, timeout: Timeout, context: SSLContext | None) -> PoolManager:
    if find_spec("socks") is None:
        raise _proxy_unusable(proxy, "SOCKS needs the package PySocks", Hint("add it", "pip install pysocks"))
    from urllib3.contrib.socks import SOCKSProxyManager

    return SOCKSProxyManager(proxy, maxsize=size, timeout=timeout, ssl_context=context)


def _proxy_unusable(proxy: str, reason: str, *hints: Hint) -> UsageError:
    message = f"the proxy {without_login(proxy)} cannot be used: {reason}"
    every = (*hints, Hint("correct or unset HTTPS_PROXY, HTTP_PROXY and ALL_PROXY, or name the host in NO_PROXY"))
    return UsageError("invalid-environment-variable", message, hints=every)
