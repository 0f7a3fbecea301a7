"""Findings on a machine, with the words of the catalogue.

The same fault has the same id in a validation and here; here the advice also fits the machine's GPUs, so that no one is
sent to a driver that dropped them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from envsolve.diagnose.machine.driver_install import bounds
from envsolve.diagnose.machine.library_variable import without
from envsolve.diagnose.machine.survey import Survey
from envsolve.findings.catalogue import shipped
from envsolve.host.loader import LIBRARY_PATH
from envsolve.model.finding import Finding, Severity
from envsolve.validation.places import facts_of


def of_machine(
    survey: Survey,
    identifier: str,
    facts: Mapping[str, object] = {},
    evidence: Iterable[str] = (),
    *,
    severity: Severity | None = None,
    about: str | None = None,
    seen: Iterable[str] = (),
) -> Finding:
    """The finding of the check ``identifier``, with the ``facts`` that its sentences name and those of every check.

    ``seen`` are sentences on this very case, and follow its cause.
    """
    limit = None if survey.limit.last is None else " ".join(bounds(survey.limit))
    here = facts_of(survey.places, driver_limit=limit)
    entry = shipped().entry(identifier)
    finding = entry.as_finding(lambda it: facts.get(it, here(it)), seen, evidence, severity=severity, about=about)
    return finding._replace(sources=entry.sources)


def facts_without(directories: Sequence[str], survey: Survey) -> dict[str, object]:
    """Facts on how to keep ``directories`` of LD_LIBRARY_PATH from programs, for the step ``own-libraries``."""
    cut = without(survey.environ[LIBRARY_PATH], survey.driver_directory, lambda entry: entry.rstrip("/") in directories)
    return {"cut": next(iter(cut.commands), None), "keeps": cut.keeps, "directories": tuple(directories)}
