"""The passes over many lines do to each line what they do to it alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsolve.diagnose.reading.marks import is_binary, is_plain, marks, readable, shape

LINES = st.lists(st.binary(max_size=40).map(lambda it: it.translate(None, b"\r\n")), min_size=1)


@pytest.mark.parametrize("passed", [shape, marks, readable])
@given(lines=LINES)
def test_a_pass_over_lines_is_a_pass_over_each(passed: object, lines: list[bytes]) -> None:
    assert callable(passed)
    assert passed(b"\n".join(lines)).split(b"\n") == list(map(passed, lines))


@given(st.binary(max_size=60).map(lambda it: it.translate(None, b"\r\n")))
def test_a_line_and_its_shape_are_marked_alike(line: bytes) -> None:
    assert marks(shape(line)) == marks(line)
    assert readable(shape(line)) == shape(readable(line))


def test_a_shape_is_what_lines_share_that_differ_in_numbers_and_case() -> None:
    assert shape(b"Step 12:\tLoss 0.5") == shape(b"step 99: loss 1.7") == b"step 00: loss 0.0"


@pytest.mark.parametrize("text", [b"", b"plain\ttext\n", b"C:\\env & more", b"a;b", b"~!@#$%^*()'\"`"])
def test_ordinary_text_is_plain(text: bytes) -> None:
    assert is_plain(text)


@pytest.mark.parametrize(
    "text", [b"\r", b"\x1b[1m", b"caf\xc3\xa9", b"&lt;", b"a\\nb", b"\0", b"\x7f", b"a" * 5000 + b"\x80"]
)
def test_what_is_to_be_decoded_or_cleaned_is_not_plain(text: bytes) -> None:
    assert not is_plain(text)


@pytest.mark.parametrize(
    ("line", "binary"),
    [
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0", True),
        (b"c\0u\0d\0a\0", True),
        ("ошибка\x03".encode(), False),
        (b"\x1b[31m\x1b[1m\x07\x08", False),
        (b"one \x01 stray \x02 pair in a line that is otherwise a line of text of ordinary length", False),
    ],
)
def test_a_line_full_of_control_characters_is_binary(line: bytes, binary: bool) -> None:
    assert is_binary(line, marks(line)) is binary


def test_what_can_be_read_in_binary_data_is_kept() -> None:
    assert readable(b"\x01c\0u\0d\0n\0n\0\xff\x02") == b" cudnn  "
