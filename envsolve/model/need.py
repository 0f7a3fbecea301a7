"""A requirement as metadata and people write it (PEP 508), and whether its marker holds.

packaging takes 90 microseconds for a line with a marker, and a lock reads thousands of them, most of which ask for
extras that nobody wants: the usual forms are read here, the others by packaging.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from envsolve.model.names import normalized
from envsolve.model.version_order import stretches

if TYPE_CHECKING:
    from packaging.markers import Marker

_USUAL = re.compile(
    r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*"
    r"(?:\[([A-Za-z0-9._,\s-]*)\])?\s*"
    r"(?:\(([^()]*)\)|([^()@;'\"]*?))\s*(?:;(.*))?\Z",
    re.ASCII | re.DOTALL,
)
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")
_AND_OR = re.compile(r"\s+(and|or)\s+")
_IN_BRACKETS = re.compile(r"\([^()]*\)")
_MOST_QUOTED = 200


class Need(NamedTuple):
    """``name[extras] specifier ; marker``, or ``name @ url``. Names of project and extras are normalized.

    ``for_extra`` is the extra without which ``marker`` cannot hold, "" where there is no such extra.
    """

    name: str
    extras: tuple[str, ...]
    specifier: str
    marker: str
    url: str = ""
    for_extra: str = ""

    def __str__(self) -> str:
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        return f"{self.name}{extras}{f' @ {self.url}' if self.url else self.specifier}"


def joined(extras: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    """The extras of two requirements on one project."""
    return tuple(sorted({*extras, *others}))


@cache
def parse_need(line: str) -> Need:
    """Read one requirement. Raises ValueError where it is none."""
    usual = _USUAL.match(line)
    if usual is None:
        return _by_packaging(line)
    name, extras, bracketed, bare, marker = usual.groups()
    specifier = (bracketed or bare or "").replace(" ", "")
    if specifier and specifier[0] not in "<>=!~":
        return _by_packaging(line)
    wanted = (
        tuple(sorted({normalized(extra.strip()) for extra in extras.split(",") if extra.strip()})) if extras else ()
    )
    marker = (marker or "").strip()
    return Need(normalized(name), wanted, specifier, marker, for_extra=_extra_of(marker))


def _by_packaging(line: str) -> Need:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        requirement = Requirement(line)
    except InvalidRequirement as error:
        raise ValueError(f"{_quoted(line)} is not a requirement: {str(error).splitlines()[0]}") from None
    return Need(
        normalized(requirement.name),
        tuple(sorted(map(normalized, requirement.extras))),
        str(requirement.specifier),
        "" if requirement.marker is None else str(requirement.marker),
        requirement.url or "",
        _extra_of(str(requirement.marker or "")),
    )


def _extra_of(marker: str) -> str:
    """The extra that a marker cannot do without: one that stands by itself between the ``and`` of the whole.

    Two of them never hold at once, so that one says enough.
    """
    if "extra" not in marker:
        return ""
    parts = _AND_OR.split(_IN_BRACKETS.sub("", marker)) if "(" in marker else _AND_OR.split(marker)
    if "or" in parts[1::2]:
        return ""
    named = next((found for part in parts[::2] if (found := _EXTRA.fullmatch(part.strip())) is not None), None)
    return "" if named is None else normalized(named[1])


class Markers:
    """Whether markers hold for one interpreter; each is worked out once. ``known`` are those that are worked out."""

    def __init__(self, environment: Mapping[str, str], known: Mapping[tuple[str, str], bool] | None = None) -> None:
        self._environment = dict(environment)
        self.known = dict(known or {})

    def holds(self, marker: str, extra: str = "") -> bool:
        """Whether ``marker`` holds with ``extra`` asked for. Raises ValueError where it is no marker."""
        if not marker:
            return True
        key = (marker, extra if "extra" in marker else "")
        known = self.known.get(key)
        if known is None:
            known = self.known[key] = self._evaluate(*key)
        return known

    def prepare(self) -> None:
        """Load what markers are worked out with, 5 ms: for who is about to wait for metadata, which will hold some.

        Nothing where some are known, since that is mostly all.
        """
        if not self.known:
            import packaging.markers  # noqa: F401 - for later

    def _evaluate(self, marker: str, extra: str) -> bool:
        from packaging.markers import InvalidMarker, UndefinedComparison

        try:
            return _parsed(marker).evaluate({**self._environment, "extra": extra})
        except (InvalidMarker, UndefinedComparison) as error:
            raise ValueError(f"{_quoted(marker)} is not a marker: {str(error).splitlines()[0]}") from None


@cache
def _parsed(marker: str) -> Marker:
    from packaging.markers import Marker

    return Marker(marker)


def _quoted(text: str) -> str:
    """``text`` in quotes, cut where it is long: metadata may hold anything."""
    return repr(text if len(text) <= _MOST_QUOTED else f"{text[:_MOST_QUOTED]}...")


@cache
def check_specifier(specifier: str) -> None:
    """Raise ValueError where ``specifier`` is none, as in the metadata of some old files."""
    if stretches(specifier) is None:
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        try:
            SpecifierSet(specifier)
        except InvalidSpecifier:
            raise ValueError(f"{_quoted(specifier)} is not a version specifier") from None


@cache
def is_marker(text: str) -> bool:
    """Whether ``text`` is an environment marker (PEP 508), or empty."""
    try:
        check_marker(text)
    except ValueError:
        return False
    return True


def check_marker(marker: str) -> None:
    """Raise ValueError where ``marker`` is neither one nor empty."""
    if marker:
        from packaging.markers import InvalidMarker, Marker

        try:
            Marker(marker)
        except InvalidMarker as error:
            raise ValueError(f"{_quoted(marker)} is not a marker: {str(error).splitlines()[0]}") from None
