"""Lists of names in sentences."""

from __future__ import annotations

import pytest

from envsolve.model.prose import sentence_list


@pytest.mark.parametrize(
    ("names", "word", "text"),
    [
        ((), "and", ""),
        (("a",), "and", "a"),
        (("a", "b", "a"), "and", "a and b"),
        (("a", "b", "c"), "or", "a, b or c"),
    ],
)
def test_a_list_in_a_sentence_has_one_word_before_its_last_name(names: tuple[str, ...], word: str, text: str) -> None:
    assert sentence_list(names, word) == text
