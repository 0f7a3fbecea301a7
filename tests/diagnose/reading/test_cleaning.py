"""The laws of cleaning."""
# ruff: noqa: RUF001 - typographic quotes are what is cleaned

from __future__ import annotations

import html
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from envsolve.diagnose.reading.cleaning import cleaned

PLAIN = {
    "can’t open “libcudart.so.11.0”": 'can\'t open "libcudart.so.11.0"',
    "a\u00a0b\u2003c\u3000d\te\u2028f": "a b c d e f",
    "lib\u200bcuda\ufeff.so\u202e\u2066": "libcuda.so",
    "&#39;cuda&#x27; &lt;b&gt; &quot;x&quot; &amp;amp;lt; &nbsp;&lsquo;": "'cuda' <b> \"x\" <  '",
    "?a=1&lt=2&copy=3; &copy; AT&T;": "?a=1&lt=2&copy=3; &copy; AT&T;",
    "&#0;&#27;&#1114112;&#97;": "  &#1114112;&#97;",
    "ошибка 汉字 é ✓": "ошибка 汉字 é ✓",
    "version `GLIBC_2.27' not found": "version `GLIBC_2.27' not found",
    "lone \ud800 surrogate": "lone  surrogate",
    "- **Python version:** 3.10, 2**3 and **": "- Python version: 3.10, 2**3 and **",
    "soft\u00adware \u2010 \u2212": "software - -",
}

PARTS = st.sampled_from(
    [
        *("\x1b", "[", "31m", "]0;", "\x07", "\\", "\x9b", "\x9c", "\b", "P", "(B"),
        *("&", "amp;", "#38;", "#39;", "#27;", "lt;", "lt", ";", "#", "a", "l", "t", " "),
        *("\u2018", "\u201d", "\u200b", "\u202e", "\0", "\t", "\xe9", "\u6c49", "\ud800"),
    ]
)
LINES = st.lists(PARTS, max_size=25).map("".join) | st.text(max_size=60)


@pytest.mark.parametrize("line", PLAIN)
def test_a_line_becomes_plain(line: str) -> None:
    assert cleaned(line) == PLAIN[line]


@given(LINES)
@example("&l\0t;")
@example("&am&#112;lt;")
@example("&l&#27;t;")
def test_a_cleaned_line_is_printable_and_clean(line: str) -> None:
    found = cleaned(line)
    assert found.isprintable()
    assert cleaned(found) == found


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=60))
def test_text_mangled_by_a_page_is_restored(text: str) -> None:
    if "&" not in text:
        assert cleaned(html.escape(text)) == cleaned(html.escape(html.escape(text))) == text


HOSTILE = [
    *("\x1b", "\x1b[", "\x1b]", "\x1b]0;", "\x1bP", "\x9b", "\x9d", "\b", "a\b", "\x1b[0", "\x1b ", "\x1b("),
    *("&", "&amp;", "&#", "&#38;", "&amp", "&#1;", "\xe9", "\u2018", "\0"),
]


@pytest.mark.thorough
@pytest.mark.parametrize("part", HOSTILE)
def test_cleaning_is_linear(part: str) -> None:
    def seconds(size: int) -> float:
        text = part * (size // len(part))
        tries = []
        for _ in range(3):
            start = time.process_time()
            cleaned(text)
            tries.append(time.process_time() - start)
        return min(tries)

    assert seconds(1 << 20) < 10 * seconds(1 << 18) + 0.2
