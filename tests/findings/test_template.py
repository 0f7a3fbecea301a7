"""Sentences with fields: unknown values are never mentioned, and a field that can be empty is refused."""

from __future__ import annotations

import pytest

from envsolve.findings.condition import Condition
from envsolve.findings.template import Sentence, filled


@pytest.mark.parametrize(
    ("text", "facts", "expected"),
    [
        ("The driver is {driver}.", {"driver": "550.54.14"}, "The driver is 550.54.14."),
        ("{framework|The framework} starts.", {}, "The framework starts."),
        ("{framework|The framework} starts.", {"framework": "JAX"}, "JAX starts."),
        ("R{driver.branch|580} is installed.", {"driver.branch": 535}, "R535 is installed."),
        ("It failed<< with {code}>>.", {}, "It failed."),
        ("It failed<< with {code}>>.", {"code": "3"}, "It failed with 3."),
        ("Put it into ${CUDA_DIR}.", {}, "Put it into ${CUDA_DIR}."),
        ("A field may hold {a}.", {"a": "{b}"}, "A field may hold {b}."),
        ("Installed: {names}.", {"names": ("a", "b", "c", "a")}, "Installed: a, b and c."),
    ],
)
def test_a_sentence_is_filled_in(text: str, facts: dict[str, object], expected: str) -> None:
    assert filled(text, facts.get) == expected


@pytest.mark.parametrize("text", ["The driver is {driver}.", "{driver} << of {gpu}>>"])
def test_a_field_that_can_be_empty_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="driver can be empty"):
        Sentence(text)
    with pytest.raises(ValueError, match="driver can be empty"):
        Sentence(text, Condition("driver or gpu"))
    assert Sentence(text, Condition("driver and gpu")).names == {"driver", "gpu"}
    assert Sentence(text, known=frozenset({"driver"})).text == text
