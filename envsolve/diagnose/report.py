"""The result of a list of checks, of a machine or of an environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from envsolve.model.finding import Finding


class Report(NamedTuple):
    """The findings, the most severe first, and what was examined, ready for JSON.

    ``checks`` are the subjects of the checks, each with the ids of its findings.
    """

    findings: tuple[Finding, ...]
    inventory: Mapping[str, object]
    checks: tuple[tuple[str, tuple[str, ...]], ...]


def found_by(found: list[tuple[str, list[Finding]]]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The subjects of checks with the ids of their findings."""
    return tuple((subject, tuple(it.id for it in of_check)) for subject, of_check in found)
