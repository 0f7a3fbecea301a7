"""What a terminal obeys and does not show: escape sequences, and backspaces that type over what stands there.

The sequences are those of ECMA-48 as xterm takes them (https://invisible-island.net/xterm/ctlseqs/ctlseqs.html). Every
pattern begins with a character that it cannot run over again, so the time is linear in the text.
"""

from __future__ import annotations

import re
from functools import cache

_CONTROL_SEQUENCE = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
_STRING = r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x80-\x9f]*(?:\x07|\x1b\\|\x9c)"
"""The title of a window, the address of a link and the like. One without an end would hide the rest of its line."""
_OTHER = r"\x1b(?: [FGLMN]|[!-/]{1,2}[0-~]|[0-~])?|[\x80-\x9f]"
_MOVES = tuple("CGHfa`")
"""Ends of the sequences that move the cursor along the line; the console of Windows 10 writes spaces so."""


def as_shown(text: str) -> str:
    """One line as a terminal shows it, without colours and links, and with what was typed over replaced."""
    text = _sequences().sub(_shown, text)
    return _typed(text) if "\b" in text else text


@cache
def _sequences() -> re.Pattern[str]:
    return re.compile(f"({_CONTROL_SEQUENCE})|{_STRING}|{_OTHER}")


def _shown(found: re.Match[str]) -> str:
    return " " if found[1] is not None and found[1].endswith(_MOVES) else ""


def _typed(text: str) -> str:
    """``text`` after each backspace has moved the cursor back, and what follows was typed over what stood there."""
    shown: list[str] = []
    place = 0
    for character in text:
        if character == "\b":
            place = max(0, place - 1)
            continue
        shown[place : place + 1] = character
        place += 1
    return "".join(shown)
