"""Text in the man macros, as man-pages(7) and groff_man(7) have them."""

from __future__ import annotations

import re
import textwrap

_WIDTH = 76
_SPECIAL = {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti", '"': r"\(dq"}
"""Characters that roff would change or interpret; every ``-`` may be part of a name to type."""
_CODE = re.compile(r"`([^`\n]+)`")


def escaped(text: str) -> str:
    """``text``, escaped so that it is shown unchanged."""
    return "".join(
        _SPECIAL.get(character, character if ord(character) < 127 else rf"\[u{ord(character):04X}]")  # noqa: PLR2004 - ASCII
        for character in text
    )


def bold(text: str) -> str:
    """``text`` to be typed literally."""
    return rf"\fB{escaped(text)}\fR"


def italic(text: str) -> str:
    """``text`` that is a placeholder."""
    return rf"\fI{escaped(text)}\fR"


def paragraph(text: str) -> str:
    """Lines of running text; text between ``backticks`` is bold."""
    parts = _CODE.split(text)
    shown = "".join(bold(part) if number % 2 else escaped(part) for number, part in enumerate(parts))
    return "".join(f"{_no_request(line)}\n" for line in _wrapped(shown))


def as_it_is(lines: list[str]) -> str:
    """Lines that stay lines, such as commands."""
    return ".nf\n" + "".join(f"{_no_request(escaped(line))}\n" for line in lines) + ".fi\n"


def entry(tag: str, text: str) -> str:
    """One of a list: a tag, which is roff already, and what it means."""
    return f".TP\n{_no_request(tag)}\n{paragraph(text)}"


def section(title: str, content: str) -> str:
    """A section; nothing where it has no content."""
    return f".SH {title}\n{content}" if content else ""


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, break_long_words=False, break_on_hyphens=False)


def _no_request(line: str) -> str:
    """A line that begins with a dot, escaped so that it is no request to the formatter."""
    return rf"\&{line}" if line.startswith(".") else line
