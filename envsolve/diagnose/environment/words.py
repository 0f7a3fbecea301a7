"""Names in sentences, shortened if there are many."""

from __future__ import annotations

from collections.abc import Iterable

_SHOWN = 3


def listed(names: Iterable[str]) -> str:
    """``a, b, c and 4 more``; each name once."""
    found = list(dict.fromkeys(names))
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return ", ".join(found[:_SHOWN]) + more
