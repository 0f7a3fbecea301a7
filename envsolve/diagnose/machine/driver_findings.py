"""Findings about the driver, as the catalogue has them for every check.

The same fault has the same id in a validation and here; here the advice also fits the machine's GPUs, so that nobody is
sent to a driver that dropped them.
"""

from __future__ import annotations

from collections.abc import Iterable

from envsolve.diagnose.machine.driver_install import bounds
from envsolve.diagnose.machine.survey import Survey
from envsolve.findings.catalogue import shipped
from envsolve.model.finding import Finding, Severity
from envsolve.validation.places import facts_of


def of_driver(
    survey: Survey, identifier: str, seen: str, evidence: Iterable[str], severity: Severity = Severity.ERROR
) -> Finding:
    """The finding of that id; ``seen`` are the sentences on this very case, and follow its cause."""
    limit = None if survey.limit.last is None else " ".join(bounds(survey.limit))
    facts = facts_of(survey.places, driver_limit=limit)
    return shipped().entry(identifier).as_finding(facts, (seen,), evidence, severity=severity)
