"""What is kept of one project between two runs: when its page counts, its versions, and what was looked at of them.

Plain values in marshal's form, which loads in a fifth of the time of JSON. The shelf checks that it is whole, and the
form belongs to one version of Python, so its number is part of the record's.
"""

from __future__ import annotations

import marshal
import sys
import time
from collections.abc import Mapping
from typing import NamedTuple

from envsolve.index.fetch import Response
from envsolve.index.metadata import Metadata
from envsolve.index.page import RawFile

_FORMAT = (1, sys.version_info[:2])
"""Of the record: another one, and what is kept counts as absent."""


class Kept(NamedTuple):
    """A page and the metadata of files on it, by the identity of the file.

    ``expires`` is in seconds since the epoch; ``etag`` and ``modified`` are what the server is asked with then.
    ``versions`` is None where the index does not know the project.
    """

    expires: float
    etag: str = ""
    modified: str = ""
    url: str = ""
    content_type: str = ""
    versions: tuple[str, ...] | None = None
    spellings: Mapping[str, tuple[str, ...]] = {}
    seen: Mapping[int, tuple[RawFile, ...]] = {}
    metadata: Mapping[str, Metadata] = {}

    @property
    def is_fresh(self) -> bool:
        """Whether it still counts without asking."""
        return self.expires > time.time()


def read_kept(content: bytes | None) -> Kept | None:
    """What a shelf holds of a project; None where it is nothing, or of another format."""
    if content is None:
        return None
    try:
        form, fields = marshal.loads(content)  # noqa: S302 - a file of this user whose checksum was right
        return Kept._make(fields) if form == _FORMAT else None
    except (EOFError, ValueError, TypeError):
        return None


def written(kept: Kept) -> bytes:
    """``kept`` as a shelf holds it."""
    metadata = {identity: tuple(found) for identity, found in kept.metadata.items()}
    fields = (*kept[:-3], dict(kept.spellings), dict(kept.seen), metadata)
    return marshal.dumps((_FORMAT, fields))


def expiry(response: Response) -> float:
    """Until when an answer counts, in seconds since the epoch (RFC 9111, section 4.2.1); 0 where it does not say."""
    said = response.headers.get("cache-control", "").lower().replace(" ", "").split(",")
    if "no-store" in said or "no-cache" in said:
        return 0.0
    for directive in said:
        name, _, seconds = directive.partition("=")
        if name == "max-age" and seconds.isdigit():
            return time.time() + int(seconds) - _age(response)
    return 0.0


def may_be_kept(response: Response) -> bool:
    """Whether the server allows keeping an answer."""
    return "no-store" not in response.headers.get("cache-control", "").lower()


def _age(response: Response) -> int:
    stated = response.headers.get("age", "")
    return int(stated) if stated.isdigit() else 0
