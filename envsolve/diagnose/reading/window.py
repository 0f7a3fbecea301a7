"""A block as lines with what follows each, where possible for all lines of the block at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial

from envsolve.diagnose.reading.blocks import Block
from envsolve.diagnose.reading.lines import Line, Texts

FOLLOWING = 2
"""Lines told with one that matters, as a message may be wrapped."""

_LOOK_AHEAD = 4
_AHEAD = 1 << 15
"""Bytes in which as many segments surely are, unless many lines are empty."""

_line = partial(tuple.__new__, Line)
"""Makes a line of its parts in half the time that calling Line takes."""


class Window:
    """The segments of a block by their place, and what their texts are. About ``wanted`` of them are to be told."""

    def __init__(self, block: Block, after: Block | None, texts: Texts, wanted: int) -> None:
        self._block = block
        self._after = after
        self._texts = texts
        self._single = _single_texts(block, texts) if block.is_plain or wanted > len(block.shapes) // 2 else []

    @property
    def is_easy(self) -> bool:
        """Whether every segment is a line of its own with one text."""
        return bool(self._single)

    def lines(self, places: Sequence[int]) -> list[Line]:
        """The line at each of ``places``, in a block that is easy."""
        texts = self._single
        following = list(zip(*(texts[it:] for it in range(1, FOLLOWING + 1)), strict=False))
        following += [self.line(place, 0).following for place in range(len(following), len(texts))]
        columns = (self._block.numbers, texts, following)
        return list(map(_line, zip(*(map(column.__getitem__, places) for column in columns), strict=True)))

    def texts(self, place: int) -> tuple[str, ...]:
        """The texts of a segment."""
        return (self._single[place],) if self._single else self._texts.of(self._block.segments[place])

    def line(self, place: int, part: int) -> Line:
        """One text of a segment with those after it: first what is left of the same one, then of other lines."""
        number, texts = self._at(place)
        following = texts[part + 1 :]
        for other in range(place + 1, place + 1 + _LOOK_AHEAD):
            other_number, more = self._at(other)
            if len(following) < FOLLOWING and other_number != number:
                following += more
        return Line(number, texts[part], following[:FOLLOWING])

    def _at(self, place: int) -> tuple[int, tuple[str, ...]]:
        """The number and the texts of a segment, which may be one of the first in the next block."""
        beyond = place - len(self._block.shapes)
        if beyond < 0:
            return self._block.numbers[place], self.texts(place)
        return self._ahead[beyond] if beyond < len(self._ahead) else (0, ())

    @cached_property
    def _ahead(self) -> list[tuple[int, tuple[str, ...]]]:
        if self._after is None:
            return []
        start = Block(self._after.first, self._after.raw[:_AHEAD])
        return list(zip(start.numbers, map(self._texts.of, start.segments[:_LOOK_AHEAD]), strict=False))


def _single_texts(block: Block, texts: Texts) -> list[str]:
    """The text of each segment, where each is a line of its own with one text; else none."""
    if block.is_plain:
        found = list(filter(None, block.raw.decode("ascii").replace("\t", " ").split("\n")))
        return found if all(map(str.strip, found)) else []
    several = texts.of_each(block.segments)
    if set(map(len, several)) != {1} or len(set(block.numbers)) < len(several):
        return []
    return [text for (text,) in several]
