r"""Logs inside of JSON: a whole traceback on one line, with ``\n`` where its lines end.

Docker, Kubernetes, notebooks and web services keep text so, and Python shows it so. A path of Windows holds the same
two characters, as in ``C:\new``, so a line is taken apart only where it is such a text.
"""

from __future__ import annotations

import re
from functools import cache

_DEEPEST = 3
"""JSON that holds JSON that holds the text."""
_MEANING = {"n": "\n", "r": "\n", "t": " ", "v": " ", "f": " ", "e": "\x1b", "b": "\b", "a": "", "0": ""}
_MEANING |= {it: it for it in "\"'\\/"} | {"": ""}
"""What follows a backslash; nothing does where a line was cut."""
_CLEAR_BREAKS = 2


def unescaped(line: str) -> list[str]:
    r"""The lines in ``line`` where it is a text with ``\n`` for line breaks, else ``line`` alone."""
    text = line
    for _ in range(_DEEPEST):
        if "\\n" not in text or _drive().search(text):
            break
        escapes = list(_escape().finditer(text))
        if any(it[3] not in _MEANING for it in escapes if it[3] is not None):
            break
        breaks = [it for it in escapes if it[3] == "n"]
        text, escaped = _escape().sub(_meaning, text), text
        if breaks and _is_text(escaped, breaks):
            return text.split("\n")
    return [line]


def _is_text(line: str, breaks: list[re.Match[str]]) -> bool:
    r"""Whether ``line`` is plainly a text with these ``\n``, and not a path.

    A name in a path begins with a small letter more often than not, a line of a log does not. Where a quote stands
    before the text one such ``\n`` says enough.
    """
    clear = sum(not line[it.end() : it.end() + 1].islower() for it in breaks)
    return clear >= _CLEAR_BREAKS or (clear > 0 and _opening().search(line, 0, breaks[0].start()) is not None)


def _meaning(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2]
    return chr(int(code, 16)) if code is not None else _MEANING[escape[3]]


@cache
def _escape() -> re.Pattern[str]:
    return re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.?))", re.DOTALL)


@cache
def _drive() -> re.Pattern[str]:
    r"""The beginning of a path of Windows as it is; in JSON it is ``C:\\``."""
    return re.compile(r"(?<![A-Za-z0-9])[A-Za-z]:\\(?!\\)")


@cache
def _opening() -> re.Pattern[str]:
    """A quote that a text begins with, or a key before it."""
    return re.compile(r"""\A\s*(?:[\[({]\s*)?[bru]?["']|["']\s?:""")
