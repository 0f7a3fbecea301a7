"""The line that a terminal would show."""

from __future__ import annotations

import pytest

from envsolve.diagnose.reading.cleaning import cleaned

SHOWN = {
    "\x1b[1;31mcuda\x1b[0m error": "cuda error",
    "\x1b[38;2;255;0;0mred\x1b[m": "red",
    "\x1b]0;a title\x07text": "text",
    "\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\": "link",
    "\x1bP1$r0m\x1b\\text": "text",
    "\x1b(B\x1b[mtext\x0f": "text",
    "\x1b#8\x1b=\x1b>\x1b7\x1b8text": "text",
    "\x9b31mtext\x9b0m": "text",
    "\x9d0;title\x9ctext": "text",
    "two\x1b[1Cwords\x1b[3Gmore": "two words more",  # as the console of Windows writes spaces
    "\x1b[2K\x1b[1Atext": "text",
    "title without end \x1b]0;error: no driver": "title without end 0;error: no driver",
    "cut off \x1b[3": "cut off ",
    "cut off \x1b": "cut off ",
    "a \x1b  b": "a   b",
    "c\bcu\bud\bda\ba": "cuda",
    "|\b/\b-\bdone": "done",
    "\b\bx": "x",
    "abc\b\b\b": "abc",
    "a\0b\x7fc": "abc",
}  # fmt: skip


@pytest.mark.parametrize("line", SHOWN)
def test_a_line_is_what_a_terminal_shows(line: str) -> None:
    assert cleaned(line) == SHOWN[line]
