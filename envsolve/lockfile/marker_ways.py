"""Environment markers in disjunctive normal form, so that markers can be combined and stay short.

A way is a set of comparisons that are joined with ``and``; a marker holds if one of its ways holds. No extra is
requested, and only the named groups are: ``extra == "gpu"`` never holds, and the rest of a marker is about machines and
Pythons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from envsolve.boundary.files import FileError
from envsolve.lockfile.text_file import shown
from envsolve.model.need import is_marker

_TOKEN = re.compile(
    r"""\s*(?: (?P<word>[()]|(?:and|or)\b)
             | (?P<left>[a-z_.]+|"[^"]*"|'[^']*') \s* (?P<operator>[<>=!~]+|in\b|not\s+in\b) \s*
               (?P<right>[a-z_.]+|"[^"]*"|'[^']*') )\s*""",
    re.VERBOSE,
)
_OPPOSITE = {"==": "!=", "<": ">=", "<=": ">", "in": "not in"}
_OPPOSITE |= {opposite: operator for operator, opposite in _OPPOSITE.items()}
_GROUPS = ("extra", "extras", "dependency_groups")
_MOST = 64
"""The maximum number of ways of one marker. Real packages have one or two; a file with more is made to take long."""


class Comparison(NamedTuple):
    """A comparison ``left operator right``. Values are in quotes, variables are not."""

    left: str
    operator: str
    right: str

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"

    @property
    def opposite(self) -> Comparison | None:
        """Return the comparison that holds exactly if this one does not, or None if there is none."""
        operator = _OPPOSITE.get(self.operator)
        return None if operator is None else self._replace(operator=operator)


Way = frozenset[Comparison]
Ways = frozenset[Way]
NOWHERE: Ways = frozenset()
ANYWHERE: Ways = frozenset({Way()})


@lru_cache(maxsize=1024)
def ways_of(marker: str, groups: frozenset[str] = frozenset()) -> Ways:
    """Return the ways in which ``marker`` holds for these dependency groups; "" holds anywhere.

    Raises FileError if it is invalid or too long.
    """
    if not marker:
        return ANYWHERE
    if not is_marker(marker):
        raise FileError(f"{shown(marker)} is not a marker")
    tokens = list(_TOKEN.finditer(marker))
    if sum(len(token[0]) for token in tokens) != len(marker):
        raise FileError(f"the marker {shown(marker)} is not supported")
    try:
        return _any_of(tokens[::-1], groups)
    except RecursionError:
        raise FileError("it has a marker with too many nested brackets") from None


def either(one: Ways, other: Ways) -> Ways:
    """Return where ``one`` or ``other`` holds. Raises FileError if that is too long."""
    return _shortened(one | other)


def both(one: Ways, other: Ways) -> Ways:
    """Return where both ``one`` and ``other`` hold. Raises FileError if that is too long."""
    if other == ANYWHERE:
        return one
    if len(one) * len(other) > _MOST * 4:
        raise _too_many()
    together = (first | second for first in one for second in other)
    return _shortened({way for way in together if not any(it.opposite in way for it in way)})


def implies(one: Ways, other: Ways) -> bool:
    """Whether each way of ``one`` is contained in a way of ``other``, compared textually."""
    return all(any(wider <= way for wider in other) for way in one)


def may_hold(ways: Ways, known: Mapping[str, str]) -> bool:
    """Whether ``ways`` may hold if the marker variables in ``known`` have these values, and others any value."""
    return any(all(_may_hold(it, known) for it in way) for way in ways)


def marker_of(ways: Ways) -> str:
    """Return the marker that holds in ``ways``, "" for anywhere."""
    if ways == ANYWHERE:
        return ""
    texts = [sorted(map(str, way)) for way in ways]
    alone = len(texts) == 1
    written = (" and ".join(it) if alone or len(it) == 1 else f"({' and '.join(it)})" for it in sorted(texts))
    return " or ".join(written)


def _may_hold(comparison: Comparison, known: Mapping[str, str]) -> bool:
    if comparison.left not in known and comparison.right not in known:
        return True
    from packaging.markers import Marker, UndefinedComparison

    try:
        return Marker(str(comparison)).evaluate(dict(known))
    except UndefinedComparison:
        return True


def _any_of(tokens: list[re.Match[str]], groups: frozenset[str]) -> Ways:
    """The ways of ``tokens``, the next one last, up to an unmatched closing bracket.

    ``and`` binds tighter than ``or``.
    """
    found = [*_all_of(tokens, groups)]
    while tokens and tokens[-1]["word"] == "or":
        tokens.pop()
        found += _all_of(tokens, groups)
    return _shortened(found)


def _all_of(tokens: list[re.Match[str]], groups: frozenset[str]) -> Ways:
    found = _one_of(tokens, groups)
    while tokens and tokens[-1]["word"] == "and":
        tokens.pop()
        found = both(found, _one_of(tokens, groups))
    return found


def _one_of(tokens: list[re.Match[str]], groups: frozenset[str]) -> Ways:
    token = tokens.pop()
    if token["word"] is None:
        return _compared(token, groups)
    found = _any_of(tokens, groups)
    tokens.pop()
    return found


def _compared(token: re.Match[str], groups: frozenset[str]) -> Ways:
    sides = (token["left"], token["right"])
    operator = " ".join(token["operator"].split())
    if not any(side in _GROUPS for side in sides):
        return frozenset({Way({Comparison(_quoted(sides[0]), operator, _quoted(sides[1]))})})
    is_named = "dependency_groups" in sides and sides[0][1:-1] in groups
    if operator in ("==", "in"):
        return ANYWHERE if is_named else NOWHERE
    if operator in ("!=", "not in"):
        return NOWHERE if is_named else ANYWHERE
    raise FileError(f"the marker {shown(token[0])} is not supported")


def _quoted(side: str) -> str:
    """A value in single quotes, as uv writes them, so that equal values have equal text."""
    return f"'{side[1:-1]}'" if side[0] == '"' and "'" not in side else side


def _shortened(ways: Iterable[Way]) -> Ways:
    """The same ways without those that others include, and without redundant comparisons."""
    left = _widest(ways)
    while (shorter := _widest(_without_needless(left))) != left:
        left = shorter
    return left


def _widest(ways: Iterable[Way]) -> Ways:
    different = frozenset(ways)
    left = frozenset(way for way in different if not any(other < way for other in different))
    if len(left) > _MOST:
        raise _too_many()
    return left


def _without_needless(ways: Ways) -> Iterable[Way]:
    """Replace ``A or (B and not A)`` with ``A or B``: if A holds, the second part does not matter."""
    comparisons = frozenset().union(*ways)
    left = set(ways)
    for it in comparisons:
        opposite = it.opposite
        if opposite in comparisons:
            wider = [way - {opposite} for way in left if opposite in way]
            left = {way - {it} if it in way and any(one <= way for one in wider) else way for way in left}
    return left


def _too_many() -> FileError:
    return FileError(f"it has a marker with more than {_MOST} alternatives")
