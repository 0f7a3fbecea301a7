"""Many fixed words looked for at once, with the automaton of Aho and Corasick."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ahocorasick_rs import BytesAhoCorasick, Implementation

SHORTEST, LONGEST = 2, 256


class Anchors:
    """Words in lower case, found in bytes in lower case."""

    def __init__(self, words: tuple[str, ...]) -> None:
        for word in words:
            if not SHORTEST <= len(word) <= LONGEST or not word.isprintable() or word != word.lower():
                raise ValueError(f"{word!r} is no anchor: anchors are short, printable and in lower case")
        self.words = words
        self._automaton = BytesAhoCorasick([word.encode() for word in words], implementation=Implementation.DFA)

    def ends(self, text: bytes) -> Iterator[int]:
        """Where words end in ``text``, in order; of words that overlap only one."""
        return (end for _, _, end in self._automaton.find_matches_as_indexes(text))

    def are_in(self, text: str) -> bool:
        """Whether a word is in ``text``, in upper or lower case."""
        return bool(self._automaton.find_matches_as_indexes(text.lower().encode()))

    def places_in(self, text: str) -> set[int]:
        """The places in ``words`` of all that are in ``text``, in upper or lower case."""
        found = self._automaton.find_matches_as_indexes(text.lower().encode(), overlapping=True)
        return {place for place, _, _ in found}


@lru_cache(1)
def anchors(words: tuple[str, ...]) -> Anchors:
    """The automaton for ``words``, made once. Raises ValueError for a word that cannot be found."""
    return Anchors(words)
