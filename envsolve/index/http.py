"""Package indexes over HTTP, with the same proxies, certificates, logins and timeouts as in pip.

A Route transfers the bytes. This module decides the rest: retries, redirects, headers, and size limits.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING

from envsolve import __version__
from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, OutsideError, UsageError
from envsolve.index.address import Address, Origin, address_behind, address_of
from envsolve.index.body import read_body
from envsolve.index.credentials import Credentials
from envsolve.index.failures import Failure, Tries, outside_error
from envsolve.index.fetch import PAGE_LIMIT, Response

if TYPE_CHECKING:
    from envsolve.index.route import Route

_FINAL = frozenset({200, 206, 304, 401, 403, 404, 410, 416})
"""The statuses that are about the file, see Fetcher."""
_RETRIED = frozenset({408, 429, 500, 502, 503, 504})
"""The statuses for which pip and uv try again."""
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS = 10
_UNAUTHORIZED = 401
_FOR_ONE_ORIGIN = frozenset({"Authorization", "Cookie"})
_READ_TIMEOUT = 30.0
_DEADLINE = 50.0
"""Seconds; see Settings in route.py. After this time, a failed request is not repeated either."""
_WATCH_INTERVAL = 1.0
_LONGEST_TIMEOUT = 3600.0
_TIMEOUT_VARIABLES = ("UV_HTTP_TIMEOUT", "PIP_DEFAULT_TIMEOUT")
_RETRIES = 3
_MOST_RETRIES = 100
_RETRIES_VARIABLES = ("UV_HTTP_RETRIES", "PIP_RETRIES")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""A token (RFC 9110, section 5.6.2)."""
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


class HttpFetcher:
    """A Fetcher for http and https, for as many threads as it has ``connections`` for each server.

    ``retries`` is the number of repetitions of a request, by default that of UV_HTTP_RETRIES or PIP_RETRIES. Before the
    first repetition it waits up to ``backoff`` seconds, before each further one up to twice as long, and as long as the
    server requests, but not longer than ``longest_wait``.
    ``connect_timeout`` and ``read_timeout`` are seconds without a byte; the default of the latter is that of
    UV_HTTP_TIMEOUT or PIP_DEFAULT_TIMEOUT. A whole response may take ``deadline`` seconds, or ``read_timeout`` if that
    is longer. The certificates of ``trusted_hosts`` (``name`` or ``name:port``) are not verified.
    ``client_certificate`` is a PEM file for servers that require one.

    ``notes`` say which settings could not be used.
    """

    def __init__(
        self,
        *,
        connections: int = 48,
        retries: int | None = None,
        backoff: float = 0.25,
        longest_wait: float = 8.0,
        connect_timeout: float = 10.0,
        read_timeout: float | None = None,
        deadline: float = _DEADLINE,
        trusted_hosts: frozenset[str] = frozenset(),
        client_certificate: Path | None = None,
    ) -> None:
        from envsolve.index.certificates import Certificates

        self._backoff = backoff
        self._longest_wait = longest_wait
        self._credentials = Credentials()
        self.notes = self._credentials.notes
        self._retries = _patience(self.notes) if retries is None else retries
        timeout = _read_timeout(self.notes) if read_timeout is None else read_timeout
        self._deadline = max(deadline, timeout)
        certificates = Certificates(client_certificate, trusted_hosts)
        self._connecting = connections, connect_timeout, timeout, self._deadline, certificates
        self._headers = {"User-Agent": f"envsolve/{__version__}", "Accept-Encoding": "gzip"}
        self._routes: dict[Origin, Route] = {}
        self._lock = Lock()
        self._closed = Event()

    def fetch(self, url: str, headers: Mapping[str, str] | None = None, *, limit: int = PAGE_LIMIT) -> Response:
        """See Fetcher. Raises UsageError for an address or a header that cannot be sent."""
        address = address_of(url)
        sent = self._sent(headers or {})
        passed = {address.url}
        while True:
            response = self._answer(address, sent, limit)
            if response.status in _FINAL:
                return response
            following = _redirect(address, response)
            if following is None:
                raise outside_error(_refusal(response), self._tries(address, 1))
            if following.url in passed or len(passed) > _MOST_REDIRECTS:
                message = f"{without_secrets(url)} redirects endlessly"
                raise OutsideError("redirect-loop", message, cause=(f"the last redirect is to {following.shown}",))
            if following.origin != address.origin:
                sent = {name: value for name, value in sent.items() if name not in _FOR_ONE_ORIGIN}
            address = following
            passed.add(address.url)

    def close(self) -> None:
        """End all connections. Threads that wait for a response or for the next try get OutsideError."""
        with self._lock:
            self._closed.set()
            routes = list(self._routes.values())  # another thread may still add one, which it closes itself
        for route in routes:
            route.close()

    def _sent(self, headers: Mapping[str, str]) -> dict[str, str]:
        sent = dict(self._headers)
        for name, value in headers.items():
            if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
                raise UsageError("header-invalid", f"the header {name!r} contains an invalid character")
            sent[name.title()] = value
        if "Range" in sent:
            sent["Accept-Encoding"] = "identity"  # a part of a compressed file cannot be decompressed
        return sent

    def _answer(self, address: Address, headers: Mapping[str, str], limit: int) -> Response:
        """The response of one server, with a login if the server requires one and it is known."""
        if "Authorization" in headers:
            return self._persistent(address, headers, limit)
        login = self._credentials.login_for(address)
        known = headers if login is None else {**headers, "Authorization": login.authorization}
        response = self._persistent(address, known, limit)
        if response.status == _UNAUTHORIZED:
            found = self._credentials.after_refusal(address, login)
            if found is not None:
                return self._persistent(address, {**headers, "Authorization": found.authorization}, limit)
        return response

    def _persistent(self, address: Address, headers: Mapping[str, str], limit: int) -> Response:
        """The response, after repetitions if necessary."""
        start = monotonic()
        for count in range(1, self._retries + 2):
            try:
                response = self._once(address, headers, limit)
            except Failure as failure:
                if self._closed.is_set():
                    break
                last = count > self._retries or monotonic() - start > self._deadline
                if last or not failure.again:
                    raise outside_error(failure, self._tries(address, count)) from failure
                wait = self._pause(count)
            else:
                if response.status not in _RETRIED:
                    return response
                if count > self._retries:
                    raise outside_error(_refusal(response), self._tries(address, count))
                wait = max(self._pause(count), self._requested_pause(response))
            if self._closed.wait(wait):
                break
        raise OutsideError("fetch-cancelled", f"{address.shown} was not fetched, because the command is ending")

    def _once(self, address: Address, headers: Mapping[str, str], limit: int) -> Response:
        """The response to one request, whatever its status. Raises Failure."""
        route = self._route(address.origin)
        answer, start = None, monotonic()
        try:
            answer = route.send(address, headers)
            try:
                body = read_body(answer, limit)
            except BaseException:
                answer.release(whole=False)  # the rest of the body must not be read as the next response
                raise
            answer.release(whole=True)
        except route.errors as error:
            if monotonic() - start > self._deadline:
                reason = f"it did not end within {self._deadline:g} s"
                raise Failure("index-timeout", reason, again=False) from error
            raise route.failure(error, answered=answer is not None) from error
        return Response(answer.status, answer.headers, body, address.url)

    def _route(self, origin: Origin) -> Route:
        """The route to a server, made on first use. Raises UsageError for invalid settings."""
        from envsolve.index.route import (  # urllib3 takes 30 ms to import, and cached pages do not need it
            Route,
            Settings,
        )

        with self._lock:
            if origin not in self._routes:
                if not self._routes:
                    Thread(target=self._watch, daemon=True).start()
                self._routes[origin] = Route(origin, Settings(*self._connecting))
                if self._closed.is_set():
                    self._routes[origin].close()
            return self._routes[origin]

    def _watch(self) -> None:
        """End overdue connections: nothing else ends a read that gets a byte before each timeout."""
        while not self._closed.wait(_WATCH_INTERVAL):
            for route in list(self._routes.values()):
                route.end_overdue()

    def _tries(self, address: Address, count: int) -> Tries:
        return Tries(address.shown, self._route(address.origin).proxy, count)

    def _pause(self, count: int) -> float:
        """Seconds before the next try: longer each time, and random, so that many threads do not retry at once."""
        from random import uniform

        longest = min(self._backoff * 2.0 ** (count - 1), self._longest_wait)
        return uniform(longest / 2, longest)  # noqa: S311 - chance spreads load here, it keeps no secret

    def _requested_pause(self, response: Response) -> float:
        """Seconds that the server requests (Retry-After, a number or a date: RFC 9110, section 10.2.3), limited."""
        from datetime import UTC, datetime
        from email.utils import parsedate_to_datetime

        text = response.headers.get("retry-after", "").strip()
        if text.isdecimal():
            return min(float(text), self._longest_wait)
        try:
            until = parsedate_to_datetime(text)
        except ValueError:
            return 0.0
        if until.tzinfo is None:  # the date ends in -0000
            until = until.replace(tzinfo=UTC)
        return min(max((until - datetime.now(UTC)).total_seconds(), 0.0), self._longest_wait)


def _read_timeout(notes: list[str]) -> float:
    """The read timeout in seconds, from the variables of uv and pip."""
    for variable in _TIMEOUT_VARIABLES:
        text = os.environ.get(variable)
        if not text:
            continue
        try:
            seconds = float(text)
        except ValueError:
            seconds = 0.0
        if 0 < seconds < _LONGEST_TIMEOUT:
            return seconds
        notes.append(f"{variable} is ignored: {text!r} is not a number of seconds")
    return _READ_TIMEOUT


def _patience(notes: list[str]) -> int:
    """The number of repetitions of a request, from the variables of uv and pip."""
    for variable in _RETRIES_VARIABLES:
        text = os.environ.get(variable)
        if not text:
            continue
        if text.isascii() and text.isdecimal() and float(text) <= _MOST_RETRIES:
            return int(text)
        notes.append(f"{variable} is ignored: {text!r} is not a number of retries up to {_MOST_RETRIES}")
    return _RETRIES


def _redirect(address: Address, response: Response) -> Address | None:
    """The target of a redirect; None for another response. Raises OutsideError if it is not safe to follow."""
    location = response.headers.get("location")
    if response.status not in _REDIRECTS or location is None:
        return None
    try:
        following = address_behind(address, location)
    except UsageError as error:
        message = f"{address.shown} redirects to {without_secrets(location)!r}, which is not an http or https URL"
        raise OutsideError("redirect-invalid", message) from error
    if following.origin.scheme == "http" and address.origin.scheme == "https":
        message = f"{address.shown} redirects to {following.shown}, which is not encrypted"
        raise OutsideError("redirect-insecure", message, hints=(Hint("use an index that does not redirect to http"),))
    return following


def _refusal(response: Response) -> Failure:
    """The failure for a status, with its name."""
    from http import HTTPStatus

    try:
        name = f"{response.status} {HTTPStatus(response.status).phrase}"
    except ValueError:
        name = str(response.status)
    return Failure("index-failed", f"the server answered {name}", again=False)
