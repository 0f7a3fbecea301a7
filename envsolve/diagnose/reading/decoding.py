"""Bytes of a log to text, whatever wrote them: this never fails.

In order: 1. UTF-16 or UTF-32, by the mark or the zeros at the beginning 2. UTF-8, line by line, as one log may hold
what programs of several encodings wrote 3. for a line that is none, the code page that all such lines speak for.
A line full of control characters is no text in any code page; what can be read in it is kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.diagnose.reading.chunks import wide_encoding
from envsolve.diagnose.reading.legacy import CodePage
from envsolve.diagnose.reading.marks import is_binary, marks, readable

_EVIDENCE = 1 << 18
"""Bytes to look at, from the first on that are no UTF-8."""


def decoded(data: bytes) -> str:
    """The text in ``data``, all of it at once; :func:`~envsolve.diagnose.reading.lines.lines` reads a stream."""
    encoding, mark = wide_encoding(data)
    data = data[mark:]
    if encoding is not None:
        return data.decode(encoding, "replace")
    decoding = Decoding()
    if decoding.learn(data):
        return data.decode()
    return "\n".join(decoding.text(line, marks(line)) for line in data.split(b"\n"))


class Decoding:
    """How the lines of one log are decoded. What is learned of one block holds for it and for those after it."""

    def __init__(self) -> None:
        self._code_page = CodePage()

    def learn(self, block: bytes) -> bool:
        """Take whole lines as evidence of the code page; returns whether there is no need for one."""
        if block.isascii():
            return True
        try:
            block.decode()
        except UnicodeDecodeError as error:
            if not self._code_page.is_settled:
                start = block.rfind(b"\n", 0, error.start) + 1
                self._code_page.learn(_evidence(block[start : start + _EVIDENCE]))
            return False
        return True

    def text(self, line: bytes, found: bytes) -> str:
        """The text of ``line``, of a log whose blocks were learned from; ``found`` are its marks."""
        if is_binary(line, found):
            return readable(line).decode("ascii")
        try:
            return line.decode()
        except UnicodeDecodeError:
            return line.decode(self._code_page.name, "replace")


def _evidence(text: bytes) -> Iterator[bytes]:
    """The lines that are in no encoding known so far."""
    for line in text.replace(b"\r", b"\n").split(b"\n"):
        if line.isascii() or is_binary(line, marks(line)):
            continue
        try:
            line.decode()
        except UnicodeDecodeError:
            yield line
