"""A page of an index as the cache stores it, and how long it stays fresh."""

from __future__ import annotations

import time
from typing import NamedTuple

from envsolve.boundary.secrets import without_secrets
from envsolve.index.fetch import Response, number_of


class CachedPage(NamedTuple):
    """The page of a project. ``page`` is None if the index does not know the project.

    ``expires`` is in seconds since the epoch. After that, ``etag`` and ``modified`` go with the next request.
    """

    expires: float
    etag: str = ""
    modified: str = ""
    url: str = ""
    content_type: str = ""
    page: bytes | None = None


def page_in(response: Response) -> CachedPage:
    """The page in ``response``."""
    etag, modified, kind = (response.headers.get(it, "") for it in ("etag", "last-modified", "content-type"))
    return CachedPage(expiry(response), etag, modified, without_secrets(response.url), kind, response.body)


def expiry(response: Response) -> float:
    """Until when a response is fresh, in seconds since the epoch (RFC 9111, section 4.2.1); 0 if it does not say."""
    directives = response.headers.get("cache-control", "").lower().replace(" ", "").split(",")
    if "no-store" in directives or "no-cache" in directives:
        return 0.0
    for directive in directives:
        name, _, seconds = directive.partition("=")
        if name == "max-age" and (age := number_of(seconds)) is not None:
            return time.time() + age - (number_of(response.headers.get("age", "")) or 0)
    return 0.0


def may_cache(response: Response) -> bool:
    """Whether the server allows a client to cache the response."""
    return "no-store" not in response.headers.get("cache-control", "").lower()
