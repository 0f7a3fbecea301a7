"""Find the lines of keys in a TOML file: the parser does not report them, and error messages need them.

The text must be valid TOML, so only its structure is followed: headers, keys, and the ends of multi-line values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

Path = tuple[str, ...]

_BARE = r"[A-Za-z0-9_-]+"
_PART = rf"""(?:{_BARE}|"(?:[^"\\]|\\.)*"|'[^']*')"""
_DOTTED = rf"{_PART}(?:[ \t]*\.[ \t]*{_PART})*"
_HEADER = re.compile(rf"[ \t]*\[\[?[ \t]*({_DOTTED})[ \t]*\]")
_KEY = re.compile(rf"[ \t]*({_DOTTED})[ \t]*=")
_PARTS = re.compile(_PART)
_VALUE = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"{3,5}'
    r"|'''(?:[^']|'(?!''))*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|[\[\]{}\n]",
    re.DOTALL,
)
"""What affects the end of a value: strings and comments (with any content), brackets, and line ends."""


class Statement(NamedTuple):
    """A key with its value, a header, or another line, with an empty ``path``; from ``start`` up to ``end``.

    ``line`` is its first line, counted from 1, ``comment`` the comment at the end of its last line.
    """

    start: int
    end: int
    line: int
    path: Path = ()
    is_header: bool = False
    comment: str = ""


def lines_of(text: str) -> dict[Path, int]:
    """Return the line, counted from 1, of every key and table header in ``text``, which is valid TOML."""
    found: dict[Path, int] = {}
    for it in statements_of(text):
        if it.path:
            found.setdefault(it.path, it.line)
    return found


def line_of_entry(text: str, path: Path, entry: str) -> int | None:
    """Return the line of ``entry`` in the list at ``path`` of ``text``, which is valid TOML, or None."""
    import tomli

    for it in statements_of(text):
        if it.path != path or it.is_header:
            continue
        for token in _VALUE.finditer(text, it.start, it.end):
            if token[0][0] in "\"'" and tomli.loads(f"it = {token[0]}")["it"] == entry:
                return it.line + text.count("\n", it.start, token.start())
    return None


def statements_of(text: str) -> tuple[Statement, ...]:
    """Return the statements of ``text``, which is valid TOML; together they are the whole text."""
    return tuple(_statements(text))


def _statements(text: str) -> Iterator[Statement]:
    table: Path = ()
    for start, end, number, comment in _spans(text):
        header = _HEADER.match(text, start)
        key = None if header else _KEY.match(text, start)
        if header is not None:
            table = _path(header[1])
            yield Statement(start, end, number, table, is_header=True, comment=comment)
        elif key is not None:
            yield Statement(start, end, number, (*table, *_path(key[1])), comment=comment)
        else:
            yield Statement(start, end, number)


def _spans(text: str) -> Iterator[tuple[int, int, int, str]]:
    """The start, end, line and comment of each statement. A new one begins at every line outside of a value."""
    depth, number = 0, 1
    start, line, comment = 0, 1, ""
    header = _is_header(text, 0)
    for token in _VALUE.finditer(text):
        word = token[0]
        if word in ("[", "{"):
            depth += 0 if header else 1
        elif word in ("]", "}"):
            depth -= 0 if header else 1
        elif word.startswith("#"):
            comment = "" if depth else word.rstrip()
        number += word.count("\n")
        if word == "\n" and depth == 0:
            yield start, token.end(), line, comment
            start, line, comment = token.end(), number, ""
            header = _is_header(text, token.end())
    if start < len(text):
        yield start, len(text), line, comment


def _is_header(text: str, start: int) -> bool:
    return _HEADER.match(text, start) is not None


def _path(dotted: str) -> Path:
    return tuple(_name(part[0]) for part in _PARTS.finditer(dotted))


def _name(part: str) -> str:
    """The key in ``part``, without quotes."""
    if part.startswith('"'):
        import tomli

        return str(next(iter(tomli.loads(f"{part} = 0"))))
    return part[1:-1] if part.startswith("'") else part
