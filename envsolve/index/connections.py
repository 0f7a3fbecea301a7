"""The ways to servers: each straight, or through the proxy that the environment names for it."""

from __future__ import annotations

import os
import sys
from threading import Lock
from typing import TYPE_CHECKING

from envsolve.index.address import Origin
from envsolve.index.certificates import Certificates

if TYPE_CHECKING:
    from envsolve.index.route import Route


class Connections:
    """All connections of one fetcher, safe to use from many threads. Proxies are read from the environment."""

    def __init__(self, size: int, connect_timeout: float, read_timeout: float, certificates: Certificates) -> None:
        self._size = size
        self._timeouts = connect_timeout, read_timeout
        self._certificates = certificates
        self._routes: dict[Origin, Route] = {}
        self._lock = Lock()
        self._closed = False

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
        with self._lock:
            self._closed = True
            routes = list(self._routes.values())
        for route in routes:
            route.close()

    def _new_route(self, origin: Origin) -> Route:
        from envsolve.index.route import Route, Settings  # urllib3 takes 30 ms to import, a cache needs none

        proxy = _proxy_for(origin)
        context = self._certificates.context(origin.host, origin.port) if origin.scheme == "https" else None
        proxy_context = self._certificates.checked if proxy is not None and proxy.startswith("https") else None
        route = Route(origin, proxy, Settings(self._size, *self._timeouts, context, proxy_context))
        if self._closed:
            route.close()
        return route


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
