"""How a message shows text of a user's file."""

from __future__ import annotations

from envsolve.boundary.secrets import without_secrets

_LONGEST_SHOWN = 80
_LONGEST_CLEAN = 2000


def shown(text: str) -> str:
    """Return ``text`` for a message: in quotes, on one line, short, and without secrets."""
    safe = clean(text)
    return repr(safe if len(safe) <= _LONGEST_SHOWN else f"{safe[:_LONGEST_SHOWN]}...")


def clean(text: str) -> str:
    """Return ``text`` without secrets, truncated if it is long."""
    return without_secrets(text)[:_LONGEST_CLEAN]
