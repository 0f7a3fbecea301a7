"""What is kept of one project between two runs: when its page counts, its versions, and what was looked at of them.

Plain values in marshal's form, which loads in a fifth of the time of JSON. The shelf checks that it is whole, and the
form belongs to one version of Python, so its number is part of the record's.
"""

from __future__ import annotations

import marshal
import sys
import time
from collections.abc import Collection, Mapping
from itertools import chain
from typing import Any, NamedTuple, cast

from envsolve.index.fetch import Response, number_of
from envsolve.index.metadata import Metadata
from envsolve.index.page import RawFile
from envsolve.model.need import Need

_FORMAT = (5, sys.version_info[:2])
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
    fields = read_plain(content)
    return Kept._make(cast("tuple[Any, ...]", fields)) if _fit((fields,), _KEPT) else None


def _fit(values: Collection[Any], shape: Any) -> bool:
    """Whether each of ``values`` has ``shape``. What is kept may have been altered, and would fail far from here.

    A shape is a type, a tuple of shapes, ``(shape, ...)`` for a tuple of any length, ``[shape]`` for that or None, or
    a dict with one shape for its keys and one for its values. A thousand values are judged field by field, which takes
    a tenth of the steps of one after the other.
    """
    if isinstance(shape, type):
        return {shape}.issuperset(map(type, values))
    if isinstance(shape, list):
        return _fit([it for it in values if it is not None], *shape)
    if not _fit(values, type(shape)):
        return False
    if isinstance(shape, dict):
        [(of_key, of_value)] = shape.items()
        return _fit([*chain(*values)], of_key) and _fit([*chain(*(it.values() for it in values))], of_value)
    if shape[-1] is ...:
        return _fit([*chain(*values)], shape[0])
    return {len(shape)}.issuperset(map(len, values)) and all(map(_fit, zip(*values, strict=True), shape))


_TEXTS = (str, ...)
_HASHES = ((str, str), ...)
_FILE = (str, str, _HASHES, [int], [str], [str], [str], [_HASHES])
"""A RawFile."""
_NEED = (str, _TEXTS, str, str, str, str)
_METADATA = (str, str, [(_NEED, ...)], [str], _TEXTS, bool, bool, _TEXTS, _TEXTS)
_KEPT = (float, str, str, str, str, [_TEXTS], {str: _TEXTS}, {int: (_FILE, ...)}, {str: _METADATA})
"""The fields of a Kept."""
_KNOWN_MARKERS = {(str, str): bool}


def read_markers(content: bytes | None) -> dict[tuple[str, str], bool]:
    """Which markers hold, as a shelf holds it; empty where that is nothing, or of another format."""
    found = read_plain(content)
    return cast("dict[tuple[str, str], bool]", found) if _fit((found,), _KNOWN_MARKERS) else {}


def read_plain(content: bytes | None) -> object:
    """What a shelf holds, a value of plain types; None where it is nothing, or of another format."""
    if content is None:
        return None
    try:
        form, plain = marshal.loads(content)  # noqa: S302 - a file of this user whose checksum was right
    except (EOFError, ValueError, TypeError, MemoryError):  # marshal believes the lengths that it reads
        return None
    return plain if form == _FORMAT else None


def written_plain(plain: object) -> bytes:
    """``plain`` as a shelf holds it."""
    record: Any = (_FORMAT, plain)
    return marshal.dumps(record)


def written(kept: Kept) -> bytes:
    """``kept`` as a shelf holds it."""
    metadata = {identity: _plain(found) for identity, found in kept.metadata.items()}
    return written_plain((*kept[:-3], dict(kept.spellings), dict(kept.seen), metadata))


def _plain(metadata: Metadata) -> tuple[object, ...]:
    """``metadata`` without types of our own."""
    name, version, requires, *rest = metadata
    return (name, version, None if requires is None else tuple(map(tuple, requires)), *rest)


def metadata_of(plain: Metadata) -> Metadata:
    """The metadata again; what was kept of it is plain tuples."""
    name, version, requires, *rest = plain
    return Metadata._make((name, version, None if requires is None else tuple(map(Need._make, requires)), *rest))


def expiry(response: Response) -> float:
    """Until when an answer counts, in seconds since the epoch (RFC 9111, section 4.2.1); 0 where it does not say."""
    said = response.headers.get("cache-control", "").lower().replace(" ", "").split(",")
    if "no-store" in said or "no-cache" in said:
        return 0.0
    for directive in said:
        name, _, seconds = directive.partition("=")
        if name == "max-age" and (age := number_of(seconds)) is not None:
            return time.time() + age - _age(response)
    return 0.0


def may_be_kept(response: Response) -> bool:
    """Whether the server allows keeping an answer."""
    return "no-store" not in response.headers.get("cache-control", "").lower()


def _age(response: Response) -> int:
    return number_of(response.headers.get("age", "")) or 0
