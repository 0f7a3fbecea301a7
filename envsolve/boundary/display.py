"""Text from outside, made safe to print: names of GPUs, answers of servers, words of wheels and environments."""

from __future__ import annotations


def one_line(text: str) -> str:
    r"""``text`` on one line, with control, format and bidirectional characters escaped: ``\x1b``, ``\u202e``.

    A terminal would obey them, and a line break would let the text forge a line of envsolve's own, such as ``hint:``.
    """
    return text if text.isprintable() else "".join(map(_visible, " ".join(text.split())))


def escaped(text: str) -> str:
    """``text`` with the characters that :func:`one_line` escapes, but with its line breaks and tabs as they are."""
    if text.isprintable():
        return text
    return "".join(character if character in "\n\t" else _visible(character) for character in text)


def _visible(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
