"""TOML for the parts of a lock: strings on one line, and arrays and inline tables as short as possible.

Libraries write two sections for each file of a package, and take 80 ms (tomli-w) or seconds (tomlkit) for a large lock.
One line for each file is readable in a diff, and takes a quarter of the space.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

Value: TypeAlias = "str | bool | int | Sequence[Value] | Mapping[str, Value]"
_LINE = 100
"""Characters up to which an array stays on one line."""
_SURROGATES = range(0xD800, 0xE000)
"""Code points that UTF-8 cannot encode. A command line with other bytes has them (PEP 383)."""
_FOUR_DIGITS = 0xFFFF
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+\Z")


def table_lines(table: Mapping[str, Value]) -> Iterator[str]:
    """Yield the lines of a table below its heading. Its keys must be bare keys: letters, digits, ``-`` and ``_``."""
    for key, item in table.items():
        yield from f"{key} = {value(item)}".split("\n")


def value(it: Value) -> str:
    """Return ``it`` as TOML. An array that is long or contains tables has one line per item."""
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
    """Return ``text`` in quotes on one line. Nothing in it can end the string or the line, for any reader.

    A lone surrogate becomes U+FFFD, because TOML cannot express it.
    """
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escaped, text))}"'


def quoted_key(text: str) -> str:
    """Return ``text`` as the key of a table, bare if possible."""
    return text if _BARE_KEY.match(text) else string(text)


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    return character if character.isprintable() else escaped_code(character)


def escaped_code(character: str) -> str:
    """Return ``character`` as an escape by its number, valid in TOML and YAML; U+FFFD for a lone surrogate."""
    code = ord(character)
    if code in _SURROGATES:
        return "\ufffd"
    return f"\\u{code:04X}" if code <= _FOUR_DIGITS else f"\\U{code:08X}"
