"""Lines that envsolve writes into a file of the user: a comment at their end tells them from the user's own."""

from __future__ import annotations

import re

OWN = "# by envsolve"
"""How each of these lines ends."""
_LINE = re.compile(rf"^.*{OWN}[ \t]*(?:\r?\n|\Z)", re.MULTILINE)


def without_own_lines(text: str) -> str:
    """``text`` as the user wrote it."""
    return _LINE.sub("", text) if OWN in text else text
