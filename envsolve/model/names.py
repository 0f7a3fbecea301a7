"""Project names as indexes compare them."""

from __future__ import annotations

import re
from functools import cache

_RUNS = re.compile(r"[-_.]+")
_VALID = re.compile(r"[A-Z0-9](?:[A-Z0-9._-]*[A-Z0-9])?\Z", re.IGNORECASE | re.ASCII)


@cache
def normalized(name: str) -> str:
    """``name`` as every spelling of it compares: lower case, with one dash for each run of ``-``, ``_`` and ``.``.

    https://packaging.python.org/specifications/name-normalization
    """
    return _RUNS.sub("-", name).lower()


def is_name(text: str) -> bool:
    """Whether ``text`` is a project name at all: letters, digits, dashes, dots and underscores."""
    return _VALID.match(text) is not None
