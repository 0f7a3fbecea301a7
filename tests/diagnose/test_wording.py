"""Sentences with fields: what is not known is never spoken of."""

from __future__ import annotations

import pytest

from envsolve.diagnose.wording import filled, told


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
