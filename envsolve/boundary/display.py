"""Make text from outside safe to print: names of GPUs, answers of servers, metadata of wheels and environments."""

from __future__ import annotations

import re
from collections.abc import Iterable

from envsolve.boundary.secrets import without_secrets

_SHORT = 256
_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")


def one_line(text: str) -> str:
    r"""``text`` on one line, without secrets, with control, format and bidirectional characters as ``\uXXXX``.

    A terminal would interpret them, and a line break would let the text forge a line of envsolve's own, such as
    ``hint:``.
    """
    text = without_secrets(text)
    return text if text.isprintable() else "".join(map(_visible, " ".join(text.split())))


def short_line(text: str) -> str:
    """``text`` like :func:`one_line`, cut to 256 characters: a name, or output of a program."""
    line = one_line(text[: 4 * _SHORT])
    return line if len(line) <= _SHORT else f"{line[: _SHORT - 3]}..."


def escaped(text: str) -> str:
    r"""``text`` of several lines, without secrets, with the same characters escaped.

    Line breaks, tabs and colours stay.

    A JSON document stays the same document, since ``\uXXXX`` is how JSON writes a character.
    """
    lines = without_secrets(text).replace("\r\n", "\n").split("\n")
    return "\n".join(line if line.isprintable() else _escaped_line(line) for line in lines)


def escaped_character(character: str) -> str:
    r"""``character`` as ``\uXXXX``, or as two of these for one beyond the first 65,536, as in JSON."""
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _escaped_line(line: str) -> str:
    parts = _COLOUR.split(line)
    return "".join(part if at % 2 else "".join(map(_visible, part)) for at, part in enumerate(parts))


def _visible(character: str) -> str:
    return character if character.isprintable() or character == "\t" else escaped_character(character)


def size_text(size: float) -> str:
    """``3.4 MB``; a kB has 1000 bytes, as in ENVSOLVE_CACHE_SIZE."""
    unit = "bytes"
    for larger in ("kB", "MB", "GB"):
        if size < 1000:  # noqa: PLR2004 - the step between units
            break
        size, unit = size / 1000, larger
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"


def listed(names: Iterable[str], most: int = 3) -> str:
    """``a, b, c and 4 more``; each name once."""
    found = list(dict.fromkeys(names))
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more
