"""Whether a conda package stays inside the environment it is linked into.

rattler 0.28 links whatever ``info/paths.json`` names, ``../`` in it as well, so a package is looked at when it lies in
the cache and before any of it is linked. Names of entry points rattler checks itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_LEADS_OUT = re.compile(r"(?:\A|[/\\])\.\.(?:[/\\]|\Z)|\A[/\\]|\A[A-Za-z]:")
"""By the rules of both systems: what is a name for one may be a place for the other."""


class EscapeError(Exception):
    """A package that names a place outside of its environment."""


def require_inside(package: str, paths: Iterable[str]) -> None:
    """Raise EscapeError if one of the ``paths`` that ``package`` lists leads out of its environment."""
    outside = next(filter(_LEADS_OUT.search, paths), None)
    if outside is not None:
        raise EscapeError(f"{package} contains {outside!r}, which is outside of the environment")
