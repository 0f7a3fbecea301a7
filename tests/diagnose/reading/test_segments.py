"""Splitting a log into segments, compared with the obvious way."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from envsolve.diagnose.reading.segments import LONGEST, OVERLAP, blocks
from tests.diagnose.reading.logs import counted

PARTS = st.sampled_from(
    [
        b"\n",
        b"\r",
        b"\r\n",
        b"\n" * 40,
        b"a",
        b"Ab 12",
        "é„汉😀".encode(),
        b"\x1b[31m",
        b"x" * 2800,
        b"0123456789" * 1200,
    ]
)
TEXTS = st.lists(PARTS, max_size=30).map(b"".join)


def cut(text: bytes, sizes: list[int]) -> list[bytes]:
    """``text`` in chunks of ``sizes``, which repeat."""
    found = []
    while text:
        for size in sizes:
            found.append(text[:size])
            text = text[size:]
    return list(filter(None, found))


def numbered(text: bytes) -> list[tuple[int, bytes]]:
    """The segments of a text without long lines, with their numbers, computed in the obvious way."""
    lines = enumerate(text.replace(b"\r\n", b"\n").split(b"\n"), 1)
    return [(number, segment) for number, line in lines for segment in line.split(b"\r") if segment]


def joined(pieces: list[bytes]) -> bytes:
    """The line that was split into overlapping pieces."""
    whole = b""
    for piece in pieces:
        shared = next(
            it for it in range(min(len(whole), len(piece), OVERLAP + 3), -1, -1) if whole.endswith(piece[:it])
        )
        whole += piece[shared:]
    return whole


@pytest.mark.thorough
@given(
    TEXTS.filter(lambda text: all(len(it) <= LONGEST for _, it in numbered(text))),
    st.lists(st.integers(1, 12_000), min_size=1),
)
@example(b"\na\ra\n", [5])
def test_short_lines_are_what_stands_between_breaks(text: bytes, sizes: list[int]) -> None:
    assert list(counted(blocks(cut(text, sizes)))) == numbered(text)


@given(TEXTS, st.lists(st.integers(1, 12_000), min_size=1))
@example(b"x" * 20_000, [6000])
@example("汉".encode() * 12_000, [6000])
def test_a_long_line_is_in_pieces_that_overlap(text: bytes, sizes: list[int]) -> None:
    pieces: dict[int, list[bytes]] = {}
    for number, segment in counted(blocks(cut(text, sizes))):
        assert 0 < len(segment) <= LONGEST
        segment.decode()  # characters are not cut
        pieces.setdefault(number, []).append(segment)
    lines = {
        number: line for number, line in enumerate(text.replace(b"\r\n", b"\n").split(b"\n"), 1) if line.strip(b"\r")
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
    pieces = [piece for _, piece in counted(blocks(cut(line, [50_000])))]
    assert joined(pieces) == line
    assert all(len(piece) > OVERLAP for piece in pieces[:-1])
