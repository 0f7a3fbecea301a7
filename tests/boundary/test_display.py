"""Text from outside cannot steer a terminal or forge a line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsolve.boundary.display import escaped, one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 3090"),
        ("RED\x1b]0;t\x07", "RED\\x1b]0;t\\x07"),
        ("RTX \u202e 0903", "RTX \\u202e 0903"),
        ("A\x00B", "A\\x00B"),
        ("bad\nhint: do it\r\n  now", "bad hint: do it now"),
        ("a\u2028hint: b", "a hint: b"),
        ("lone \ud800", "lone \\ud800"),
        ("café 数", "café 数"),
    ],
)
def test_text_from_outside_stays_on_one_line_and_steers_nothing(text: str, shown: str) -> None:
    assert one_line(text) == shown


def test_text_of_several_lines_keeps_its_lines() -> None:
    assert escaped("a\n\tb\x1b[31m\r\n") == "a\n\tb\\x1b[31m\\r\n"


@given(st.text())
def test_every_character_that_remains_is_printable(text: str) -> None:
    assert one_line(text).isprintable()
    assert escaped(text).replace("\n", "").replace("\t", "").isprintable()
