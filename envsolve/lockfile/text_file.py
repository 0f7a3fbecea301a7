"""How the text of a user's file is shown in a message."""

from __future__ import annotations

from envsolve.boundary.secrets import without_secrets

_LONGEST_SHOWN = 80
_LONGEST_CLEAN = 2000


def shown(text: str) -> str:
    """``text`` of a file as a message may quote it: in quotes, on one line, short, and without secrets."""
    safe = clean(text)
    return repr(safe if len(safe) <= _LONGEST_SHOWN else f"{safe[:_LONGEST_SHOWN]}...")


def clean(text: str) -> str:
    """``text`` of a file, or what was said about one, without secrets; of a long one the beginning."""
    return without_secrets(text)[:_LONGEST_CLEAN]
