"""Keep the finding nearest to the cause of a problem, by data/findings/nearest.toml."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple

from envsolve.findings.catalogue import shipped, strings
from envsolve.model.finding import Finding, merged, worst_first


class Nearer(NamedTuple):
    """The findings that one makes superfluous: those that follow from it, and coarser ones of the same thing.

    It does so if a line of its evidence has the pattern ``evidence``.
    """

    explains: tuple[str, ...]
    settles: tuple[str, ...]
    evidence: str


@cache
def nearer() -> Mapping[str, Nearer]:
    """Every finding that makes others superfluous."""
    consequences = dict(shipped().rows("consequences"))

    def listed(value: object) -> tuple[str, ...]:
        known = (strings(consequences[it[1:]]) if it.startswith("@") else (it,) for it in strings(value))
        return tuple(it for ids in known for it in ids)

    return {
        name: Nearer(listed(row.get("explains")), listed(row.get("settles")), str(row.get("evidence", "")))
        for name, row in shipped().rows("nearest")
    }


def nearer_than(identifier: str) -> frozenset[str]:
    """The findings that can be nearer to the cause than this one."""
    return frozenset(name for name, it in nearer().items() if identifier in (*it.explains, *it.settles))


def nearest_the_cause(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings without those that another one explains, the most severe first.

    Two with the same id about the same thing become the more severe one, with the evidence of both. A finding can only
    be explained by one that is at least as severe.
    """
    joined = _joined(findings)
    unexplained = [it for it in joined if not any(explains(other, it) for other in joined)]
    return worst_first(unexplained)


def _joined(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    found: dict[tuple[str, str | None], Finding] = {}
    for it in findings:
        key = (it.id, it.about)
        found[key] = merged(found[key], it) if key in found else it
    return tuple(found.values())


def explains(first: Finding, other: Finding) -> bool:
    """Whether ``other`` follows from ``first``, which is at least as severe or was examined more closely."""
    row = nearer().get(first.id)
    if row is None or not re.search(row.evidence, "\n".join(first.evidence)):
        return False
    return other.id in row.settles or (other.id in row.explains and first.severity.rank <= other.severity.rank)
