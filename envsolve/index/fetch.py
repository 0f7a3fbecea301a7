"""The seam between package indexes and the network: a request out, a response back, nothing of HTTP libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

PAGE_LIMIT = 100_000_000
"""Bytes that the page of a project may have; the largest real one has 15 MB (the whole history of a nightly build)."""
METADATA_LIMIT = 10_000_000
"""Bytes that a metadata file may have; the largest real ones hold a change log of 1 MB."""
_MOST_DIGITS = 18


def number_of(text: str) -> int | None:
    """A whole number that an index states; None where it is none, or one of more digits than Python reads."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


class Response(NamedTuple):
    """What a server answered, decompressed; ``url`` is where it came from in the end. Header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str


class Fetcher(Protocol):
    """One way of asking for a URL. Safe to use from many threads at once."""

    def fetch(self, url: str, headers: Mapping[str, str] | None = None, *, limit: int = PAGE_LIMIT) -> Response:
        """What the server says, after redirects and retries.

        Every status that says something about the file is a Response: 200, 206, 304, 401, 403, 404, 410, 416.
        Raises OutsideError where no such answer is to be had: no connection, a server that keeps failing, a body
        longer than ``limit`` bytes. No message holds a user name or a password.
        """
