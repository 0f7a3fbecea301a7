"""A log cut into segments: the bytes between two line breaks, each in bounded memory.

A carriage return breaks lines too, as it stands between the states of a progress bar and, perhaps, an error; what it
parts has one number. A line that is longer than ``LONGEST`` becomes several segments, which overlap so that no message
is lost at a cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

LONGEST = 4096
"""Bytes of a segment. UTF-8 and the code pages need at least a byte for a character, so this holds for characters."""
OVERLAP = 256

_CONTINUES = 0b1000_0000
_CONTINUATION = 0b1100_0000
_WIDEST = 4
"""Bytes of a character in UTF-8."""


def blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """``chunks`` of a text, cut where lines end; of a long line every block begins with the end of the one before."""
    rest = b""
    for chunk in chunks:
        text = rest + chunk
        end = text.rfind(b"\n") + 1
        if len(text) - end > LONGEST:
            end = max(end, text.rfind(b"\r") + 1)
        if len(text) - end <= LONGEST:
            whole, rest = text[:end], text[end:]
        else:
            cut = _boundary(text, len(text) - _WIDEST)
            whole, rest = text[:cut], text[_boundary(text, cut - OVERLAP) :]
        if whole:
            yield whole
    if rest:
        yield rest


def segments(line: bytes) -> Iterator[bytes]:
    """The segments of one line that are not empty."""
    if len(line) <= LONGEST and b"\r" not in line:
        yield from filter(None, (line,))
        return
    for segment in filter(None, line.split(b"\r")):
        yield from _pieces(segment)


def _pieces(segment: bytes) -> Iterator[bytes]:
    """``segment`` in pieces of at most ``LONGEST`` bytes, each of which begins with the end of the one before."""
    start = 0
    while len(segment) - start > LONGEST:
        end = _boundary(segment, start + LONGEST)
        yield segment[start:end]
        start = _boundary(segment, end - OVERLAP)
    yield segment[start:]


def _boundary(text: bytes, at: int) -> int:
    """``at``, or the place just before it where a character of UTF-8 begins."""
    for place in range(at, at - _WIDEST, -1):
        if text[place] & _CONTINUATION != _CONTINUES:
            return place
    return at
