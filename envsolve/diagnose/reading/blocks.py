"""A log in blocks of whole lines, each in bounded memory: what is done to a block is done to many lines at once.

A segment is what is read as one line: the bytes between two line breaks. A carriage return breaks lines too, as it
stands between the states of a progress bar and, perhaps, an error; what it parts has one number. A line that is longer
than ``longest`` becomes several segments, which overlap so that no message is lost at a cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property

from envsolve.diagnose.reading.marks import is_plain, shape

LONGEST = 4096
"""Bytes of a segment. UTF-8 and the code pages need at least a byte for a character, so this holds for characters."""
OVERLAP = 256

_EMPTY_LINES = b"\n" * 16
_CONTINUES = 0b1000_0000
_CONTINUATION = 0b1100_0000
_SPARSE = 8
_WIDEST = 4
"""Bytes of a character in UTF-8."""


class Block:
    """Whole lines, the first of which has the number ``first``; a very long one may begin or go on outside."""

    def __init__(self, first: int, raw: bytes, longest: int = LONGEST) -> None:
        self.first = first
        self.raw = _without_colours(raw.replace(b"\r\n", b"\n"))
        self._longest = longest
        self._shaped = shape(self.raw)

    @cached_property
    def is_plain(self) -> bool:
        """Whether no line of it is to be decoded, cleaned or cut."""
        return not self._has_long_lines and is_plain(self.raw)

    @cached_property
    def segments(self) -> list[bytes]:
        """Each segment that is not empty, in order."""
        if self._has_long_lines:
            return [segment for _, segment in self._pieces]
        return list(filter(None, _line_feeds(self.raw).split(b"\n")))

    @cached_property
    def numbers(self) -> Sequence[int]:
        """The number of the line of each segment."""
        if self._has_long_lines:
            return [number for number, _ in self._pieces]
        breaks = self.raw.count(b"\n")
        if b"\r" not in self.raw and len(self.shapes) == breaks + (not self.raw.endswith(b"\n")):
            return range(self.first, self.first + len(self.shapes))
        lines = enumerate(self.raw.split(b"\n"), self.first)
        return [number for number, line in lines for segment in line.split(b"\r") if segment]

    @cached_property
    def shapes(self) -> list[bytes]:
        """The shape of each segment."""
        if self._has_long_lines:
            return list(map(shape, self.segments))
        shaped = self._shaped
        while _EMPTY_LINES in shaped:
            shaped = shaped.replace(_EMPTY_LINES, b"\n")
        return list(filter(None, shaped.split(b"\n")))

    @cached_property
    def _pieces(self) -> list[tuple[int, bytes]]:
        """The segments with their numbers, where some are too long."""
        return [
            (number, piece)
            for number, line in enumerate(self.raw.split(b"\n"), self.first)
            for segment in filter(None, line.split(b"\r"))
            for piece in _pieces(segment, self._longest)
        ]

    @cached_property
    def _has_long_lines(self) -> bool:
        """Whether a segment may be too long: such a one covers a window of half the length."""
        window = self._longest // 2
        windows = range(0, len(self._shaped) - window + 1, window)
        return any(self._shaped.find(b"\n", start, start + window) < 0 for start in windows)


def blocks(chunks: Iterable[bytes], longest: int = LONGEST) -> Iterator[Block]:
    """``chunks`` of a text, cut anew where lines end. What two of them share is an overlap."""
    number, rest = 1, b""
    for chunk in chunks:
        text = rest + chunk
        end = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
        if len(text) - end <= longest:
            whole, rest = text[:end], text[end:]
        else:
            cut = _boundary(text, len(text) - _WIDEST)
            whole, rest = text[:cut], text[_boundary(text, cut - OVERLAP) :]
        if whole:
            yield Block(number, whole, longest)
        number += whole.count(b"\n")
    if rest:
        yield Block(number, rest, longest)


def _without_colours(text: bytes) -> bytes:
    """``text`` with the sequences left out that most logs have, if any; the others go when a line is cleaned."""
    sequences = text.count(b"\x1b")
    return _colours().sub(b"", text) if 0 < sequences * _SPARSE < len(text) else text


@cache
def _colours() -> re.Pattern[bytes]:
    return re.compile(rb"\x1b\[[0-9;]*[mK]")


def _line_feeds(text: bytes) -> bytes:
    return text.replace(b"\r", b"\n") if b"\r" in text else text


def _pieces(segment: bytes, longest: int) -> Iterator[bytes]:
    """``segment`` in pieces of at most ``longest`` bytes, each of which begins with the end of the one before."""
    start = 0
    while len(segment) - start > longest:
        end = _boundary(segment, start + longest)
        yield segment[start:end]
        start = _boundary(segment, end - OVERLAP)
    yield segment[start:]


def _boundary(text: bytes, at: int) -> int:
    """``at``, or the place just before it where a character of UTF-8 begins."""
    for place in range(at, at - _WIDEST, -1):
        if text[place] & _CONTINUATION != _CONTINUES:
            return place
    return at
