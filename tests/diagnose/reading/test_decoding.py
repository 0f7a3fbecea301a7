"""Text out of bytes: the messages of Windows in its code pages, and anything at all without failing."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsolve.diagnose.reading.decoding import Decoding

MESSAGES: dict[str, list[str]] = tomllib.loads(Path(__file__).with_name("messages.toml").read_text(encoding="utf-8"))

AROUND = [
    "{}",
    'OSError: [WinError 126] {} Error loading "C:\\env\\torch\\lib\\cudnn64_9.dll" or one of its dependencies.',
]


def decoded(raw: bytes) -> str:
    decoding = Decoding()
    decoding.learn(raw)
    return "\n".join(map(decoding.text, raw.split(b"\n")))


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize(("encoding", "message"), [(page, text) for page, texts in MESSAGES.items() for text in texts])
def test_a_message_of_windows_is_read_in_the_code_page_it_was_written_in(
    encoding: str, message: str, around: str
) -> None:
    text = around.format(message)
    assert decoded(text.encode(encoding)) == text


def test_a_log_of_two_programs_may_be_in_two_encodings() -> None:
    lines = [MESSAGES["cp932"][0], MESSAGES["cp1251"][0], "plain"]
    raw = b"\n".join((lines[0].encode(), lines[1].encode("cp1251"), lines[2].encode()))
    assert decoded(raw) == "\n".join(lines)


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
def test_of_a_line_full_of_control_characters_only_what_can_be_read_is_kept(line: bytes, read: str | None) -> None:
    assert decoded(line) == (line.decode() if read is None else read)
