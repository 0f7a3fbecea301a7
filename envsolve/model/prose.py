"""Names in sentences."""

from __future__ import annotations

from collections.abc import Iterable


def sentence_list(items: Iterable[str], word: str = "and") -> str:
    """Return ``a, b and c``; each item once, "" without any."""
    *others, last = dict.fromkeys(items) or ("",)
    return f"{', '.join(others)} {word} {last}" if others else last
