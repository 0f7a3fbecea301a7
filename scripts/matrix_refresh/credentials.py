"""User and password of an index: sent to that index only, and in no URL that is stored or printed."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from requests import PreparedRequest
from requests.auth import AuthBase, HTTPBasicAuth
from requests.utils import get_netrc_auth

from scripts.matrix_refresh.errors import RefreshError, without_credentials

_PORTS = {"http": 80, "https": 443}
_Origin = tuple[str, str, int | None]


class Endpoint(NamedTuple):
    """An index's URL without user and password, and what sends them."""

    url: str
    auth: AuthBase | None


class _OneHost(AuthBase):
    """Sends user and password to one host; to others what .netrc has for them, as a session without this does."""

    def __init__(self, origin: _Origin, user: str, password: str) -> None:
        self._origin = origin
        self._basic = HTTPBasicAuth(user.encode(), password.encode())

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        url = request.url or ""
        known = get_netrc_auth(url)
        if _origin(url) == self._origin:
            self._basic(request)
        elif known is not None:
            HTTPBasicAuth(*known)(request)
        return request


def endpoint_of(url: str) -> Endpoint:
    """An index as a person names it. Raises RefreshError, without the URL, where that is none of HTTP."""
    try:
        parts = urlsplit(url)
        origin = _origin(url)
    except ValueError as error:
        raise RefreshError(
            "the URL of the index has no valid host and port; write / @ : in a password as %.."
        ) from error
    if parts.scheme not in _PORTS or not parts.hostname:
        raise RefreshError("the URL of the index does not begin with https:// or http:// and a host")
    if parts.username is None:
        return Endpoint(url, None)
    return Endpoint(without_credentials(url), _OneHost(origin, unquote(parts.username), unquote(parts.password or "")))


def _origin(url: str) -> _Origin:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme)
