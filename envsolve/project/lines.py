"""On which line a key of a TOML file stands: the parser does not tell, and a mistake without its line is hard to find.

The text is valid TOML when this is asked, so that only its structure is followed: headers, keys, and where values that
run over several lines end.
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
"""What matters for where a value ends: strings and comments, which may hold anything, brackets, and line ends."""


class Statement(NamedTuple):
    """A key with its value, a header, or a line without either, whose ``path`` is empty; from ``start`` up to ``end``.

    ``line`` is that on which it begins, from 1 on, ``comment`` what stands behind it on its last line.
    """

    start: int
    end: int
    line: int
    path: Path = ()
    is_header: bool = False
    comment: str = ""


def lines_of(text: str) -> dict[Path, int]:
    """The line, from 1 on, of every key and table header in ``text``, which is valid TOML."""
    found: dict[Path, int] = {}
    for it in statements_of(text):
        if it.path:
            found.setdefault(it.path, it.line)
    return found


def line_of_entry(text: str, path: Path, entry: str) -> int | None:
    """The line on which ``entry`` stands in the list at ``path`` of ``text``, which is valid TOML; None elsewhere."""
    import tomli

    for it in statements_of(text):
        if it.path != path or it.is_header:
            continue
        for token in _VALUE.finditer(text, it.start, it.end):
            if token[0][0] in "\"'" and tomli.loads(f"it = {token[0]}")["it"] == entry:
                return it.line + text.count("\n", it.start, token.start())
    return None


def statements_of(text: str) -> tuple[Statement, ...]:
    """What ``text``, which is valid TOML, is made of; together it is the whole text."""
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
    """Where each statement begins and ends, with its line and comment: a new one at every line outside of a value."""
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
    """The key that ``part`` spells, without its quotes."""
    if part.startswith('"'):
        import tomli

        return str(next(iter(tomli.loads(f"{part} = 0"))))
    return part[1:-1] if part.startswith("'") else part
