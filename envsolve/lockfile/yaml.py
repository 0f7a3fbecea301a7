"""YAML for the parts of an environment or a lock: strings that stay on their line and stay strings.

The files are written line by line, because comments are half of their value, and no small YAML library writes them.
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
"""Text that every reader takes for a string, except for the words below. A leading digit always needs quotes: 3.10,
1e3, 0b11 and 12:30:45 are numbers for some readers."""
_WORDS = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))
_ESCAPED = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


@lru_cache(maxsize=4096)
def scalar(text: str) -> str:
    """Return ``text`` as YAML on one line: plain if it is read as a string, else quoted.

    Lone surrogates become U+FFFD.
    """
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
