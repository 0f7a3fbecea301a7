"""Text from outside cannot control a terminal or start a line."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsolve.boundary.display import escaped, one_line, short_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 3090"),
        ("RED\x1b]0;t\x07", "RED\\u001b]0;t\\u0007"),
        ("RTX \u202e 0903", "RTX \\u202e 0903"),
        ("A\x00B", "A\\u0000B"),
        ("bad\nhint: do it\r\n  now", "bad hint: do it now"),
        ("a\u2028hint: b", "a hint: b"),
        ("lone \ud800", "lone \\ud800"),
        ("café 数", "café 数"),
    ],
)
def test_text_from_outside_stays_on_one_line_without_control_characters(text: str, shown: str) -> None:
    assert one_line(text) == shown


@given(st.text(max_size=20), st.integers(0, 400))
def test_a_short_line_stays_within_the_limit(text: str, times: int) -> None:
    line = short_line(text * times)
    assert line.isprintable()
    assert len(line) <= 256


def test_a_cut_text_is_marked() -> None:
    assert short_line("a" * 257) == "a" * 253 + "..."
    assert short_line("a" * 256) == "a" * 256


def test_text_of_several_lines_keeps_its_lines() -> None:
    assert escaped("a\r\n\tb\x1b]0;t\x07\n") == "a\n\tb\\u001b]0;t\\u0007\n"


def test_colours_remain() -> None:
    assert escaped("\x1b[31merror:\x1b[0m \x1b[2J\u202e") == "\x1b[31merror:\x1b[0m \\u001b[2J\\u202e"


@given(st.text())
def test_a_document_of_json_stays_the_same_document(text: str) -> None:
    assert json.loads(escaped(json.dumps([text], ensure_ascii=False))) == [text]


@given(st.text())
def test_every_character_that_remains_is_printable(text: str) -> None:
    assert one_line(text).isprintable()
    assert re.sub(r"\x1b\[[0-9;]*m|[\n\t]", "", escaped(text)).isprintable()
