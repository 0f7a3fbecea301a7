"""Sentences with fields: what is not known is never spoken of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsolve.diagnose.wording import fields_of, filled, told


@pytest.mark.parametrize(
    ("sentence", "fields", "text"),
    [
        ("The driver is {driver}.", {"driver": "550.54.14"}, "The driver is 550.54.14."),
        ("The driver is {driver}.", {}, None),
        ("The driver is {driver}.", {"driver": ""}, None),
        ("{framework|The framework} starts.", {}, "The framework starts."),
        ("{framework|The framework} starts.", {"framework": "JAX"}, "JAX starts."),
        ("Put it into ${CUDA_DIR}.", {}, "Put it into ${CUDA_DIR}."),
        ("{a} and {b}", {"a": "one"}, None),
        ("A field may hold {a}.", {"a": "{b}"}, "A field may hold {b}."),
    ],
)
def test_a_sentence_is_filled_in_or_left_out(sentence: str, fields: dict[str, str], text: str | None) -> None:
    assert filled(sentence, fields) == text


def test_only_sentences_that_can_be_said_are_told() -> None:
    assert list(told(["Always.", "With {x}.", "{y|Otherwise}."], {})) == ["Always.", "Otherwise."]


def test_the_fields_of_sentences_are_known() -> None:
    assert fields_of(["{a} {b|or this}", "${C} {a}"]) == {"a", "b"}


@given(st.text(), st.dictionaries(st.text(alphabet="abc", min_size=1), st.text()))
def test_filling_never_fails(sentence: str, fields: dict[str, str]) -> None:
    text = filled(sentence, fields)
    assert text is None or isinstance(text, str)
