"""The text of one segment of a log, cleaned and without prefixes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from envsolve.diagnose.reading.cleaning import cleaned
from envsolve.diagnose.reading.decoding import decoded
from envsolve.diagnose.reading.escaped import unescaped
from envsolve.diagnose.reading.prefixes import without_prefixes

_REMEMBERED = 64
"""Segments whose texts are remembered: each is looked up as a line and as what follows those before it."""


class Line(NamedTuple):
    """A line of a log, cleaned, with those after it that say something, which can be read once.

    ``number`` counts line breaks from 1, so parts of a long line, or of a text in JSON, share one. ``whole`` is the
    line with its continuation where a terminal may have cut it at its width. ``left_out`` lines are missing before it.
    """

    number: int
    text: str
    following: Iterable[str] = ()
    whole: str = ""
    left_out: int = 0


@lru_cache(_REMEMBERED)
def texts_of(segment: bytes) -> tuple[str, ...]:
    """The cleaned texts in a segment of a log that are not blank: one, or as many as a text in JSON has lines."""
    text = decoded(segment)
    if text.isascii() and text.isprintable() and not any(it in text for it in ("&", "\\", "**")):
        return (without_prefixes(text),) if text.strip() else ()
    return tuple(filter(str.strip, map(without_prefixes, map(cleaned, unescaped(text)))))
