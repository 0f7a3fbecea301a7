"""TOML for the parts of a lock: strings that stay on their line, arrays and inline tables as short as they can be.

The libraries write two sections for each file of a package and take 80 ms (tomli-w) or seconds (tomlkit) for a large
lock; one line for each file is what people read in a difference, and takes a quarter of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

Value: TypeAlias = "str | bool | int | Sequence[Value] | Mapping[str, Value]"
_LINE = 100
"""Characters up to which an array stays on one line."""
_SURROGATES = range(0xD800, 0xE000)
"""Code points that no file in UTF-8 holds; a command line of other bytes has them (PEP 383)."""
_FOUR_DIGITS = 0xFFFF
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")


def table_lines(table: Mapping[str, Value]) -> Iterator[str]:
    """The lines of a table below its heading. Its own keys must be bare ones: letters, digits, ``-`` and ``_``."""
    for key, item in table.items():
        yield from f"{key} = {value(item)}".split("\n")


def value(it: Value) -> str:
    """``it`` as TOML; an array that is long or holds tables has a line for each item."""
    if isinstance(it, str):
        return string(it)
    if isinstance(it, bool):
        return "true" if it else "false"
    if isinstance(it, int):
        return str(it)
    if isinstance(it, Mapping):
        items = [f"{quoted_key(key)} = {value(item)}" for key, item in it.items()]
        return f"{{ {', '.join(items)} }}" if items else "{}"
    items = [value(item) for item in it]
    if sum(map(len, items)) <= _LINE and not any(isinstance(item, Mapping) for item in it):
        return f"[{', '.join(items)}]"
    return "[\n" + "".join(f"    {item},\n" for item in items) + "]"


def string(text: str) -> str:
    """``text`` in quotes on one line: nothing in it can end the string or the line, whatever reader takes it for one.

    A lone surrogate becomes U+FFFD, as TOML has no way to write one.
    """
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escaped, text))}"'


def quoted_key(text: str) -> str:
    """``text`` as the key of a table, bare where it can be."""
    return text if _BARE_KEY.match(text) else string(text)


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else escaped_code(character)


def escaped_code(character: str) -> str:
    """``character`` by its number, as both TOML and YAML take it; for a lone surrogate U+FFFD."""
    code = ord(character)
    if code in _SURROGATES:
        return "\ufffd"
    return f"\\u{code:04X}" if code <= _FOUR_DIGITS else f"\\U{code:08X}"
