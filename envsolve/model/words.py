"""Words that options and keys of a file take alike: each function reads one, or raises ValueError with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

E = TypeVar("E", bound=StrEnum)


def member_of(kind: type[E]) -> Callable[[str], E]:
    """A parser for the members of an enumeration that names them all when it is given another word."""

    def parse(text: str) -> E:
        try:
            return kind(text)
        except ValueError:
            import difflib

            close = difflib.get_close_matches(text.lower(), list(kind), n=1)
            meant = f"; did you mean {close[0]}?" if close else ""
            raise ValueError(f"{text!r} is not one of {', '.join(kind)}{meant}") from None

    return parse


def one_word(text: str) -> str:
    """``text`` as it is; ValueError where it is empty or could break out of the line it is written to."""
    if not text or any(character.isspace() or not character.isprintable() for character in text):
        raise ValueError(f"{text!r} is empty or contains spaces or control characters")
    return text


def gpu_name(text: str) -> str:
    """A GPU as typed; ``auto`` and ``none`` in any case. ValueError where it holds control characters."""
    if not text.isprintable():
        raise ValueError(f"{text!r} contains control characters")
    return text.lower() if text.lower() in ("auto", "none") else text


def day_of(moment: str) -> str:
    """The day of a moment as :func:`parse_moment` gives it: ``2026-11-21``."""
    return moment.partition("T")[0]


def parse_moment(text: str) -> str:
    """A day or a moment as RFC 3339 writes it, in UTC: ``2026-11-20`` is the end of that day.

    ValueError for anything else.
    """
    from datetime import UTC, datetime, timedelta

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is not a day such as 2026-11-20, or a moment such as 2026-11-20T08:00:00Z"
        ) from None
    if len(text) == len("2026-11-20"):
        moment += timedelta(days=1)
    return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
