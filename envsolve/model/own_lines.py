"""Lines that envsolve writes into a user's file. A comment at their end marks them."""

from __future__ import annotations

import re

OWN = "# by envsolve"
"""The end of each of these lines."""
_LINE = re.compile(rf"^.*{OWN}[ \t]*(?:\r?\n|\Z)", re.MULTILINE)


def without_own_lines(text: str) -> str:
    """Return ``text`` without the lines that envsolve wrote."""
    return _LINE.sub("", text) if OWN in text else text
