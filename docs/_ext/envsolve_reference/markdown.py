"""Markdown as MyST reads it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"([\\*_\[\]<>~$#|])")
_CODE = re.compile(r"(`[^`]+`)")


def escaped(text: str) -> str:
    """``text`` so that it is shown as it is; what stands between backticks stays code."""
    parts = _CODE.split(text)
    return "".join(part if number % 2 else _SPECIAL.sub(r"\\\1", part) for number, part in enumerate(parts))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown of one line."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace(chr(10), ' ') for cell in line)} |\n" for line in lines)


def directive(name: str, argument: str, content: str = "") -> str:
    """A directive of Sphinx."""
    return (
        f"::::{{{name}}} {argument}\n{content.rstrip()}\n::::\n\n"
        if content
        else f"::::{{{name}}} {argument}\n::::\n\n"
    )
