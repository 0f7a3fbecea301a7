"""Reading bytes: wide encodings become UTF-8, the rest is unchanged."""

from __future__ import annotations

import codecs
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsolve.diagnose.reading.chunks import CHUNK, chunks, wide_encoding

TEXT = "Could not load 'cudart64_110.dll' — не найден указанный модуль\r\n"


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [
        ("utf-8", b""),
        ("utf-8", codecs.BOM_UTF8),
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
        ("utf-32-le", codecs.BOM_UTF32_LE),
        ("utf-32-be", codecs.BOM_UTF32_BE),
    ],
)
@pytest.mark.parametrize("lines", [1, 20_000])
def test_a_marked_text_arrives_as_utf_8_without_its_mark(encoding: str, mark: bytes, lines: int) -> None:
    text = TEXT * lines
    assert b"".join(chunks(io.BytesIO(mark + text.encode(encoding)))).decode() == text


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_latin_text_in_utf_16_is_known_without_a_mark(encoding: str) -> None:
    text = "OSError: [WinError 126] Das Modul wurde nicht gefunden: größer\r\n" * 3
    assert b"".join(chunks(io.BytesIO(text.encode(encoding)))).decode() == text


@pytest.mark.parametrize(
    "raw", [b"", b"a", b"\0", b"\0\0\0\0", b"a\0b", "Привет, мир".encode("cp1251"), bytes(range(256))]
)
def test_text_that_is_not_utf_16_is_unchanged(raw: bytes) -> None:
    assert b"".join(chunks(io.BytesIO(raw))) == raw


@given(st.binary(max_size=200))
def test_utf_16_that_is_damaged_is_read_on(raw: bytes) -> None:
    found = b"".join(chunks(io.BytesIO(codecs.BOM_UTF16_LE + raw + b"\nend".decode().encode("utf-16-le"))))
    found.decode()


@given(st.binary(min_size=1, max_size=64), st.integers(0, 3))
def test_chunks_are_bounded(raw: bytes, extra: int) -> None:
    data = raw * (2 * CHUNK // len(raw) + extra)
    limit = CHUNK if wide_encoding(data)[0] is None else 2 * CHUNK
    assert all(0 < len(chunk) <= limit for chunk in chunks(io.BytesIO(data)) if chunk)
