"""The bytes of a log in an encoding where a line break is the byte 10 and ASCII is ASCII, a chunk at a time.

Most logs are like that. PowerShell writes UTF-16 where ``>`` sends output to a file; that becomes UTF-8 here, so that
what comes after looks for bytes at the speed of C, whatever the file was.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import BinaryIO

CHUNK = 1 << 18
"""Bytes to read at once: enough for calls to cost nothing, few enough to keep what is made of them in memory."""

_START, _SAMPLE = 16, 4096
"""Bytes to judge by: what begins in another encoding is in that."""
_FEWEST_PAIRS = 2
_MARKS = (
    (codecs.BOM_UTF8, None),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins as UTF-16's mark does
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_MOSTLY, _HARDLY = 0.6, 0.1
"""Shares of zeros: in UTF-16, of Latin text, every second byte is zero but for a few letters; the others never are."""


def chunks(stream: BinaryIO) -> Iterator[bytes]:
    """What is in ``stream``: as it is where ASCII bytes are ASCII, else as UTF-8; a byte order mark is left out."""
    first = stream.read(CHUNK)
    encoding, mark = wide_encoding(first)
    chunk = first[mark:]
    if encoding is None:
        while chunk:
            yield chunk
            chunk = stream.read(CHUNK)
        return
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    while chunk:
        yield decoder.decode(chunk).encode("utf-8", "replace")
        chunk = stream.read(CHUNK)
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


def wide_encoding(first: bytes) -> tuple[str | None, int]:
    """The encoding of a text that begins with ``first`` if it is one of wide characters, and the length of its mark.

    By the byte order mark; without one, UTF-16 where nearly every second byte is zero.
    """
    for mark, encoding in _MARKS:
        if first.startswith(mark):
            return encoding, len(mark)
    little, big = (all(_is_wide(first[:size], zeros) for size in (_START, _SAMPLE)) for zeros in (1, 0))
    return "utf-16-le" if little else "utf-16-be" if big else None, 0


def _is_wide(sample: bytes, zeros: int) -> bool:
    """Whether nearly every second byte is zero, from the place ``zeros`` on, and the others are not."""
    pairs = len(sample) // 2
    found = [sample[place : 2 * pairs : 2].count(0) for place in (zeros, 1 - zeros)]
    return pairs >= _FEWEST_PAIRS and found[0] > pairs * _MOSTLY and found[1] <= pairs * _HARDLY
