"""How the text of a file that somebody wrote is shown in a message."""

from __future__ import annotations

import re

from envsolve.lock.sound_pins import without_credentials_in

_LONGEST_SHOWN = 80
_LONGEST_CLEAN = 2000
_TOKEN = re.compile(r"/t/[^/\s'\"]+")


def shown(text: str) -> str:
    """``text`` of a file as a message may quote it: in quotes, on one line, short, and without credentials."""
    safe = clean(text)
    return repr(safe if len(safe) <= _LONGEST_SHOWN else f"{safe[:_LONGEST_SHOWN]}...")


def clean(text: str) -> str:
    """``text`` of a file, or what was said about one, without credentials; of a long one the beginning."""
    return _TOKEN.sub("", without_credentials_in(text[:_LONGEST_CLEAN]))
