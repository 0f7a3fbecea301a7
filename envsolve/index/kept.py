"""What is kept of an index between two runs: pages as they came, until when they count, and metadata as it was read."""

from __future__ import annotations

import time
from typing import NamedTuple, TypeVar

import msgspec

from envsolve.boundary.secrets import without_secrets
from envsolve.index.fetch import Response, number_of

T = TypeVar("T")


class Kept(NamedTuple):
    """The page of a project. ``page`` is None where the index does not know the project.

    ``expires`` is in seconds since the epoch; ``etag`` and ``modified`` are what the server is asked with then.
    """

    expires: float
    etag: str = ""
    modified: str = ""
    url: str = ""
    content_type: str = ""
    page: bytes | None = None


def kept_of(response: Response) -> Kept:
    """The page in ``response``."""
    etag, modified, kind = (response.headers.get(it, "") for it in ("etag", "last-modified", "content-type"))
    return Kept(expiry(response), etag, modified, without_secrets(response.url), kind, response.body)


def read_kept(content: bytes | None, kind: type[T]) -> T | None:
    """What a shelf holds of ``kind``; None where it is nothing, or written by another version of envsolve."""
    try:
        return None if content is None else msgspec.msgpack.decode(content, type=kind)
    except (ValueError, RecursionError):
        return None


def written(value: object) -> bytes:
    """A value as a shelf holds it."""
    return msgspec.msgpack.encode(value)


def expiry(response: Response) -> float:
    """Until when an answer counts, in seconds since the epoch (RFC 9111, section 4.2.1); 0 where it does not say."""
    said = response.headers.get("cache-control", "").lower().replace(" ", "").split(",")
    if "no-store" in said or "no-cache" in said:
        return 0.0
    for directive in said:
        name, _, seconds = directive.partition("=")
        if name == "max-age" and (age := number_of(seconds)) is not None:
            return time.time() + age - (number_of(response.headers.get("age", "")) or 0)
    return 0.0


def may_be_kept(response: Response) -> bool:
    """Whether the server allows keeping an answer."""
    return "no-store" not in response.headers.get("cache-control", "").lower()
