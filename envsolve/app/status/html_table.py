"""Results as HTML tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def html_table(title: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with ``title`` above it. All values are escaped as text; None is an empty cell."""
    lines = [f"<tr>{_cells('th', head)}</tr>", *(f"<tr>{_cells('td', row)}</tr>" for row in rows)]
    return f"<table><caption>{_text(title)}</caption>{''.join(lines)}</table>"


def _cells(tag: str, row: Sequence[object]) -> str:
    return "".join(f"<{tag}>{'' if it is None else _text(str(it))}</{tag}>" for it in row)


def _text(text: str) -> str:
    from html import escape

    return escape(text).replace("\n", "<br>")
