"""Bytes of a line to text, whatever wrote them: this never fails.

A line that is no UTF-8 is in the encoding of this machine: on Windows programs still write messages in the code page of
the country. A line full of control characters is no text in any encoding; what can be read in it is kept.
"""

from __future__ import annotations

import locale

_CONTROLS = bytes(code for code in (*range(ord(" ")), 0x7F) if code not in b"\t\n\r\a\b\f\x0e\x0f\x1b")
"""Control characters but for those that terminals know."""
_FEW_CONTROLS = 1
_MOST_CONTROLS = 20
"""In so many bytes of text there is at most one control character. Of random bytes every tenth is one."""
_OTHERS = bytes(set(range(256)) - set(_CONTROLS))
_READABLE = bytes(code if ord(" ") <= code <= ord("~") else ord(" ") for code in range(256))


def decoded(line: bytes) -> str:
    """The text of ``line``."""
    controls = len(line.translate(None, _OTHERS))
    if controls > _FEW_CONTROLS and controls * _MOST_CONTROLS > len(line):
        return line.translate(_READABLE, b"\0").decode("ascii")
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode(locale.getencoding(), "replace")
