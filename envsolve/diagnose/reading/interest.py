"""The lines of a log that matter: those with a word in them that a diagnosis looks for, each kind of line a few times.

A training log is a hundred million bytes of a few hundred kinds of line. What is alike but for digits has one *shape*;
shapes are made of whole blocks in one step, and only those never met before are decoded, cleaned and searched. What is
remembered is bounded: of a log that never repeats itself the oldest shapes are forgotten, and may be told again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, compress, islice, pairwise, repeat
from typing import BinaryIO, NamedTuple

from envsolve.diagnose.reading.anchors import Anchors
from envsolve.diagnose.reading.blocks import Block, blocks
from envsolve.diagnose.reading.chunks import chunks
from envsolve.diagnose.reading.lines import Line, Texts
from envsolve.diagnose.reading.marks import is_binary, marks, readable, shape
from envsolve.diagnose.reading.window import Window

MOST_ALIKE = 3
"""Lines of one shape that are told: in their digits may be the error, the version or only the time."""

_ZERO = ord("0")
_MANY = 1 << 16
_MOST_WATCHED = 1 << 13
_MOST_REMEMBERED = 4 << 20
"""Bytes of shapes that do not matter, with what Python needs to remember them."""
_PER_SHAPE = 150


def interesting(stream: BinaryIO, anchors: Iterable[str]) -> Iterator[Line]:
    """The lines in ``stream`` that hold one of ``anchors``, upper and lower case being alike, in order.

    Each comes with the two lines after it. Of lines that differ only in digits and case, the first three that differ
    are told; of lines without digits, the first. Raises ValueError for an anchor that is not in lower case or shorter
    than two characters. The more ordinary lines hold an anchor, the longer this takes.
    """
    log = _Log(Anchors(anchors))
    for block, after in pairwise(chain(log.learned(blocks(chunks(stream))), (None,))):
        if block is not None:
            yield from log.lines(block, after)


class _Judged(NamedTuple):
    """Of shapes that are new, those whose lines surely matter, and those whose lines do not."""

    sure: set[bytes]
    others: list[bytes]


class _Log:
    """What is remembered of one log.

    ``_settled`` are shapes of which nothing is told any more, ``_watched`` those that matter with the number of lines
    told, ``_doubtful`` the anchors that lines of some of these may hold, and ``_told`` lines by their hashes.
    """

    def __init__(self, anchors: Anchors) -> None:
        self._anchors = anchors
        self._texts = Texts()
        self._settled = _Settled()
        self._watched: dict[bytes, int] = {}
        self._doubtful: dict[bytes, tuple[str, ...]] = {}
        self._told = set[int]()

    def learned(self, found: Iterable[Block]) -> Iterator[Block]:
        """The blocks of the log, each learned from first."""
        for block in found:
            self._texts.learn(block)
            yield block

    def lines(self, block: Block, after: Block | None) -> list[Line]:
        """The lines of ``block`` that matter; ``after`` is the one that follows."""
        met = self._settled.others(block.shapes)
        judged = self._judged(block, list(met.difference(self._watched)))
        wanted = met.difference(judged.others)
        if block.is_plain:
            wanted -= self._idle(block, wanted)
        places = self._places(block, wanted) if wanted else []
        if not places:
            return []
        window = Window(block, after, self._texts, len(places))
        shapes = [block.shapes[place] for place in places]
        if window.is_easy and len(set(shapes)) == len(shapes):
            lines = self._told_once(shapes, places, window, judged.sure)
        else:
            self._watched.update(dict.fromkeys(judged.sure, 0))
            told = map(self._told_again, shapes, places, repeat(window))
            lines = [line for several in told for line in several]
        self._forget()
        return lines

    def _judged(self, block: Block, fresh: Sequence[bytes]) -> _Judged:
        """Whether lines of the shapes ``fresh`` matter, by the first of each in ``block``."""
        if not fresh:
            return _Judged(set(), [])
        found = self._anchors.sift(fresh if block.is_plain else self._cleaned(block, fresh))
        sure = set(compress(fresh, found.sure))
        doubtful = {fresh[place]: words for place, words in found.doubtful.items()}
        self._doubtful.update(doubtful)
        self._watched.update(dict.fromkeys(doubtful, 0))
        if len(sure) + len(doubtful) == len(fresh):
            return _Judged(sure, [])
        others = [it for it in fresh if it not in sure and it not in doubtful]
        self._settled.add(others)
        return _Judged(sure, others)

    def _cleaned(self, block: Block, fresh: Sequence[bytes]) -> list[bytes]:
        """The shape of each of ``fresh`` after cleaning; amid binary data no line is cleaned, only what can be read."""
        shaped = b"\n".join(fresh)
        cleaned = readable(shaped).split(b"\n")
        found = marks(shaped)
        if len(shaped) > _MANY and is_binary(shaped, found):
            return cleaned
        others = [
            place for place, kinds in enumerate(found.split(b"\n")) if kinds and not is_binary(fresh[place], kinds)
        ]
        if others:
            first = dict(zip(reversed(block.shapes), reversed(block.segments), strict=True))
            texts = self._texts.of_each([first[fresh[place]] for place in others])
            for place, found_there in zip(others, texts, strict=True):
                cleaned[place] = shape("\0".join(found_there).encode())
        return cleaned

    def _idle(self, block: Block, wanted: set[bytes]) -> set[bytes]:
        """Those of the shapes ``wanted`` that are in doubt, and none of whose words is in ``block``."""
        in_doubt = [it for it in wanted if it in self._doubtful] if self._doubtful else []
        if not in_doubt:
            return set()
        text = block.raw.lower().replace(b"\t", b" ")
        words = {word for it in in_doubt for word in self._doubtful[it]}
        absent = {word for word in words if word.encode() not in text}
        return {it for it in in_doubt if absent.issuperset(self._doubtful[it])}

    def _places(self, block: Block, wanted: set[bytes]) -> list[int]:
        """Where lines of the shapes ``wanted`` stand that were not looked at before, each once."""
        places = list(compress(range(len(block.shapes)), map(wanted.__contains__, block.shapes)))
        segments = [block.segments[place] for place in places]
        if len(wanted) < len(places):
            places = sorted(dict(zip(reversed(segments), reversed(places), strict=True)).values())
            segments = [block.segments[place] for place in places]
        hashes = list(map(hash, segments))
        new = [place for place, known in zip(places, hashes, strict=True) if known not in self._told]
        self._told.update(hashes)
        return new

    def _told_once(self, shapes: list[bytes], places: list[int], window: Window, sure: set[bytes]) -> list[Line]:
        """The lines at ``places``, each of another shape. Those of the shapes ``sure`` are told for the first time."""
        self._watched.update(dict.fromkeys(sure, 1))
        self._settle([it for it in sure if _ZERO not in it])
        lines = window.lines(places)
        left = [index for index, shaped in enumerate(shapes) if shaped not in sure]
        told = [self._told_again(shapes[index], places[index], window) for index in left]
        for index, instead in zip(reversed(left), reversed(told), strict=True):
            lines[index : index + 1] = instead
        return lines

    def _told_again(self, shaped: bytes, place: int, window: Window) -> Sequence[Line]:
        """The lines at ``place``, less those that are not among the first of their shape or hold no anchor."""
        before = self._watched.get(shaped)
        lines = self._lines_at(shaped, place, window) if before is not None else ()
        if before is None or not lines:
            return ()
        if before + 1 < MOST_ALIKE and _ZERO in shaped:
            self._watched[shaped] = before + 1
        else:
            self._settle((shaped,))
        return lines

    def _settle(self, shapes: Sequence[bytes]) -> None:
        """Tell nothing more of ``shapes``, which are watched."""
        for shaped in shapes:
            del self._watched[shaped]
            self._doubtful.pop(shaped, None)
        self._settled.add(shapes)

    def _lines_at(self, shaped: bytes, place: int, window: Window) -> list[Line]:
        """The lines at ``place`` that hold an anchor: a text in JSON is of many lines, and digits may be others."""
        texts = window.texts(place)
        if len(texts) > 1:
            hold = list(map(self._anchors.are_in, texts))
        else:
            words = self._doubtful.get(shaped)
            hold = [words is None or any(map(text.lower().__contains__, words)) for text in texts]
        return [window.line(place, part) for part, holds in enumerate(hold) if holds]

    def _forget(self) -> None:
        """Let go of the oldest that is remembered, where it is too much."""
        if len(self._told) > _MOST_WATCHED:
            self._told.clear()
        if len(self._watched) > _MOST_WATCHED:
            self._watched = dict(islice(self._watched.items(), len(self._watched) - _MOST_WATCHED // 2, None))
            self._doubtful = {it: words for it, words in self._doubtful.items() if it in self._watched}


class _Settled:
    """Shapes of which no line is wanted any more: a bounded number, those that were added last."""

    def __init__(self) -> None:
        self._young = set[bytes]()
        self._old = set[bytes]()
        self._size = 0

    def others(self, shapes: Iterable[bytes]) -> set[bytes]:
        """Those of ``shapes`` that are not settled."""
        return set(shapes) - self._young - self._old

    def add(self, shapes: Sequence[bytes]) -> None:
        """Settle ``shapes``."""
        self._young.update(shapes)
        self._size += sum(map(len, shapes)) + _PER_SHAPE * len(shapes)
        if self._size > _MOST_REMEMBERED:
            self._young, self._old = set(), self._young
            self._size = 0
