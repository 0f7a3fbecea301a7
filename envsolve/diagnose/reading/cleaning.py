"""One line of a log as its reader means it: what terminals, web pages, word processors and JSON added is undone.

What people paste has come through all of these. The patterns of the tables can then be written for the plain text.
"""

from __future__ import annotations

import re
from functools import cache

from envsolve.diagnose.reading.terminal import as_shown

_QUOTES = {
    "'": "\u2018\u2019\u201a\u201b\u2032\uff07\u00b4",
    '"': "\u201c\u201d\u201e\u201f\u2033\uff02",
    "-": "\u2010\u2011\u2212",
}
"""What word processors and web pages write for a quote and a hyphen."""
_NAMED = {"quot": '"', "apos": "'", "lt": "<", "gt": ">", "amp": "&", "nbsp": " "} | {
    name: quote for quote, sort in (("'", "s"), ('"', "d")) for name in (f"l{sort}quo", f"r{sort}quo")
}
_ENTITY = rf"&(?:amp;|#38;|#x26;)*(?:#(\d{{1,7}})|#[xX]([0-9a-fA-F]{{1,6}})|({'|'.join(_NAMED)}));"
"""With those whose ampersand is one again, as text that went through two web pages has them."""
_OF_ENTITIES = frozenset("#;0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_LAST_CHARACTER = 0x10FFFF
_MOST_KEPT = 4096
_BOLD = re.compile(r"(?<!\w)\*\*(?=\S)([^*]{0,199}[^*\s])\*\*")
"""How Markdown writes bold words: - **Python version:** 3.10."""


def cleaned(line: str) -> str:
    """``line`` in printable characters alone, with plain quotes and spaces; what is clean stays as it is.

    No line break is expected in it; one would become a space.
    """
    if not line.isprintable():
        line = as_shown(line)
    if not line.isprintable() or (not line.isascii() and _typographic().search(line) is not None):
        line = line.translate(_CHARACTERS)
    return _without_entities(_BOLD.sub(r"\1", line) if "**" in line else line)


class _Characters(dict[int, str]):
    """What each character becomes: a quote a plain one, any kind of space a space, and what is invisible nothing."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        plain = character if character.isprintable() else " " if character.isspace() else ""
        if len(self) < _MOST_KEPT:
            self[code] = plain
        return plain


_CHARACTERS = _Characters({ord(it): plain for plain, typographic in _QUOTES.items() for it in typographic})


def _without_entities(line: str) -> str:
    return _entities().sub(_character, line) if "&" in line and ";" in line else line


@cache
def _typographic() -> re.Pattern[str]:
    return re.compile(f"[{''.join(_QUOTES.values())}]")


@cache
def _entities() -> re.Pattern[str]:
    return re.compile(_ENTITY)


def _character(found: re.Match[str]) -> str:
    """What an entity of HTML stands for; itself where that could be part of another one, and is not written so."""
    decimal, hexadecimal, name = found.groups()
    if name is not None:
        return _NAMED[name]
    code = int(decimal) if decimal is not None else int(hexadecimal, 16)
    if code > _LAST_CHARACTER or chr(code) in _OF_ENTITIES:
        return found[0]
    return _CHARACTERS[code] or " "
