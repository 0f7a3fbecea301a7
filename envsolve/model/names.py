"""Project names as indexes compare them."""

from __future__ import annotations

import re
from functools import cache

_RUNS = re.compile(r"[-_.]+")
_VALID = re.compile(r"[A-Z0-9](?:[A-Z0-9._-]*[A-Z0-9])?\Z", re.IGNORECASE | re.ASCII)


@cache
def normalized(name: str) -> str:
    """Return ``name`` in normalized form: lower case, with one hyphen for each run of ``-``, ``_`` and ``.``.

    https://packaging.python.org/specifications/name-normalization
    """
    return _RUNS.sub("-", name).lower()


def is_name(text: str) -> bool:
    """Whether ``text`` is a valid project name: letters, digits, hyphens, dots and underscores."""
    return _VALID.match(text) is not None
