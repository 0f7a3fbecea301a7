"""Response bodies, read and unpacked in steps. A body that does not end, or unpacks to gigabytes, is an error."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from envsolve.index.failures import Failure
from envsolve.index.fetch import number_of

if TYPE_CHECKING:
    from envsolve.index.route import Answer

_GZIP = ("gzip", "x-gzip")
_STEP = 1 << 18
"""Bytes that are unpacked at once."""


def read_body(answer: Answer, limit: int) -> bytes:
    """The whole body, unpacked. Raises Failure if it has more than ``limit`` bytes, is incomplete or malformed."""
    encoding = answer.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity", *_GZIP):
        raise Failure("response-unreadable", f"it has the unexpected compression {encoding!r}", again=False)
    if (number_of(answer.headers.get("content-length", "")) or 0) > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    sent = _limited(answer, limit)
    for part in _unpacked(sent) if encoding in _GZIP else sent:
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
    return b"".join(parts)


def _limited(answer: Answer, limit: int) -> Iterator[bytes]:
    """The parts of the body as they arrive, up to the limit."""
    size = 0
    while part := answer.read():
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        yield part


def _unpacked(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The content of gzip data: one or more complete streams, and padding after them."""
    stream = None
    try:
        for part in parts:
            data = part
            while data and (data.strip(b"\0") or not (stream is None or stream.eof)):
                if stream is None or stream.eof:
                    stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
                yield stream.decompress(data, _STEP)
                data = stream.unused_data if stream.eof else stream.unconsumed_tail
    except zlib.error as error:
        raise Failure("response-cut", f"it cannot be decompressed: {error}", again=True) from error
    if stream is not None and not stream.eof:
        raise Failure("response-cut", "the compressed data ends too early", again=True)


def _too_large(limit: int) -> Failure:
    return Failure("response-too-large", f"it has more than {limit} bytes", again=False)
