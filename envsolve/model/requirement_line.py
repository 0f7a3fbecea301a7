"""Split a requirements file into lines as pip does: join continued lines, and separate comments and hashes.

https://pip.pypa.io/en/stable/reference/requirements-file-format
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

ALGORITHMS = ("sha256", "sha384", "sha512")
"""The algorithms that pip accepts (https://pip.pypa.io/en/stable/topics/secure-installs)."""
_COMMENT = re.compile(r"(?:^|\s+)#.*$")
"""pip's rule: within a word, such as an address, ``#`` starts no comment."""
_HASH = re.compile(r"\s--hash(?:=|\s+|\Z)(\S*)")


class LogicalLine(NamedTuple):
    """A line with the ``number`` of its first physical line. ``content``, ``comment`` or both may be empty."""

    number: int
    content: str
    comment: str


def logical_lines(text: str) -> Iterator[LogicalLine]:
    """Yield the lines of ``text``.

    A comment is not continued, and ends a continued line (pip/_internal/req/req_file.py).
    """
    number, started = 0, ""
    for position, line in enumerate(text.splitlines(), start=1):
        number = number or position
        if _COMMENT.match(line):
            if started:
                yield _apart(number, started)
            yield _apart(position, line)
        elif line.endswith("\\"):
            started += line.strip("\\")
            continue
        else:
            yield _apart(number, started + line)
        number, started = 0, ""
    if started:
        yield _apart(number, started)


def contents_of(text: str) -> Iterator[str]:
    """Yield the contents of the lines of ``text``, without comments and empty lines."""
    yield from (it.content for it in logical_lines(text) if it.content)


def as_lines(contents: Iterable[str]) -> str:
    """Return a requirements file with ``contents``, each on its own line even if it ends in a backslash."""
    return "".join(f"{content} \n" if content.endswith("\\") else f"{content}\n" for content in contents)


def without_comment(line: str) -> str:
    """Return ``line`` without the comment at its end."""
    return _COMMENT.sub("", line).strip()


def without_hashes(content: str) -> str:
    """Return a requirement without its ``--hash`` options."""
    return _HASH.sub("", f" {content}").strip()


def hashes_of(content: str) -> tuple[str, ...]:
    """Return the hashes of a requirement as written, ``sha256:0a...``, each once."""
    return tuple(dict.fromkeys(found[1] for found in _HASH.finditer(f" {content}")))


def parse_hash(text: str) -> tuple[str, str]:
    """Return the algorithm and the digest of a hash. Raises ValueError with the reason if pip does not accept it."""
    algorithm, _, digest = text.partition(":")
    if algorithm not in ALGORITHMS or not digest:
        raise ValueError(f"--hash takes an algorithm and a digest, such as sha256:0a1b..., not {text!r}")
    return algorithm, digest.lower()


def _apart(number: int, line: str) -> LogicalLine:
    found = _COMMENT.search(line)
    end = len(line) if found is None else found.start()
    return LogicalLine(number, line[:end].strip(), line[end:].strip())
