"""Whether a conda package stays inside the environment it is linked into.

rattler 0.28 links whatever ``info/paths.json`` lists, including ``../``. So a package is checked when it is in the
cache, before any of it is linked. rattler itself checks the names of entry points.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_LEADS_OUT = re.compile(r"(?:\A|[/\\])\.\.(?:[/\\]|\Z)|\A[/\\]|\A[A-Za-z]:")
"""By the rules of both systems: a name on one may be a path on the other."""


class EscapeError(Exception):
    """A package with a path outside of its environment."""


def require_inside(package: str, paths: Iterable[str]) -> None:
    """Raise EscapeError if one of the ``paths`` that ``package`` lists leads out of its environment."""
    outside = next(filter(_LEADS_OUT.search, paths), None)
    if outside is not None:
        raise EscapeError(f"{package} contains {outside!r}, which is outside of the environment")
