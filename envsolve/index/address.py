"""Addresses on the web, taken apart once: where to connect, what to ask for, and the login that was written inside.

A login leaves the address here, so that no message, cache or lock that is made of an address can hold one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, UsageError

_ADDRESS = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/?#\\\s]+)(?P<target>[/?][^#]*)?(?:#.*)?", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_LABEL = "[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_COMMON_PLACE = re.compile(rf"({_LABEL}(?:\.{_LABEL})*)(?::([0-9]{{1,5}}))?")
"""The places that nearly all addresses have; urllib3 reads the others, and takes 30 ms to import."""
_HIGHEST_PORT = 65535
_DEFAULT_PORTS = {"http": 80, "https": 443}


class Login(NamedTuple):
    """A user and the password, which is None where only the user is known. Printing it shows neither."""

    user: str
    password: str | None

    def __repr__(self) -> str:
        return "Login(...)"

    @property
    def authorization(self) -> str:
        """The value of the header Authorization (RFC 7617, in UTF-8)."""
        from binascii import b2a_base64

        return "Basic " + b2a_base64(f"{self.user}:{self.password or ''}".encode(), newline=False).decode()


class Origin(NamedTuple):
    """What a connection, and a login, is for. ``host`` is in lower case, IPv6 in brackets."""

    scheme: str
    host: str
    port: int


class Address(NamedTuple):
    """One URL: ``url`` is all of it without login and fragment, ``target`` its path and query."""

    url: str
    origin: Origin
    target: str
    login: Login | None

    @property
    def shown(self) -> str:
        """``url`` as messages may have it."""
        return without_secrets(self.url)


def address_of(url: str) -> Address:
    """The parts of ``url``; raises UsageError where it is no web address, or holds what could split a request."""
    match = _ADDRESS.fullmatch(url)
    if match is None or _CONTROL.search(url):
        raise _refused(url)
    scheme, authority, target = match.groups()
    scheme = scheme.lower()
    place = _place(scheme, authority)
    if place is None:
        raise _refused(url)
    origin, netloc, login = place
    rest = target or "/"
    return Address(f"{scheme}://{netloc}{rest}", origin, rest if rest[0] == "/" else f"/{rest}", login)


def address_behind(address: Address, location: str) -> Address:
    """Where a header Location leads, which may be relative; raises UsageError as :func:`address_of` does."""
    from contextlib import suppress
    from urllib.parse import urljoin

    with suppress(UnicodeError):  # some servers send UTF-8, which http.client takes for Latin-1
        location = location.encode("latin-1").decode()
    try:
        url = urljoin(address.url, location)
    except ValueError as error:
        raise _refused(location) from error
    return address_of(url)


@lru_cache(maxsize=1024)
def _place(scheme: str, authority: str) -> tuple[Origin, str, Login | None] | None:
    """Where ``authority`` is, how it is written without its login, and the login; None where it is malformed."""
    login, _, netloc = authority.rpartition("@")
    common = _COMMON_PLACE.fullmatch(netloc)
    if common is not None and int(common[2] or 0) <= _HIGHEST_PORT:
        host, port = common[1].lower(), common[2]
        written = host if port is None else f"{host}:{int(port)}"
        return Origin(scheme, host, _DEFAULT_PORTS[scheme] if port is None else int(port)), written, _login(login)
    return _uncommon_place(scheme, netloc, login)


def _uncommon_place(scheme: str, netloc: str, login: str) -> tuple[Origin, str, Login | None] | None:
    """A place as urllib3 reads it: of IPv6, with letters beyond ASCII, or malformed."""
    from urllib3.exceptions import LocationParseError
    from urllib3.util import parse_url

    try:
        parsed = parse_url(f"{scheme}://{netloc}")
        if not parsed.host:
            return None
        parsed.host.encode("idna")
    except (LocationParseError, UnicodeError):
        return None
    number = _DEFAULT_PORTS[scheme] if parsed.port is None else parsed.port
    return Origin(scheme, parsed.host, number), parsed.netloc or "", _login(login)


def _login(text: str) -> Login | None:
    from urllib.parse import unquote

    if not text:
        return None
    user, colon, password = text.partition(":")
    return Login(unquote(user), unquote(password) if colon else None)


def _refused(url: str) -> UsageError:
    hint = Hint("give an index as a URL such as https://packages.example.org/simple/")
    return UsageError("url-invalid", f"{without_secrets(url)!r} is not an http or https URL", hints=(hint,))
