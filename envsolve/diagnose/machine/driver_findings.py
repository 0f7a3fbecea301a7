"""Findings about the driver in the words of the table that the validation of environments speaks with.

The same fault has the same id there and here; here the advice is also fitted to the machine's GPUs, so that nobody is
told to update to a driver that dropped them.
"""

from __future__ import annotations

from collections.abc import Iterable

from envsolve.diagnose.machine.driver_install import fitting
from envsolve.diagnose.machine.survey import Survey
from envsolve.model.finding import Finding, Severity
from envsolve.validation.driver_advice import Advice
from envsolve.validation.driver_errors import DriverError


def of_driver(
    survey: Survey, error: DriverError, seen: str, evidence: Iterable[str], severity: Severity = Severity.ERROR
) -> Finding:
    """The finding of ``error``; ``seen`` are the sentences on this very case, and follow its cause."""
    fix, commands = told(survey, error.advice)
    return Finding(
        error.id,
        error.title,
        severity,
        " ".join(filter(None, (error.cause, seen))),
        fix,
        commands,
        tuple(evidence),
        in_scope=error.in_scope,
    )


def told(survey: Survey, advice: Iterable[Advice]) -> tuple[str, tuple[str, ...]]:
    """The sentences and the commands of the advice that holds here."""
    held = [it for it in fitting(advice, survey.limit) if it.place is None or it.place in survey.places]
    commands = dict.fromkeys(command for it in held for command in it.commands)
    return " ".join(it.text for it in held), tuple(commands)
