"""Which lines hold one of some hundred words, faster than by looking for each of the words.

The first lines of a log are searched for one word after the other. For a long log there is a regular expression that
stops only at letters which are rare in that very log, of which every word has one, and compares words there: 10 to 50
ns a byte, where the words one by one take hundreds. Words that many lines have are looked for first, each alone. Digits
are alike here, as they are in a shape; whoever looks for a word with digits in it compares the line itself.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from envsolve.diagnose.reading.blocks import OVERLAP
from envsolve.diagnose.reading.marks import shape

_LONG = 1 << 17
"""Bytes after which compiling the expression costs less than it saves."""
_SAMPLE = 1 << 14
_FIRST = 64
_OFTEN = 0.2
_SHORTEST = 2
_HERE = b"\x01"
"""Is in no line that is searched. To look for its number in bytes is much faster than to look for bytes."""
_END = b"\x02\n"
"""After a line that is searched: what goes on to its end goes on a little."""
_NEVER = b"(?!)"


class Sifted(NamedTuple):
    """Of some lines, whether each surely holds a word, and which may hold one: the words with digits they may hold."""

    sure: list[bool]
    doubtful: dict[int, tuple[str, ...]]


class Anchors:
    """Words to look for."""

    def __init__(self, words: Iterable[str]) -> None:
        """Raises ValueError for what cannot be looked for."""
        self._words = tuple(dict.fromkeys(words))
        self._sure: list[bytes] = []
        self._doubtful: dict[bytes, tuple[str, ...]] = {}
        for word in self._words:
            known = _sound(word)
            alike = shape(known)
            if alike == known:
                self._sure.append(known)
            else:
                self._doubtful[alike] = (*self._doubtful.get(alike, ()), word)
        self._searched = 0
        self._search: _Search | None = None

    def are_in(self, line: str) -> bool:
        """Whether a word is in ``line``, with its digits."""
        return any(map(line.lower().__contains__, self._words))

    def sift(self, lines: Sequence[bytes]) -> Sifted:
        """Which of ``lines``, shapes of printable text, hold a word. Where one surely does, no doubtful one counts."""
        self._searched += sum(map(len, lines))
        if self._search is None and self._searched >= _LONG:
            self._search = _Search(self._sure, self._doubtful, lines)
        return self._one_by_one(lines) if self._search is None else self._search.sift(lines)

    def _one_by_one(self, lines: Sequence[bytes]) -> Sifted:
        text = b"\n".join(lines)
        present = [word for word in self._sure if word in text]
        perhaps = [alike for alike in self._doubtful if alike in text]
        sure = [any(line.find(word) >= 0 for word in present) for line in lines]
        doubtful: dict[int, tuple[str, ...]] = {}
        for place, line in enumerate(lines) if perhaps else ():
            found = () if sure[place] else tuple(alike for alike in perhaps if line.find(alike) >= 0)
            if found:
                doubtful[place] = tuple(word for alike in found for word in self._doubtful[alike])
        return Sifted(sure, doubtful)


class _Word(NamedTuple):
    """A word, and the place in it of the letter by which it is found."""

    text: bytes
    place: int

    @property
    def rest(self) -> tuple[bytes, bytes]:
        """What follows the letter, and an expression that looks from its end back on what stands before it."""
        return self.text[self.place + 1 :], b"(?<=" + re.escape(self.text) + b")" if self.place else b""


class _Search:
    """All words at once, for a log that has ``lines`` in it."""

    def __init__(
        self, sure: Sequence[bytes], doubtful: Mapping[bytes, tuple[str, ...]], lines: Sequence[bytes]
    ) -> None:
        shortest = list(_needed(sure))
        self._frequent = list(_frequent(shortest, lines[:_FIRST]))
        sample = b"\n".join(lines)[:_SAMPLE]
        counts = Counter(sample)
        letters = _rare_letters([*shortest, *doubtful], counts)
        surely, perhaps = (_by_letter(words, letters, sample) for words in (shortest, doubtful))
        often_first = sorted({*surely, *perhaps}, key=lambda letter: (-counts[letter], letter))
        ways = (_at(letter, surely.get(letter, ()), perhaps.get(letter, ())) for letter in often_first)
        self._expression = re.compile(b"|".join(ways) or _NEVER)
        self._doubtful = doubtful
        self._at = perhaps

    def sift(self, lines: Sequence[bytes]) -> Sifted:
        """As of Anchors."""
        sure = [True] * len(lines)
        left: Sequence[int] = range(len(lines))
        for word in self._frequent:
            left = [place for place in left if lines[place].find(word) < 0]
        doubtful: dict[int, tuple[str, ...]] = {}
        rest = lines if len(left) == len(lines) else [lines[place] for place in left]
        marked = self._expression.sub(_HERE, _END.join(rest) + _END)
        for place, part in zip(left, marked.split(b"\n"), strict=False):
            if part.endswith(_HERE):
                continue
            sure[place] = False
            if _HERE[0] in part:
                doubtful[place] = tuple(self._words_at(lines[place], part))
        return Sifted(sure, doubtful)

    def _words_at(self, line: bytes, marked: bytes) -> Iterator[str]:
        """The doubtful words in ``line``: each has its letter replaced in ``marked``."""
        at = marked.find(_HERE)
        while at >= 0:
            for word in self._at[line[at]]:
                if line.startswith(word.text, at - word.place):
                    yield from self._doubtful[word.text]
            at = marked.find(_HERE, at + 1)


def _sound(word: str) -> bytes:
    known = word.encode()
    if not _SHORTEST <= len(known) <= OVERLAP or not word.isprintable() or word != word.lower():
        raise ValueError(f"{word!r} is no anchor: a short text in lower case is, of at least two characters")
    return known


def _needed(words: Iterable[bytes]) -> Iterator[bytes]:
    """``words`` without those in which another one is: who finds that has found the line."""
    found: list[bytes] = []
    for word in sorted(words, key=len):
        if not any(word.find(shorter) >= 0 for shorter in found):
            found.append(word)
            yield word


def _frequent(words: Sequence[bytes], lines: Sequence[bytes]) -> Iterator[bytes]:
    """Those few of ``words`` that many of ``lines`` hold, if any."""
    enough = len(lines) * _OFTEN
    while lines:
        counts = Counter(word for line in lines for word in words if line.find(word) >= 0)
        word, count = max(counts.items(), key=itemgetter(1), default=(b"", 0))
        if count < enough:
            return
        yield word
        lines = [line for line in lines if line.find(word) < 0]


def _rare_letters(words: Iterable[bytes], counts: Counter[int]) -> frozenset[int]:
    """Few letters, rare ones, one of which is in each of ``words``."""
    within = {frozenset(word) for word in words}
    letters = frozenset[int]().union(*within)
    for letter in sorted(letters, key=lambda it: (-counts[it], it)):
        if all(found & letters != {letter} for found in within):
            letters -= {letter}
    return letters


def _by_letter(words: Iterable[bytes], letters: Collection[int], sample: bytes) -> dict[int, list[_Word]]:
    """``words`` by one of ``letters`` in each, the one that with the next letter is the rarest in ``sample``."""
    pairs = Counter(pairwise(sample))
    singles = Counter(sample)
    found: defaultdict[int, list[_Word]] = defaultdict(list)

    def frequency(word: bytes, place: int) -> tuple[int, int]:
        next_is = pairs[word[place], word[place + 1]] if place + 1 < len(word) else singles[word[place]]
        return next_is, singles[word[place]]

    for word in words:
        places = [place for place, letter in enumerate(word) if letter in letters]
        place = min(places, key=lambda place: frequency(word, place))
        found[word[place]].append(_Word(word, place))
    return dict(found)


def _at(letter: int, sure: Sequence[_Word], doubtful: Sequence[_Word]) -> bytes:
    """An expression for the rest of a line from a letter of a word on, and for that letter alone of a doubtful word."""
    ways = [_any([word.rest for word in sure]) + rb"[^\n]*"] if sure else []
    ways += [b"(?=" + _any([word.rest for word in doubtful]) + b")"] if doubtful else []
    return re.escape(bytes((letter,))) + b"(?:" + b"|".join(ways) + b")"


def _any(words: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Any of ``words``, each with what is to be looked at after it, such that every letter is compared once."""
    if len(words) == 1:
        return re.escape(words[0][0]) + words[0][1]
    by_next: defaultdict[bytes, list[tuple[bytes, bytes]]] = defaultdict(list)
    for rest, before in words:
        by_next[rest[:1]].append((rest[1:], before))
    ends = [before for _, before in by_next.pop(b"", [])]
    ways = [re.escape(letter) + _any(rests) for letter, rests in by_next.items()]
    return b"(?:" + b"|".join([*ways, *ends]) + b")"
