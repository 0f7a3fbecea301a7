"""Sentences with fields: what is known is filled in, and a sentence that needs something unknown is left out.

``{driver}`` stands for a field that must be known, ``{framework|the framework}`` for one with other words for want of
it; ``${NAME}`` is a shell's. So one explanation serves a bare line and a full report, and never of "version None".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

_FIELD = re.compile(r"(?<!\$)\{(\w+)(?:\|([^{}]*))?\}")


def filled(sentence: str, fields: Mapping[str, str]) -> str | None:
    """``sentence`` with its fields, or None where it needs one that is not known."""
    missing = False

    def value(match: re.Match[str]) -> str:
        nonlocal missing
        known = fields.get(match[1]) or match[2]
        missing = missing or known is None
        return known or ""

    text = _FIELD.sub(value, sentence)
    return None if missing else text


def told(sentences: Iterable[str], fields: Mapping[str, str]) -> Iterator[str]:
    """Those of ``sentences`` whose fields are known, filled in."""
    for sentence in sentences:
        text = filled(sentence, fields)
        if text:
            yield text
