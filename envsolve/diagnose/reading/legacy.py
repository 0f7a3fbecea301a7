"""Which code page a text is in that is no UTF-8: Windows still writes its own messages in the one of the country.

Nothing in such a text names it, so the evidence is what comes out: each code page is tried, and the one wins whose
characters are, by the largest share, those that a text of its language is made of. Frequent characters say more than
valid ones, because nearly every pair of bytes is some character of a Chinese code page. The layout of the tables is
that of the Unicode Consortium's (https://www.unicode.org/Public/MAPPINGS/VENDORS/MICSFT/WINDOWS/).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

FALLBACK = "cp1252"
"""Where nothing else is known: the code page of Western Europe and the Americas."""

_LEAST_SHARE = 0.5
_ENOUGH = 1 << 14
"""Bytes of evidence after which the answer stays."""
_MOST_AT_ONCE = 1 << 12

_LATIN = "A-Za-z"
_ACCENTED, _ACCENTED_CAPITAL = (
    "\u00df-\u00f6\u00f8-\u00ff\u0153\u0161\u017e",
    "\u00c0-\u00d6\u00d8-\u00de\u0152\u0160\u017d\u0178",
)
_SIGNS, _QUOTES = "\u00a0\u00a9\u00ab\u00ae\u00b0\u00b7\u00bb\u2013\u2014\u2019\u2026", "\u2018\u201c\u201d\u201e"
_WESTERN = (
    rf"(?<=[{_LATIN}{_ACCENTED}])[{_ACCENTED}]|[{_ACCENTED}](?=[a-z])"
    rf"|(?<![a-z{_ACCENTED}])[{_ACCENTED_CAPITAL}](?=[{_LATIN}])"
    rf"|[{_SIGNS}]|(?<![a-z])[{_QUOTES}]|[{_QUOTES}](?![a-z])"
)
"""A letter with an accent stands beside one without, a capital does not follow a small letter, and quotes surround."""
_SMALL, _CAPITAL = "\u0430-\u044f\u0451", "\u0410-\u042f\u0401"
_CYRILLIC = (
    rf"(?<=[{_SMALL}{_CAPITAL}])[{_SMALL}](?![{_LATIN}])|(?<![{_LATIN}])[{_SMALL}](?=[{_SMALL}])"
    rf"|(?<![{_LATIN}{_SMALL}])[{_CAPITAL}](?=[{_SMALL}{_CAPITAL}])|(?<=[{_CAPITAL}])[{_CAPITAL}]"
)
"""Words of letters that are all Cyrillic; one letter alone may be a French word in the wrong code page."""
_WIDE_SIGNS = frozenset(map(chr, (*range(0x3001, 0x3003), *range(0x300A, 0x3012), 0x30FB, 0x30FC, 0xFF01))) | frozenset(
    map(chr, (0xFF08, 0xFF09, 0xFF0C, 0xFF0E, 0xFF1A, 0xFF1B, 0xFF1F, 0x2018, 0x2019, 0x201C, 0x201D, 0x2026))
)
"""Punctuation of Chinese and Japanese."""


class _CodePage(NamedTuple):
    """A code page, and how to count the characters in a text that are frequent in its languages."""

    name: str
    frequent: Callable[[str], int]


def _matching(pattern: str) -> Callable[[str], int]:
    return lambda text: len(re.findall(pattern, text))


def _in_rows(name: str, *rows: tuple[range, range]) -> Callable[[str], int]:
    """Counts the characters whose first and second byte are in one of ``rows``, where the frequent ones stand."""

    @cache
    def characters() -> frozenset[str]:
        pairs = (bytes((lead, trail)) for leads, trails in rows for lead in leads for trail in trails)
        decoded = (pair.decode(name, "replace") for pair in pairs)
        return frozenset(it for it in decoded if len(it) == 1) | _WIDE_SIGNS

    return lambda text: sum(map(characters().__contains__, text))


_UPPER_TRAILS = range(0xA1, 0xFF)
_CODE_PAGES = (
    _CodePage("utf-8", _matching("[^\x00-\x9f\ufffd]")),  # with some bytes damaged
    _CodePage("cp1252", _matching(_WESTERN)),
    _CodePage("cp850", _matching(_WESTERN)),  # Western Europe, in a console
    _CodePage("cp1251", _matching(_CYRILLIC)),
    _CodePage("cp866", _matching(_CYRILLIC)),  # Russian, in a console
    _CodePage("cp949", _in_rows("cp949", (range(0xB0, 0xC9), _UPPER_TRAILS))),  # the syllables of KS X 1001
    _CodePage("gbk", _in_rows("gbk", (range(0xB0, 0xD8), _UPPER_TRAILS))),  # level 1 of GB 2312
    _CodePage("cp950", _in_rows("cp950", (range(0xA4, 0xC7), range(0x40, 0xFF)))),  # level 1 of Big5
    _CodePage(
        "cp932",  # kana, and the kanji of JIS level 1
        _in_rows(
            "cp932",
            (range(0x82, 0x83), range(0x9F, 0xF2)),
            (range(0x83, 0x84), range(0x40, 0x97)),
            (range(0x88, 0x98), range(0x40, 0xFD)),
        ),
    ),
)
"""Where two fit alike the first is taken: what is Korean throughout reads as Chinese too, and not the other way."""


class CodePage:
    """The code page of one log, which is known better the more lines of it were seen."""

    def __init__(self) -> None:
        self.name = FALLBACK
        self._seen = 0
        self._frequent = dict.fromkeys((it.name for it in _CODE_PAGES), 0)
        self._foreign = dict.fromkeys((it.name for it in _CODE_PAGES), 0)

    @property
    def is_settled(self) -> bool:
        """Whether more lines would not change it."""
        return self._seen >= _ENOUGH

    def learn(self, lines: Iterable[bytes]) -> None:
        """Take ``lines`` that are no UTF-8 as evidence, a few thousand bytes of them."""
        sample = b"\n".join(_at_most(lines, _MOST_AT_ONCE))
        self._seen += len(sample)
        for page in _CODE_PAGES:
            text = sample.decode(page.name, "replace")
            self._frequent[page.name] += page.frequent(text)
            self._foreign[page.name] += len(text) - len(text.encode("ascii", "ignore"))
        best = max((it.name for it in _CODE_PAGES), key=self._share)
        self.name = best if self._share(best) >= _LEAST_SHARE else FALLBACK

    def _share(self, name: str) -> float:
        return self._frequent[name] / max(1, self._foreign[name])


def _at_most(lines: Iterable[bytes], size: int) -> Iterable[bytes]:
    """The first of ``lines``, until they are ``size`` bytes together."""
    for line in lines:
        yield line[:size]
        size -= len(line)
        if size <= 0:
            return
