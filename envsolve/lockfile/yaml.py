"""YAML for the parts of an environment or a lock: strings that stay on their line and stay strings.

The files are written line by line: comments are half of their worth, and no YAML library of the standard weight writes
them.
"""

from __future__ import annotations

import re
from functools import lru_cache

from envsolve.lockfile.toml import escaped_code

_PLAIN = re.compile(
    r"""[A-Za-z_/][A-Za-z0-9_./:+~=%-]*(?<!:)\Z      # names, words and addresses
    |   [0-9][0-9a-z]*(?:\.[0-9a-z]+){2,}\Z         # versions with two dots or more, which no number has
    |   (?!0b)(?=[0-9e]*[a-df])[0-9a-f]{32,}\Z      # checksums with a letter that no number has
    """,
    re.VERBOSE,
)
"""What no reader takes for anything but a string, but for the words below. Else a digit in front means quotes:
3.10, 1e3, 0b11 and 12:30:45 are numbers to some of them."""
_WORDS = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))
_ESCAPED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


@lru_cache(maxsize=4096)
def scalar(text: str) -> str:
    """``text`` as YAML on one line: plain where it reads as a string, else quoted. A lone surrogate becomes U+FFFD."""
    if _PLAIN.match(text) and text.casefold() not in _WORDS:
        return text
    if text.isprintable():
        doubled = text.replace("'", "''")
        return f"'{doubled}'"
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in _ESCAPED:
        return _ESCAPED[character]
    return character if character.isprintable() else escaped_code(character)
