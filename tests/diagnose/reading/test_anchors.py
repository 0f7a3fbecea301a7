"""Looking for many words at once, against looking for each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsolve.diagnose.reading import anchors as module
from envsolve.diagnose.reading.anchors import Anchors, Sifted
from envsolve.diagnose.reading.marks import shape

WORDS = st.lists(st.text(alphabet="abc1 .", min_size=2, max_size=5), max_size=8)
LINES = st.lists(
    st.text(alphabet="abcd01 .", max_size=12).map(lambda text: shape(text.encode())), min_size=1, max_size=12
)


def expected(words: list[str], lines: list[bytes]) -> tuple[list[bool], dict[int, set[str]]]:
    """The lines that hold a word without digits, and of the others the words that they hold but for the digits."""
    alike = {word: shape(word.encode()) for word in words}
    sure = [any(alike[word] == word.encode() and alike[word] in line for word in words) for line in lines]
    doubtful = {
        place: {word for word in words if alike[word] != word.encode() and alike[word] in line}
        for place, line in enumerate(lines)
        if not sure[place]
    }
    return sure, {place: found for place, found in doubtful.items() if found}


def compared(found: Sifted) -> tuple[list[bool], dict[int, set[str]]]:
    return found.sure, {place: set(words) for place, words in found.doubtful.items()}


@given(words=WORDS, lines=LINES)
def test_a_short_log_is_searched_word_by_word(words: list[str], lines: list[bytes]) -> None:
    assert compared(Anchors(words).sift(lines)) == expected(words, lines)


@pytest.mark.parametrize("often", [0.01, 0.2, 2.0])
@given(words=WORDS, lines=LINES, others=LINES)
def test_a_long_log_is_searched_for_all_words_at_once(
    often: float, words: list[str], lines: list[bytes], others: list[bytes]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_LONG", 0)
        patch.setattr(module, "_OFTEN", often)
        anchors = Anchors(words)
        assert compared(anchors.sift(lines)) == expected(words, lines)
        assert compared(anchors.sift(others)) == expected(words, others)


def test_a_word_with_digits_counts_only_with_its_own() -> None:
    anchors = Anchors(["error 804", "sm_120"])
    assert anchors.are_in("Error 804: forward compatibility")
    assert not anchors.are_in("Error 803: driver mismatch")


@pytest.mark.parametrize("word", ["", "a", "CUDA", "a\nb", "x" * 300, "\x1b["])
def test_what_cannot_be_found_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="no anchor"):
        Anchors(["cuda", word])


def test_without_words_nothing_is_found() -> None:
    assert Anchors([]).sift([b"a", b""]) == Sifted([False, False], {})
