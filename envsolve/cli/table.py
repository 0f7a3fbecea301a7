"""A table for people: drawn by rich on a terminal, plain aligned columns where something else reads it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.table import Table

EMPTY = "-"
_NO_LIMIT = 10_000
_READABLE = 8
"""Characters that a column gets on average at least; with fewer most cells would be cut to pieces."""
_SHARE_A_COLUMN = (("source", "platform"), ("platform", "build"), ("driver", "for PTX"), ("fails", "evidence"))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The lines of a table. An empty cell is a dash, and a column that is empty throughout is left out."""
    filled = [column for column, _ in enumerate(header) if any(row[column] for row in rows)]
    header = [header[column] for column in filled]
    rows = [[row[column] or EMPTY for column in filled] for row in rows]
    drawable = sys.stdout.isatty() and sys.stdout.encoding.lower().startswith("utf")
    return _drawn(header, rows) if drawable else _aligned(header, rows)


def heading(text: str) -> str:
    """A line above a section."""
    return f"\n{click.style(text, bold=True)}\n"


def _aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()

    return "".join(f"{text}\n" for text in (click.style(line(header), bold=True), *map(line, rows)))


def _drawn(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """As wide as the terminal; long lists of code targets go on in the next line of their cell, at a comma.

    Plain columns, which a terminal wraps line by line, where it is too narrow for any table.
    """
    from io import StringIO

    from rich.console import Console
    from rich.measure import Measurement

    console = Console(file=StringIO(), force_terminal=True)
    drawn = _rich_table(header, rows)
    if Measurement.get(console, console.options.update(max_width=_NO_LIMIT), drawn).minimum > console.width:
        drawn = _rich_table(_stacked(header, header), [_stacked(header, row) for row in rows])
    if console.width < _READABLE * len(drawn.columns):
        return _aligned(header, rows)
    console.print(drawn)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def _rich_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(*header, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0, header_style="bold")
    for column in drawn.columns:
        column.overflow = "fold"
    for row in rows:
        drawn.add_row(*(Text(cell.replace(",", ", ")) for cell in row))
    return drawn


def _stacked(header: Sequence[str], cells: Sequence[str]) -> list[str]:
    """``cells`` with those on top of each other that share a column where the terminal is narrow."""
    stacked: list[str] = []
    previous = ""
    for name, cell in zip(header, cells, strict=True):
        if (previous, name) in _SHARE_A_COLUMN:
            stacked[-1] += f"\n{cell}"
        else:
            stacked.append(cell)
        previous = name
    return stacked
