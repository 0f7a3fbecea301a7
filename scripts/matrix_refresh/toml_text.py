"""A TOML file as text in blocks: one field is changed, every other byte stays as it was.

tomlkit keeps comments too, but counts a comment above ``[[release]]`` to the table before it: what is added to that
table then stands below the comment. Here it belongs to the header it stands on.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import tomlkit

_LEAD = r"(?:^#[^\n]*\n)*"
_HEADER = re.compile(r"^\[\[?([^\[\]\n]+)\]\]?[ \t]*(?:#[^\n]*)?$", re.MULTILINE)
_LEAD_AND_HEADER = re.compile(_LEAD + _HEADER.pattern, re.MULTILINE)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class Block(NamedTuple):
    """One table with the comments on its head; ``table`` is its dotted name, empty for the top of the file."""

    table: str
    text: str


class Field(NamedTuple):
    """The lines of one field; ``name`` is None for comments, blank lines and the header."""

    name: str | None
    text: str


def blocks_of(text: str) -> list[Block]:
    """The top of the file, then every table."""
    heads = list(_LEAD_AND_HEADER.finditer(text))
    starts = [0, *(head.start() for head in heads)]
    names = ["", *(head[1].strip() for head in heads)]
    ends = [*starts[1:], len(text)]
    return [Block(name, text[start:end]) for name, start, end in zip(names, starts, ends, strict=True)]


def path_of(table: str) -> tuple[str, ...]:
    """The keys of a dotted name, however they are quoted."""
    names: list[str] = []
    inside = tomllib.loads(f"[{table}]")
    while inside:
        names += inside
        (inside,) = inside.values()
    return tuple(names)


def odd_headers(blocks: Sequence[Block]) -> Iterator[str]:
    """Headers that stand in no block of their own: those that do not begin their line, or hold a bracket."""
    for block in blocks:
        if any(line.lstrip().startswith("[") and not _HEADER.match(line) for line in block.text.splitlines()):
            yield from (
                field.text.strip()
                for field in fields_of(block)
                if field.text.lstrip().startswith("[") and not _HEADER.match(field.text)
            )


def fields_of(block: Block) -> Iterator[Field]:
    """The block in pieces; put together they are its text."""
    text = ""
    for line in block.text.splitlines(keepends=True):
        text += line
        if text == line and _HEADER.match(line):
            yield Field(None, line)
            text = ""
            continue
        try:
            values = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue
        yield Field(next(iter(values), None), text)
        text = ""
    if text:
        yield Field(None, text)


def with_field(block: Block, name: str, value: object, order: Sequence[str]) -> Block:
    """The block with one field changed, taken out (None), or added after the fields that ``order`` has before it."""
    fields = list(fields_of(block))
    place = next((number for number, field in enumerate(fields) if field.name == name), None)
    if place is not None:
        fields[place] = Field(name, "" if value is None else _changed(fields[place].text, name, value))
    elif value is not None:
        at = _place_after(fields, order[: order.index(name)])
        if at and not fields[at - 1].text.endswith("\n"):
            fields[at - 1] = Field(fields[at - 1].name, fields[at - 1].text + "\n")
        fields.insert(at, Field(name, line_of(name, value)))
    return Block(block.table, "".join(field.text for field in fields))


def new_block(head: str, values: Sequence[tuple[str, object]]) -> str:
    """The text of a new table."""
    return "".join([f"{head}\n", *(line_of(name, value) for name, value in values)])


def inserted(blocks: Sequence[Block], position: int, table: str, text: str) -> list[Block]:
    """``blocks`` with a new one at ``position``, a blank line between it and its neighbours."""
    before = blocks[position - 1].text if position else ""
    if before and not before.endswith("\n\n"):
        text = ("\n" if before.endswith("\n") else "\n\n") + text
    if position < len(blocks):
        text += "\n"
    return [*blocks[:position], Block(table, text), *blocks[position:]]


def line_of(name: str, value: object) -> str:
    """``name = value`` on one line."""
    return f"{key_text(name)} = {tomlkit.item(value).as_string()}\n"


def key_text(name: str) -> str:
    """A key as TOML writes it: in quotes where it must be."""
    return name if _BARE_KEY.fullmatch(name) else tomlkit.item(name).as_string()


def _place_after(fields: Sequence[Field], earlier: Sequence[str]) -> int:
    """Behind the nearest of the ``earlier`` fields that is there, else behind the header."""
    names = [field.name for field in fields]
    near = next((name for name in reversed(earlier) if name in names), None)
    if near is not None:
        return names.index(near) + 1
    return next((at for at, field in enumerate(fields, 1) if _HEADER.match(field.text)), 0)


def _changed(text: str, name: str, value: object) -> str:
    """The field with another value; a comment behind it stays."""
    document = tomlkit.parse(text)
    document[name] = tomlkit.item(value)
    return tomlkit.dumps(document)
