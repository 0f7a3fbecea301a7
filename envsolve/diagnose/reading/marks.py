"""What is done to a whole block in one pass of C: the shape of its lines, and what in them is not plain.

The passes are tables of :meth:`bytes.translate`. Each works on one line and on many alike.
"""

from __future__ import annotations

_DIGITS = b"0123456789"
_PRINTABLE = bytes(range(32, 127))
_ESCAPING = b"&\\"
_PLAIN = bytes(set(_PRINTABLE + b"\t") - set(_ESCAPING))
_OF_TERMINALS = b"\a\b\f\x0e\x0f\x1b"
_CONTROL, _ESCAPE, _OTHER = b"c", b"e", b"o"
_FEW_CONTROLS = 1
_MOST_CONTROLS = 20
"""In so many bytes of text there is at most one control character. Of random bytes every tenth is one."""
_FIRST = 4096


def _kind(code: int) -> int:
    if code in b"\r\n":
        return ord("\n")
    if code in _ESCAPING:
        return ord(_ESCAPE)
    is_control = (code < ord(" ") and code not in _OF_TERMINALS) or code == 0x7F  # noqa: PLR2004 - DEL
    return ord(_CONTROL if is_control else _OTHER)


_KINDS = bytes(map(_kind, range(256)))
_SHAPES = bytes.maketrans(b"\t\r" + _DIGITS, b" \n" + b"0" * 10).lower()
_READABLE = bytes(code if code in _PRINTABLE + b"\n" else ord(" ") for code in range(256))


def shape(text: bytes) -> bytes:
    """``text`` in lower case and with every digit 0: lines that differ in a time or a step have one shape.

    Only ASCII is touched. A tab is a space, as in a cleaned text, and a carriage return a line break.
    """
    return text.translate(_SHAPES)


def marks(text: bytes) -> bytes:
    """What is not plain in ``text``, a letter for each: empty where there is nothing to decode or to clean."""
    return text.translate(_KINDS, _PLAIN)


def is_plain(text: bytes) -> bool:
    """Whether there is nothing to decode, to clean or to take apart in ``text``, of one line or of many."""
    if marks(text[:_FIRST]).strip(b"\ne") or marks(text).strip(b"\ne") or b"\r" in text:
        return False
    return b"\\n" not in text and (b"&" not in text or b";" not in text)


def is_binary(line: bytes, found: bytes) -> bool:
    """Whether ``line``, with these marks, is no text in any code page: it is full of control characters."""
    controls = found.count(_CONTROL)
    return controls > _FEW_CONTROLS and controls * _MOST_CONTROLS > len(line)


def readable(text: bytes) -> bytes:
    """What can be read in ``text``, binary lines: ASCII, with spaces for all else.

    UTF-16 that was appended to another encoding is readable too: its zeros are left out.
    """
    return text.translate(_READABLE, b"\0")
