"""The lines of a log that matter: those with a word in them that a diagnosis looks for, each kind of line a few times.

A training log is a hundred million bytes of a few hundred kinds of line. What is alike but for digits has one *shape*,
and only lines of shapes that may matter are cleaned and searched. What is remembered is bounded: of a log that never
repeats itself shapes are forgotten, and may be told again.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import BinaryIO

from envsolve.diagnose.reading.chunks import chunks
from envsolve.diagnose.reading.lines import Line, Texts
from envsolve.diagnose.reading.segments import OVERLAP, blocks, segments

MOST_ALIKE = 3
"""Lines of one shape that are told: in their digits may be the error, the version or only the time."""
FOLLOWING = 2
"""Lines told with one that matters, as a message may be wrapped."""
_LOOK_AHEAD = 4
"""Segments in which these are looked for."""

_SHAPES = bytes.maketrans(b"0123456789\t", b"0000000000 ").lower()
_ZEROS = bytes.maketrans(b"0123456789", b"0000000000")
_MOST_TOLD = 1 << 13
_MOST_DULL = 4 << 20
"""Bytes of shapes that do not matter, with what Python needs to remember them."""
_PER_SHAPE = 150
_FEW = 500
"""Lines for which it is quicker to look for each word than to compile an expression."""
_SHORTEST = 2


def interesting(stream: BinaryIO, anchors: Iterable[str]) -> Iterator[Line]:
    """The lines in ``stream`` that hold one of ``anchors``, upper and lower case being alike, in order.

    Each comes with the two lines after it. Of lines that differ only in digits and case, the first three that differ
    are told; of lines without digits, the first. Raises ValueError for an anchor that is not in lower case or shorter
    than two characters. The more lines are unlike all others, the longer this takes.
    """
    log = _Log(anchors)
    found = segments(log.texts.learned(blocks(chunks(stream))))
    window = deque(islice(found, 1 + _LOOK_AHEAD))
    while window:
        yield from log.lines(window)
        window.popleft()
        window.extend(islice(found, 1))


class _Log:
    """What is remembered of one log: shapes whose lines are dull, and of others the segments told, by their hashes."""

    def __init__(self, anchors: Iterable[str]) -> None:
        words = tuple(map(_sound, dict.fromkeys(anchors)))
        self._words = _Words(words)
        self._alike = _Words({word.translate(_ZEROS) for word in words})
        self.texts = Texts()
        self._dull = set[bytes]()
        self._size = 0
        self._told: dict[bytes, list[int]] = {}

    def lines(self, window: deque[tuple[int, bytes]]) -> Iterable[Line]:
        """The lines in the first segment of ``window`` that are to be told: a text in JSON is of many lines."""
        number, segment = window[0]
        shape = segment.translate(_SHAPES)
        if shape in self._dull:
            return ()
        told = self._told.get(shape)
        if told is None:
            told = self._judged(shape, self.texts.of(segment))
        if told is None or hash(segment) in told or len(told) == (MOST_ALIKE if b"0" in shape else 1):
            return ()
        texts = self.texts.of(segment)
        places = [place for place, text in enumerate(texts) if self._words.are_in(text.lower().encode())]
        if not places:
            return ()
        told.append(hash(segment))
        after = self._after(window)
        return [Line(number, texts[place], (*texts[place + 1 :], *after)[:FOLLOWING]) for place in places]

    def _judged(self, shape: bytes, texts: Iterable[str]) -> list[int] | None:
        """What is told of a new shape, nothing so far; None where no line of it can hold an anchor."""
        if any(self._alike.are_in(text.lower().encode().translate(_ZEROS)) for text in texts):
            if len(self._told) >= _MOST_TOLD:
                self._told.clear()
            return self._told.setdefault(shape, [])
        self._size += len(shape) + _PER_SHAPE
        if self._size > _MOST_DULL:
            self._dull, self._size = set(), 0
        self._dull.add(shape)
        return None

    def _after(self, window: deque[tuple[int, bytes]]) -> list[str]:
        found: list[str] = []
        for number, segment in islice(window, 1, None):
            if number != window[0][0]:
                found += self.texts.of(segment)
            if len(found) >= FOLLOWING:
                break
        return found


class _Words:
    """Words to look for, all at once in a log that is long."""

    def __init__(self, words: Iterable[bytes]) -> None:
        self._words = tuple(words)
        self._searched = 0

    def are_in(self, line: bytes) -> bool:
        """Whether one of the words is in ``line``."""
        if self._searched < _FEW:
            self._searched += 1
            return any(map(line.__contains__, self._words))
        return self._expression.search(line) is not None

    @cached_property
    def _expression(self) -> re.Pattern[bytes]:
        return re.compile(_any_of(self._words) if self._words else b"(?!)")


def _any_of(words: Iterable[bytes]) -> bytes:
    """An expression for any of ``words`` in which every letter is compared once."""
    by_letter: defaultdict[bytes, list[bytes]] = defaultdict(list)
    for word in words:
        if not word:
            return b""
        by_letter[word[:1]].append(word[1:])
    ways = [re.escape(letter) + _any_of(rests) for letter, rests in by_letter.items()]
    return ways[0] if len(ways) == 1 else b"(?:" + b"|".join(ways) + b")"


def _sound(word: str) -> bytes:
    known = word.encode()
    if not _SHORTEST <= len(known) <= OVERLAP or not word.isprintable() or word != word.lower():
        raise ValueError(f"{word!r} is no anchor: a short text in lower case is, of at least two characters")
    return known
