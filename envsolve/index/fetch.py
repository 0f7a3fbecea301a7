"""The interface between package indexes and the network: requests and responses, without any HTTP library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

PAGE_LIMIT = 100_000_000
"""The size limit of a project's page in bytes; the largest real one has 15 MB (all nightly builds of a project)."""
METADATA_LIMIT = 10_000_000
"""The size limit of a metadata file in bytes; the largest real ones contain a change log of 1 MB."""
_MOST_DIGITS = 18


def number_of(text: str) -> int | None:
    """A whole number from an index; None if it is not one, or has more digits than Python reads."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


class Response(NamedTuple):
    """A server's response, decompressed. ``url`` is its final address. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str


class Fetcher(Protocol):
    """Fetches URLs. Safe to use from many threads at once."""

    def fetch(self, url: str, headers: Mapping[str, str] | None = None, *, limit: int = PAGE_LIMIT) -> Response:
        """The response of the server, after redirects and retries.

        Each status that is about the file is a Response: 200, 206, 304, 401, 403, 404, 410, 416. Raises OutsideError if
        there is no such response: no connection, a server that keeps failing, a body longer than ``limit`` bytes. No
        message contains a user name or a password.
        """
