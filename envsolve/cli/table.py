"""A table as text: drawn by rich on a terminal, plain aligned columns otherwise."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.table import Table

EMPTY = "-"
_FIRST_TO_GO = ("from wheels", "for PTX", "PTX", "cuDNN", "runs as", "evidence", "in full", "builds", "Python", "PyPI")
"""Columns that a narrow terminal omits, in this order; programs get all."""


def table(header: Sequence[str], rows: Sequence[Sequence[str]], expendable: Sequence[str] = ()) -> str:
    """The lines of a table. An empty cell is a dash, and an empty column is omitted.

    A narrow terminal omits the columns that are ``expendable``, in their order, after those that it always omits.
    """
    filled = [column for column, _ in enumerate(header) if any(row[column] for row in rows)]
    header = [header[column] for column in filled]
    rows = [[row[column] or EMPTY for column in filled] for row in rows]
    drawable = sys.stdout.isatty() and sys.stdout.encoding.lower().startswith("utf")
    return _drawn(header, rows, expendable) if drawable else _aligned(header, rows)


def heading(text: str) -> str:
    """A heading above a section."""
    return f"\n{click.style(text, bold=True)}\n"


def _aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()

    return "".join(f"{text}\n" for text in (click.style(line(header), bold=True), *map(line, rows)))


def _drawn(header: Sequence[str], rows: Sequence[Sequence[str]], expendable: Sequence[str]) -> str:
    """A table as wide as the terminal: cells wrap only between words, so that no version or name is cut.

    If that is too wide, values that are the same in every row are shown once, below; then columns are omitted; if that
    is not enough, each row becomes a list.
    """
    from io import StringIO

    from rich.console import Console
    from rich.text import Text

    console = Console(file=StringIO(), force_terminal=True)
    shown = list(range(len(header)))
    same: list[int] = []
    if len(rows) > 1 and _least_width(header, rows, shown) > console.width:
        same = [it for it in shown if len({row[it] for row in rows}) == 1]
        shown = [it for it in shown if it not in same]
    for name in (*_FIRST_TO_GO, *expendable):
        if _least_width(header, rows, shown) > console.width:
            shown = [it for it in shown if header[it] != name]
    if _least_width(header, rows, shown) > console.width:
        return _records(header, rows)
    cells = [[row[it] for it in shown] for row in rows]
    console.print(_rich_table([header[it] for it in shown], cells, console.width))
    assert isinstance(console.file, StringIO)
    if same:
        console.print(Text(f"(in every row: {', '.join(f'{header[it]} {rows[0][it]}' for it in same)})"))
    left_out = [name for number, name in enumerate(header) if number not in (*shown, *same)]
    if left_out:
        console.print(Text(f"(a wider terminal also shows {', '.join(left_out)})"))
    return console.file.getvalue()


def _least_width(header: Sequence[str], rows: Sequence[Sequence[str]], shown: Sequence[int]) -> int:
    """The width of a table in which every cell is as narrow as its longest word."""
    return sum(_longest_word(header, rows, column) + 1 for column in shown)


def _longest_word(header: Sequence[str], rows: Sequence[Sequence[str]], column: int) -> int:
    cells = (header[column], *(row[column] for row in rows))
    return max(len(word) for cell in cells for word in (cell.replace(",", ", ").split() or [""]))


def _records(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Each row as lines of a name and a value."""
    width = max(map(len, header))
    return "\n".join(
        "".join(f"{name.ljust(width)}  {cell}\n" for name, cell in zip(header, row, strict=True)) for row in rows
    )


def _rich_table(header: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Table:
    """The table of at most ``width``: a column fits its longest word, and the first columns that wrap get the rest."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0, header_style="bold")
    spare = width - _least_width(header, rows, range(len(header)))
    for number, name in enumerate(header):
        least = _longest_word(header, rows, number)
        more = min(spare, max(len(cell.replace(",", ", ")) for cell in (name, *(row[number] for row in rows))) - least)
        spare -= more
        drawn.add_column(name, width=least + more)
    for row in rows:
        drawn.add_row(*(Text(cell.replace(",", ", ")) for cell in row))
    return drawn
