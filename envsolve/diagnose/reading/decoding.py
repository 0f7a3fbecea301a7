"""Bytes of a log to text, whatever wrote them: this never fails.

In order: 1. UTF-16 or UTF-32, by the mark or the zeros at the beginning 2. UTF-8, line by line, as one log may hold
what programs of several encodings wrote 3. for a line that is none, the code page that all such lines speak for.
A line full of control characters is no text in any code page; what can be read in it is kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.diagnose.reading.legacy import CodePage

_EVIDENCE = 1 << 18
"""Bytes to look at, from the first on that are no UTF-8."""
_CONTROLS = bytes(code for code in (*range(ord(" ")), 0x7F) if code not in b"\t\n\r\a\b\f\x0e\x0f\x1b")
"""Control characters but for those that terminals know."""
_FEW_CONTROLS = 1
_MOST_CONTROLS = 20
"""In so many bytes of text there is at most one control character. Of random bytes every tenth is one."""
_OTHERS = bytes(set(range(256)) - set(_CONTROLS))
_READABLE = bytes(code if ord(" ") <= code <= ord("~") else ord(" ") for code in range(256))


class Decoding:
    """How the lines of one log are decoded. What is learned of one block holds for it and for those after it."""

    def __init__(self) -> None:
        self._code_page = CodePage()

    def learn(self, block: bytes) -> None:
        """Take whole lines as evidence of the code page."""
        if block.isascii():
            return
        try:
            block.decode()
        except UnicodeDecodeError as error:
            if not self._code_page.is_settled:
                start = block.rfind(b"\n", 0, error.start) + 1
                self._code_page.learn(_evidence(block[start : start + _EVIDENCE]))

    def text(self, line: bytes) -> str:
        """The text of ``line``, of a log whose blocks were learned from."""
        if _is_binary(line):
            return line.translate(_READABLE, b"\0").decode("ascii")
        try:
            return line.decode()
        except UnicodeDecodeError:
            return line.decode(self._code_page.name, "replace")


def _evidence(text: bytes) -> Iterator[bytes]:
    """The lines that are in no encoding known so far."""
    for line in text.replace(b"\r", b"\n").split(b"\n"):
        if line.isascii() or _is_binary(line):
            continue
        try:
            line.decode()
        except UnicodeDecodeError:
            yield line


def _is_binary(line: bytes) -> bool:
    """Whether ``line`` is no text in any code page: it is full of control characters."""
    controls = len(line.translate(None, _OTHERS))
    return controls > _FEW_CONTROLS and controls * _MOST_CONTROLS > len(line)
