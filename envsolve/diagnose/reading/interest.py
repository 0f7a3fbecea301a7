"""The lines of a log that matter: those with a word in them that a diagnosis looks for, each kind of line a few times.

Blocks of plain ASCII are searched as they are. What has anything else in it is cleaned a line at a time first, as a
colour or a typographic quote may stand in a word. Lines that are alike but for digits have one *shape* and are
returned a few times. What is remembered is bounded: in a log that never repeats itself shapes are forgotten.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain, count, islice, pairwise
from typing import BinaryIO, NamedTuple

from envsolve.diagnose.reading.anchors import Anchors, anchors
from envsolve.diagnose.reading.chunks import CHUNK, chunks
from envsolve.diagnose.reading.lines import Line, texts_of
from envsolve.diagnose.reading.segments import LONGEST, blocks, segments

MOST_ALIKE = 3
"""Lines of one shape that are returned: in their digits may be the error, the version or only the time."""
MOST_LINES = 10_000
"""Lines that are returned from the beginning of a log on; of one that never repeats itself the rest is left out."""
LAST_LINES = 2_000
"""Lines at the end of such a log that are returned all the same: what ended a program stands there."""
FOLLOWING = 2
"""Lines that come with one that matters, as a message may be wrapped."""
_LOOK_AHEAD = 5
_AHEAD = 1 << 10
"""Lines, and bytes, in which these are looked for."""

_NARROWEST, _USUAL = 60, (80, 120)
"""Columns of a terminal. Of the lines that it cut two are this wide, or one is as wide as usual."""
_BEGIN = 12
"""Bytes in which a new message begins as the one before it: behind a line that a terminal cut, none does."""
_PLAIN = bytes(code for code in range(ord(" "), 0x7F) if code not in b"&\\") + b"\n\t"
_FOLDED = bytes(code if code in _PLAIN else 0 for code in range(256)).replace(b"\t", b" ").lower()
"""Zero stands for what is not plain."""
_SHAPES = bytes.maketrans(b"0123456789\t", b"0000000000 ").lower()
_ZEROS = str.maketrans("123456789", "000000000")
_MOST_SHAPES = 1 << 13


def interesting(stream: BinaryIO, words: Iterable[str]) -> Iterator[Line]:
    """The lines in ``stream`` that hold one of ``words``, upper and lower case being alike, in order.

    Each comes with the two lines after it. Of lines that differ only in digits and case, the first three that differ
    are returned; of lines without digits, the first. Of more than ``MOST_LINES`` and ``LAST_LINES`` those in the middle
    are left out. Raises ValueError for a word that is not in lower case or shorter than two characters.
    """
    log = _Log(words)
    found = log.found_in(stream)
    yield from chain.from_iterable(map(log.lines, islice(found, MOST_LINES)))
    last: deque[_Found] = deque(maxlen=LAST_LINES)
    left = 0
    for it in found:
        left += len(last) == LAST_LINES
        last.append(it)
    for line in chain.from_iterable(map(log.lines, last)):
        yield line._replace(left_out=left)
        left = 0


class _Found(NamedTuple):
    """A segment that matters, with the text after its line, and with what continues it where a terminal cut it."""

    number: int
    segment: bytes
    ahead: bytes
    whole: bytes


class _Log:
    """What is remembered of one log: by shape the hashes of what was found, None for a shape without an anchor."""

    def __init__(self, words: Iterable[str]) -> None:
        self._anchors = anchors(tuple(words))
        self._seen: dict[bytes, tuple[int, ...] | None] = {}

    def found_in(self, stream: BinaryIO) -> Iterator[_Found]:
        """The segments of ``stream`` that matter."""
        number = 1
        for block, after in pairwise(chain(map(_unix, blocks(chunks(stream))), (b"",))):
            text = block + after if number == 1 else block
            wholes = _cut_by_terminal(text.split(b"\n")) if number == 1 and len(text) < CHUNK else {}
            counted = stop = 0
            folded = block.translate(_FOLDED)
            for spot in self._spots(folded, wholes):
                if spot < stop:
                    continue
                start, stop = block.rfind(b"\n", 0, spot) + 1, block.find(b"\n", spot) + 1 or len(block) + 1
                number += block.count(b"\n", counted, start)
                counted = start
                whole = wholes.get(start, b"")
                sure = not whole and folded.find(b"\0", start, stop) < 0 and stop - start < LONGEST
                for segment in segments(block[start : stop - 1]):
                    if self._is_new(segment, whole, sure=sure):
                        yield _Found(number, segment, _ahead(block, stop, after), whole)
            number += block.count(b"\n", counted)

    def _spots(self, folded: bytes, wholes: Iterable[int]) -> list[int]:
        """Where in a block lines are that have an anchor, or must be cleaned before they show whether they have."""
        found = [end - 1 for end in self._anchors.ends(folded)]
        if b"\0" not in folded and not wholes:
            return found
        spot = folded.find(b"\0")
        while spot >= 0:
            found.append(spot)
            stop = folded.find(b"\n", spot)
            spot = folded.find(b"\0", stop) if stop >= 0 else -1
        return sorted((*found, *wholes))

    def _is_new(self, segment: bytes, whole: bytes, *, sure: bool) -> bool:
        """Whether ``segment`` has an anchor, which may be ``sure``, and few like it were seen."""
        shape = segment.translate(_SHAPES)
        seen = self._seen.get(shape, ())
        if seen is None or hash(segment) in seen or len(seen) == (MOST_ALIKE if b"0" in shape else 1):
            return False
        texts = () if sure else texts_of(whole or segment)
        if not sure and not any(map(self._anchors.are_in, texts)):
            if not whole and not any(self._alike.are_in(text.translate(_ZEROS)) for text in texts):
                self._remember(shape, None)
            return False
        self._remember(shape, (*seen, hash(segment)))
        return True

    @cached_property
    def _alike(self) -> Anchors:
        """The anchors with zeros for digits: a shape in which none of them is has no line with an anchor."""
        return Anchors(tuple({word.translate(_ZEROS) for word in self._anchors.words}))

    def _remember(self, shape: bytes, seen: tuple[int, ...] | None) -> None:
        if len(self._seen) >= _MOST_SHAPES:
            self._seen.clear()
        self._seen[shape] = seen

    def lines(self, found: _Found) -> list[Line]:
        """The lines in a segment: a text in JSON is of many."""
        wholes = texts_of(found.whole)
        whole = wholes[0] if len(wholes) == 1 else ""
        texts = wholes if len(wholes) > 1 else texts_of(found.segment)
        return [
            Line(found.number, text, islice(chain(texts[place:], self._after(found.ahead)), FOLLOWING), whole)
            for place, text in enumerate(texts, 1)
            if self._anchors.are_in(whole or text)
        ]

    def _after(self, ahead: bytes) -> Iterator[str]:
        for row in ahead.split(b"\n", _LOOK_AHEAD)[:_LOOK_AHEAD]:
            for segment in segments(row):
                yield from texts_of(segment)


def _unix(block: bytes) -> bytes:
    return block.replace(b"\r\n", b"\n") if b"\r" in block else block


def _ahead(block: bytes, start: int, after: bytes) -> bytes:
    """The text from ``start`` on, which may be in the block ``after`` this one."""
    found = block[start : start + _AHEAD]
    if len(found) == _AHEAD:
        return found
    return found + (after if block.endswith(b"\n") else after.partition(b"\n")[2])[:_AHEAD]


def _cut_by_terminal(rows: list[bytes]) -> dict[int, bytes]:
    """The rows that a terminal cut at its width, whole and by their places in a text that was copied from one."""
    lengths = [len(row.rstrip().decode("utf-8", "replace")) for row in rows]
    width = max(lengths)
    full = {place for place, length in enumerate(lengths[:-1]) if length == width}
    begins = [row[:_BEGIN].translate(_SHAPES) for row in rows]
    first = {begins[place] for place in full if place - 1 not in full}
    if any(begins[place + 1] in first for place in full):
        return {}
    if width not in _USUAL and (width < _NARROWEST or len(full) == 1):
        return {}
    found, start = {}, 0
    for place, row in enumerate(rows):
        if place in full:
            end = next(it for it in count(place + 1) if it not in full)
            found[start] = b"".join(rows[place : end + 1])[:LONGEST]
        start += len(row) + 1
    return found
