"""Web addresses in parts: the server to connect to, the target of the request, and the login in the address.

The login is separated here, so that no message, cache or lock made from an address can contain it.
"""

from __future__ import annotations

import re
from base64 import b64encode
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from envsolve.boundary.secrets import without_secrets
from envsolve.errors import Hint, UsageError

_UNSAFE = re.compile(r"[\x00-\x1f\x7f]|^\s|^[^/]*//[^/?#]*[\s\\]")
"""Characters that could split a request, and what is invalid before a path."""
_DEFAULT_PORTS = {"http": 80, "https": 443}


class Login(NamedTuple):
    """A user name and a password, None if only the user is known. Its repr shows neither."""

    user: str
    password: str | None

    def __repr__(self) -> str:
        return "Login(...)"

    @property
    def authorization(self) -> str:
        """The value of the header Authorization (RFC 7617, in UTF-8)."""
        login = f"{self.user}:{self.password or ''}"
        return f"Basic {b64encode(login.encode()).decode()}"


class Origin(NamedTuple):
    """The server of a connection and of a login. ``host`` is in lower case, IPv6 in brackets."""

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
        """``url`` without secrets, for messages."""
        return without_secrets(self.url)


def address_of(url: str) -> Address:
    """The parts of ``url``. Raises UsageError if it is not a web address, or could split a request."""
    try:
        parts = urlsplit(url)
        name, port = parts.hostname or "", parts.port
        host = f"[{name}]" if ":" in name else name.encode("idna").decode()
    except ValueError:
        raise _refused(url) from None
    if parts.scheme not in _DEFAULT_PORTS or not host or _UNSAFE.search(url):
        raise _refused(url)
    origin = Origin(parts.scheme, host, _DEFAULT_PORTS[parts.scheme] if port is None else port)
    target = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    login = None
    if parts.username or parts.password:
        login = Login(unquote(parts.username or ""), None if parts.password is None else unquote(parts.password))
    netloc = host if port is None else f"{host}:{port}"
    return Address(f"{parts.scheme}://{netloc}{target}", origin, target, login)


def address_behind(address: Address, location: str) -> Address:
    """The address in a header Location, which may be relative. Raises UsageError like :func:`address_of`."""
    with suppress(UnicodeError):  # some servers send UTF-8, which http.client reads as Latin-1
        location = location.encode("latin-1").decode()
    try:
        url = urljoin(address.url, location)
    except ValueError as error:
        raise _refused(location) from error
    return address_of(url)


def _refused(url: str) -> UsageError:
    hint = Hint("give an index as a URL such as https://packages.example.org/simple/")
    return UsageError("url-invalid", f"{without_secrets(url)!r} is not an http or https URL", hints=(hint,))
