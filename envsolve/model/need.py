"""A requirement in metadata or from a user (PEP 508), and the evaluation of its marker, as plain text from packaging.

A Need is what is cached of metadata between runs, and what the resolver compares. Its names are normalized.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from packaging.markers import InvalidMarker, Marker, UndefinedComparison
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from envsolve.model.names import normalized
from envsolve.model.reference import named

_EXTRA = re.compile(r'extra == "([^"]+)"')
_AND_OR = re.compile(r" (and|or) ")
_IN_BRACKETS = re.compile(r"\([^()]*\)")
_OPEN_MARKER = re.compile(r"([/\\]\S*);\s")
"""A semicolon right after an address. pip reads a marker after it, PEP 508 only after a space as well."""
_VERSION = re.compile(r"\d+(?:\.\d+)+(?:\.\*)?")
"""A valid name in PEP 508 that no package has: the version in ``-f pytorch 2.5``."""
_LONGEST = 4000
"""The maximum length of a requirement. int refuses versions with more digits because they take long."""
_MOST_QUOTED = 200
_UPPER = re.compile(r"(?:^|,)\s*(?:<|==|~=)")


class Need(NamedTuple):
    """``name[extras] specifier ; marker``, or ``name @ url``. Names of projects and extras are normalized.

    ``for_extra`` is the extra without which ``marker`` cannot hold, "" if there is no such extra. ``because`` is the
    reason for the requirement if it is not in metadata.
    """

    name: str
    extras: tuple[str, ...]
    specifier: str
    marker: str
    url: str = ""
    for_extra: str = ""
    because: str = ""

    def __str__(self) -> str:
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        return f"{self.name}{extras}{f' @ {named(self.url)}' if self.url else self.specifier}"

    @property
    def in_words(self) -> str:
        """The requirement, with its reason if it is not in metadata."""
        return f"{self}, as {self.because}" if self.because else str(self)


def joined(extras: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    """Return the extras of two requirements on one project."""
    return tuple(sorted({*extras, *others}))


@cache
def parse_need(line: str) -> Need:
    """Read a requirement. Raises ValueError if it is invalid."""
    if len(line) > _LONGEST:
        raise ValueError(f"{_quoted(line)} is not a requirement: it has {len(line)} characters")
    if _VERSION.fullmatch(line.strip()):
        raise ValueError(f"{_quoted(line)} is a version: write it with its package, as in 'numpy=={line.strip()}'")
    try:
        requirement = Requirement(with_open_marker(line))
    except InvalidRequirement as error:
        raise ValueError(f"{_quoted(line)} is not a requirement: {str(error).splitlines()[0]}") from None
    marker = str(requirement.marker or "")
    return Need(
        normalized(requirement.name),
        tuple(sorted(map(normalized, requirement.extras))),
        ",".join(map(str, requirement.specifier)),
        marker,
        requirement.url or "",
        _extra_of(marker),
    )


def with_open_marker(line: str) -> str:
    """Return a requirement with a space between its address and its marker: ``x @ https://...whl; marker``."""
    return _OPEN_MARKER.sub(r"\1 ; ", line, count=1)


def _extra_of(marker: str) -> str:
    """The extra that a marker requires: a comparison joined to the rest with ``and`` at the top level.

    Two such extras never hold at once, so one is enough.
    """
    parts = _AND_OR.split(_IN_BRACKETS.sub("", marker))
    named = next((found for part in parts[::2] if (found := _EXTRA.fullmatch(part.strip())) is not None), None)
    return "" if named is None or "or" in parts[1::2] else normalized(named[1])


class Markers:
    """Evaluates markers for one interpreter, each once."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = dict(environment)
        self._known: dict[tuple[str, str], bool] = {}

    def holds(self, marker: str, extra: str = "") -> bool:
        """Whether ``marker`` holds with ``extra`` requested. Raises ValueError if it is invalid."""
        if not marker:
            return True
        key = (marker, extra if "extra" in marker else "")
        if key not in self._known:
            try:
                self._known[key] = _marker(marker).evaluate({**self._environment, "extra": extra})
            except UndefinedComparison as error:
                raise ValueError(f"{_quoted(marker)} is not a marker: {error}") from None
        return self._known[key]


@cache
def _marker(text: str) -> Marker:
    try:
        return Marker(text)
    except InvalidMarker as error:
        raise ValueError(f"{_quoted(text)} is not a marker: {str(error).splitlines()[0]}") from None


def is_marker(text: str) -> bool:
    """Whether ``text`` is an environment marker (PEP 508), or empty."""
    try:
        return not text or bool(_marker(text))
    except ValueError:
        return False


@cache
def specifier_of(text: str) -> SpecifierSet:
    """Return the versions that ``text`` admits. Raises ValueError if it is not a specifier."""
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        raise ValueError(f"{_quoted(text)} is not a version specifier") from None


def _quoted(text: str) -> str:
    """``text`` in quotes, truncated, because metadata may contain anything."""
    return repr(text if len(text) <= _MOST_QUOTED else f"{text[:_MOST_QUOTED]}...")


def lower_bound(specifier: str) -> str:
    """Return the clauses of ``specifier`` that exclude older versions and no newer ones; "" if there are none.

    ``~=2.1`` counts as ``>=2.1``. An exact version says nothing about older ones. Raises ValueError if it is invalid.
    """
    clauses = {">=": ">=", ">": ">", "~=": ">="}
    found = ((clauses[it.operator], it.version) for it in specifier_of(specifier) if it.operator in clauses)
    return ",".join(sorted(f"{operator}{version}" for operator, version in found))


def admits_nothing(specifier: str) -> bool:
    """Whether no version at all meets ``specifier``, as with ``>2,<1``. Raises ValueError if it is invalid."""
    return specifier_of(specifier).is_unsatisfiable()


def is_limited(specifier: str) -> bool:
    """Whether a clause of ``specifier`` excludes versions because they are newer."""
    return _UPPER.search(specifier) is not None


def is_pin(specifier: str) -> bool:
    """Whether a clause of ``specifier`` admits a single version, as ``==1.0`` and ``===1.0`` do."""
    clauses = map(str.strip, specifier.split(","))
    return any(it.startswith("==") and (it.startswith("===") or not it.endswith(".*")) for it in clauses)
