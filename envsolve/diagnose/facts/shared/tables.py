"""Tables of ``data/findings/facts.toml`` whose values are regular expressions."""

from __future__ import annotations

import re
from functools import cache

from envsolve.findings.catalogue import shipped


def first_match(table: str, text: str, *, whole: bool = False) -> str | None:
    """The first key of a table whose pattern is in ``text``, or with ``whole`` begins it; case does not matter."""
    return next((key for key, it in _patterns(table) if (it.match(text) if whole else it.search(text))), None)


@cache
def _patterns(table: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((key, re.compile(str(it), re.IGNORECASE)) for key, it in shipped().table(table).items())
