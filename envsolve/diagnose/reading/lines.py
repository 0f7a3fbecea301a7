"""The lines of a log one after the other, cleaned, in bounded memory whatever the log is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

from envsolve.diagnose.reading.blocks import LONGEST, OVERLAP, Block, blocks
from envsolve.diagnose.reading.chunks import chunks
from envsolve.diagnose.reading.cleaning import cleaned
from envsolve.diagnose.reading.decoding import Decoding
from envsolve.diagnose.reading.escaped import unescaped
from envsolve.diagnose.reading.marks import is_binary, marks, readable

_MOST_KNOWN = 1 << 22
"""Bytes of the segments whose texts are remembered, with what Python needs for that."""
_PER_SEGMENT = 200
_AT_ONCE = 64


class Line(NamedTuple):
    """A line of a log, cleaned. ``following`` are those after it that say something, where they were asked for.

    ``number`` counts line breaks from 1, so parts of a long line, or of a text in JSON, share one.
    """

    number: int
    text: str
    following: tuple[str, ...] = ()


class Texts:
    """The cleaned lines in the segments of one log. Those that were asked for last are remembered."""

    def __init__(self) -> None:
        self._decoding = Decoding()
        self._known: dict[bytes, tuple[str, ...]] = {}
        self._size = 0

    def learn(self, block: Block) -> None:
        """Take ``block`` as evidence of the encoding, before asking for texts in it."""
        self._decoding.learn(block.raw)

    def of(self, segment: bytes) -> tuple[str, ...]:
        """The texts in ``segment`` that are not blank: one, or as many as a text in JSON has lines."""
        known = self._known.get(segment)
        if known is None:
            self._size += len(segment) + _PER_SEGMENT
            if self._size > _MOST_KNOWN:
                self._known, self._size = {}, 0
            known = self._known[segment] = tuple(self._texts(segment))
        return known

    def of_each(self, segments: Sequence[bytes]) -> list[tuple[str, ...]]:
        """The texts in each of ``segments``: of many at once where they are UTF-8 and clean, as most are."""
        parts = (segments[start : start + _AT_ONCE] for start in range(0, len(segments), _AT_ONCE))
        return [texts for part in parts for texts in _clean_texts(part) or map(self.of, part)]

    def _texts(self, segment: bytes) -> Iterator[str]:
        found = marks(segment)
        if not found or is_binary(segment, found):
            return filter(str.strip, (readable(segment).decode("ascii"),))
        return filter(str.strip, map(cleaned, unescaped(self._decoding.text(segment, found))))


def _clean_texts(segments: Sequence[bytes]) -> list[tuple[str, ...]]:
    """The text in each of ``segments`` if there is nothing to clean in any, else none."""
    try:
        text = b"\n".join(segments).decode().replace("\t", " ")
    except UnicodeDecodeError:
        return []
    on_one_line = text.replace("\n", " ")
    if "\\n" in text or cleaned(on_one_line) != on_one_line:
        return []
    return [(line,) if line.strip() else () for line in text.split("\n")]


def lines(stream: BinaryIO, *, limit: int = LONGEST) -> Iterator[Line]:
    """The lines in ``stream`` that are not blank. A longer one than ``limit`` bytes comes in pieces that overlap.

    Raises ValueError where ``limit`` leaves no room between the overlaps.
    """
    if limit < 4 * OVERLAP:
        raise ValueError(f"pieces of {limit} bytes are mostly overlap")
    texts = Texts()
    for block in blocks(chunks(stream), limit):
        texts.learn(block)
        for number, found in zip(block.numbers, texts.of_each(block.segments), strict=True):
            for text in found:
                yield Line(number, text)
