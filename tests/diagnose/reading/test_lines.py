"""Every line of a log, in bounded memory."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Iterator
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsolve.diagnose.reading.chunks import chunks
from envsolve.diagnose.reading.lines import Line, texts_of
from envsolve.diagnose.reading.segments import LONGEST, OVERLAP, blocks
from tests.diagnose.reading.logs import LINES, NEEDLE, counted, log


def lines(stream: BinaryIO) -> Iterator[Line]:
    for number, segment in counted(blocks(chunks(stream))):
        yield from (Line(number, text) for text in texts_of(segment))


def read(raw: bytes) -> list[Line]:
    return list(lines(io.BytesIO(raw)))


def test_lines_are_cleaned_and_numbered() -> None:
    raw = "\ufeffone\r\n\r\n\x1b[31mtwo\x1b[0m\n   \nthree “x”\n".encode()
    assert read(raw) == [Line(1, "one"), Line(3, "two"), Line(5, 'three "x"')]


def test_the_states_of_a_progress_bar_are_lines_of_one_number() -> None:
    assert read(b"0%\r50%\r100%\nRuntimeError: no driver") == [
        Line(1, "0%"), Line(1, "50%"), Line(1, "100%"), Line(2, "RuntimeError: no driver"),
    ]  # fmt: skip


def test_an_error_is_not_overwritten_by_a_progress_bar() -> None:
    assert Line(1, "RuntimeError: no driver") in read(b"RuntimeError: no driver\r50%|###  |\r100%|#####|")


def test_a_text_in_json_is_lines_of_one_number() -> None:
    raw = rb'{"log":"Traceback:\n  File \"x.py\"\nOSError: libcudart.so.11.0\n"}'
    assert [it.text for it in read(raw)] == ["Traceback:", '  File "x.py"', "OSError: libcudart.so.11.0", '"}']
    assert {it.number for it in read(raw)} == {1}


def test_utf_16_after_another_encoding_can_be_read() -> None:
    assert read("first é\n".encode() + "driver too old\n".encode("utf-16-le"))[1].text == "driver too old"


@given(st.binary(max_size=400))
def test_any_bytes_become_lines_of_printable_text(raw: bytes) -> None:
    found = read(raw)
    assert all(it.text.isprintable() and it.text.strip() and len(it.text) <= LONGEST for it in found)
    assert [it.number for it in found] == sorted(it.number for it in found)


@given(
    st.lists(
        st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=125, exclude_characters="&\\"), max_size=20)
    )
)
def test_lines_of_plain_text_are_those_of_the_text(given_lines: list[str]) -> None:
    expected = [Line(number, text) for number, text in enumerate(given_lines, 1) if text.strip()]
    assert read("\n".join(given_lines).encode()) == expected


def test_a_long_line_is_split_into_overlapping_pieces() -> None:
    text = " ".join(map(str, range(100_000)))
    pieces = [it.text for it in read(text.encode())]
    whole = pieces[0]
    for piece in pieces[1:]:
        assert len(piece) <= LONGEST
        shared = next(size for size in range(OVERLAP + 4, -1, -1) if whole.endswith(piece[:size]))
        assert shared >= OVERLAP
        whole += piece[shared:]
    assert whole == text


@pytest.mark.thorough
@pytest.mark.parametrize("kind", LINES)
def test_a_log_of_any_kind_is_read_to_its_end(kind: str) -> None:
    last = None
    for last in lines(log(kind, 1 << 19)):  # noqa: B007 - the last is wanted
        pass
    assert last is not None
    assert last.text == NEEDLE


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["one line of anything", "random", "escapes"])
def test_reading_needs_little_memory(kind: str) -> None:
    tracemalloc.start()
    for _ in lines(log(kind, 4 << 20)):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 << 20
