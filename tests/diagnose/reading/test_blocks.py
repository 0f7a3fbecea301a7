"""Cutting a log into blocks and segments, against doing it in the obvious way."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from envsolve.diagnose.reading.blocks import OVERLAP, Block, blocks
from envsolve.diagnose.reading.marks import shape

LONGEST = 1024
PARTS = st.sampled_from(
    [b"\n", b"\r", b"\r\n", b"\n" * 40, b"a", b"Ab 12", "é„汉😀".encode(), b"\x1b[31m", b"x" * 700, b"0123456789" * 300]
)
TEXTS = st.lists(PARTS, max_size=30).map(b"".join)


def cut(text: bytes, sizes: list[int]) -> list[bytes]:
    """``text`` in chunks of ``sizes``, over and over."""
    found = []
    while text:
        for size in sizes:
            found.append(text[:size])
            text = text[size:]
    return list(filter(None, found))


def numbered(text: bytes) -> list[tuple[int, bytes]]:
    """The segments of a text in which none is long, with their numbers, as anybody would do it."""
    lines = enumerate(text.replace(b"\r\n", b"\n").split(b"\n"), 1)
    return [(number, segment) for number, line in lines for segment in line.split(b"\r") if segment]


def joined(pieces: list[bytes]) -> bytes:
    """What was cut into overlapping pieces."""
    whole = b""
    for piece in pieces:
        shared = next(
            it for it in range(min(len(whole), len(piece), OVERLAP + 3), -1, -1) if whole.endswith(piece[:it])
        )
        whole += piece[shared:]
    return whole


@given(
    TEXTS.filter(lambda text: all(len(it) <= LONGEST for _, it in numbered(text))),
    st.lists(st.integers(1, 3000), min_size=1),
)
@example(b"\na\ra\n", [5])
def test_short_lines_are_what_stands_between_breaks(text: bytes, sizes: list[int]) -> None:
    plain = text.replace(b"\x1b[31m", b"")
    found = [
        it for block in blocks(cut(plain, sizes), LONGEST) for it in zip(block.numbers, block.segments, strict=True)
    ]
    assert found == numbered(plain)


@given(TEXTS, st.lists(st.integers(1, 3000), min_size=1))
@example(b"x" * 5000, [1500])
@example("汉".encode() * 3000, [1500])
def test_a_long_line_is_in_pieces_that_overlap(text: bytes, sizes: list[int]) -> None:
    plain = text.replace(b"\x1b[31m", b"")
    pieces: dict[int, list[bytes]] = {}
    for block in blocks(cut(plain, sizes), LONGEST):
        for number, segment in zip(block.numbers, block.segments, strict=True):
            assert 0 < len(segment) <= LONGEST
            segment.decode()  # characters are not cut
            pieces.setdefault(number, []).append(segment)
    lines = {
        number: line for number, line in enumerate(plain.replace(b"\r\n", b"\n").split(b"\n"), 1) if line.strip(b"\r")
    }
    assert pieces.keys() == lines.keys()
    for number, line in lines.items():
        if b"\r" not in line:
            assert len(joined(pieces[number])) <= len(line)
            assert all(piece in line for piece in pieces[number])
            assert line.startswith(pieces[number][0])
            assert line.endswith(pieces[number][-1])


def test_the_pieces_of_a_long_line_cover_it() -> None:
    line = "".join(f"{number:05},é" for number in range(20_000)).encode()
    pieces = [piece for block in blocks(cut(line, [50_000]), 4096) for piece in block.segments]
    assert joined(pieces) == line
    assert all(len(piece) > OVERLAP for piece in pieces[:-1])


@given(TEXTS)
def test_shapes_are_of_the_segments(text: bytes) -> None:
    block = Block(1, text, LONGEST)
    assert block.shapes == list(map(shape, block.segments))
    assert len(block.numbers) == len(block.segments)
    assert list(block.numbers) == sorted(block.numbers)


@pytest.mark.parametrize("breaks", [b"\n", b"\r\n", b"\n\n\n"])
def test_numbers_count_line_feeds(breaks: bytes) -> None:
    block = Block(7, breaks.join([b"a", b"b", b"c"]))
    step = breaks.count(b"\n")
    assert list(block.numbers) == [7, 7 + step, 7 + 2 * step]


def test_colours_are_taken_out_of_a_block_where_they_are_few() -> None:
    assert Block(1, b"\x1b[1;31mcuda\x1b[0m error").segments == [b"cuda error"]
    assert Block(1, b"\x1b[" * 100).segments == [b"\x1b[" * 100]
