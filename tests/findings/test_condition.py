"""The language of conditions: what it accepts, what it refuses, and what is known if a condition holds."""

from __future__ import annotations

import pytest

from envsolve.findings.condition import Condition

FACTS = {"status": "FAILED", "number": 3, "nothing": None, "saw": lambda *names: "a" in names, "driver.major": 580}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("status", True),
        ("nothing", False),
        ("status == 'FAILED' and number >= 3", True),
        ("status in ('OTHER', 'FAILED')", True),
        ("status not in ('OTHER', 'FAILED')", False),
        ("nothing or number < 3", False),
        ("not nothing", True),
        ("saw('b', 'a') and not saw('b')", True),
        ("driver.major > 500 and saw('a')", True),
    ],
)
def test_a_condition_holds_or_not(text: str, holds: bool) -> None:
    assert Condition(text).holds(FACTS.__getitem__) is holds


@pytest.mark.parametrize("text", ["nothing < 3", "nothing == 3", "nothing != 3", "nothing in (3,)", "3 > nothing"])
def test_a_comparison_with_something_unknown_is_false(text: str) -> None:
    assert not Condition(text).holds(FACTS.__getitem__)


def test_an_expression_gives_the_value_that_decides() -> None:
    assert Condition("nothing or status").value(FACTS.__getitem__) == "FAILED"
    assert Condition("number and status").value(FACTS.__getitem__) == "FAILED"


@pytest.mark.parametrize(
    "text", ["status.lower()", "[it for it in status]", "lambda: 1", "number + 1", "1 < number < 5", "saw(a=1)", "a b"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="condition"):
        Condition(text)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("a and b == 'x'", {"a", "b"}),
        ("a or b", set()),
        ("(a and b) or a", {"a"}),
        ("not a", set()),
        ("saw('x') and a < b", {"a", "b"}),
        ("a.b.c > 3", {"a", "a.b", "a.b.c"}),
    ],
)
def test_facts_that_follow_from_a_condition(text: str, known: set[str]) -> None:
    assert Condition(text).known == known
