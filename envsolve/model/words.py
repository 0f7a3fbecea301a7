"""Parsers for values of options and keys: each reads one, or raises ValueError with a sentence."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

E = TypeVar("E", bound=StrEnum)


def member_of(kind: type[E]) -> Callable[[str], E]:
    """Return a parser for the members of an enumeration, which lists them all for an invalid value."""

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
    """Return ``text`` unchanged. Raises ValueError if it is empty or could break its line in a file."""
    if not text or any(character.isspace() or not character.isprintable() for character in text):
        raise ValueError(f"{text!r} is empty or contains spaces or control characters")
    return text


def gpu_name(text: str) -> str:
    """Return a GPU as typed, with ``auto`` and ``none`` in lower case. Raises ValueError for control characters."""
    if not text.isprintable():
        raise ValueError(f"{text!r} contains control characters")
    return text.lower() if text.lower() in ("auto", "none") else text


def day_of(moment: str) -> str:
    """Return the day of a time as returned by :func:`parse_moment`: ``2026-11-21``."""
    return moment.partition("T")[0]


def parse_moment(text: str) -> str:
    """Return a day or a time as RFC 3339 in UTC. ``2026-11-20`` means the end of that day.

    Raises ValueError for anything else.
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
