"""Text from bytes: messages of Windows in its code pages, and any bytes without failing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsolve.diagnose.reading.decoding import decoded


@pytest.mark.parametrize(("page", "message"), [("cp936", "找不到指定的模块。"), ("cp1252", "größer")])
def test_a_message_of_windows_is_read_in_the_code_page_of_the_machine(
    page: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("locale.getencoding", lambda: page)
    assert decoded(message.encode(page)) == message
    assert decoded(message.encode()) == message


def test_damaged_utf_8_stays_utf_8() -> None:
    raw = "не найден указанный модуль в системе".encode()
    assert decoded(raw[:20] + raw[21:]).startswith("не найден ")


def test_utf_8_is_utf_8() -> None:
    assert decoded("größer 汉字".encode()) == "größer 汉字"


def test_words_amid_binary_data_can_be_read() -> None:
    raw = bytes(range(256)) * 3 + b"cudnn64_9.dll" + bytes(range(255, -1, -1)) * 3
    assert "cudnn64_9.dll" in decoded(raw)


@given(st.binary(max_size=300))
def test_anything_is_decoded(raw: bytes) -> None:
    assert isinstance(decoded(raw), str)


@given(
    st.text(max_size=100).filter(lambda text: "\0" not in text and sum(ord(it) < 32 or it == "\x7f" for it in text) < 2)
)
def test_utf_8_comes_back_as_it_went(text: str) -> None:
    raw = text.encode("utf-8", "replace")
    assert decoded(raw) == raw.decode()


@pytest.mark.parametrize(
    ("line", "read"),
    [
        (b"\x7fELF\x02\x01\x01\0\0\xffcuda", " ELF    cuda"),
        (b"c\0u\0d\0a\0", "cuda"),
        ("ошибка\x03".encode(), "ошибка\x03"),
        (b"\x1b[31m\x1b[1m\x07\x08", "\x1b[31m\x1b[1m\x07\x08"),
        (b"one \x01 stray \x02 pair in a line that is otherwise a line of text of ordinary length", None),
    ],
)
def test_readable_parts_of_a_line_full_of_control_characters_are_preserved(line: bytes, read: str | None) -> None:
    assert decoded(line) == (line.decode() if read is None else read)
