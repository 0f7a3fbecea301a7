"""What a validation found: per probe whether it passed, the findings, and which CUDA libraries there are."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from envsolve.model.finding import Finding, Severity
from envsolve.model.note import Note

if TYPE_CHECKING:
    from envsolve import documents

IMPORTS = "imports"
"""The probe of all modules that could be imported."""
IMPORT = "import "
"""How the names begin of probes of one module, which could not."""


class Status(StrEnum):
    """How a probe ended."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    SKIP = "skip"


class Owner(StrEnum):
    """Whose file a library is."""

    ENVIRONMENT = "environment"
    SYSTEM = "system"
    """Neither the environment's nor the driver's: a toolkit of the machine, or another environment."""
    DRIVER = "driver"


class Library(NamedTuple):
    """A CUDA library: the name it is loaded by, its file, whose it is, and its version where that is known."""

    soname: str
    path: Path
    owner: Owner
    version: str | None = None

    def as_json(self) -> documents.Library:
        """The object of the JSON contract."""
        return {"soname": self.soname, "path": str(self.path), "owner": self.owner.value, "version": self.version}


class Shadowed(NamedTuple):
    """Copies of a library that the loader would have taken, had the one before them not been there."""

    soname: str
    path: str
    copies: tuple[str, ...]


class StaticReport(NamedTuple):
    """What files show: findings, the worst first, where frameworks' CUDA libraries would come from, and copies."""

    findings: tuple[Finding, ...]
    libraries: tuple[Library, ...]
    shadowed: tuple[Shadowed, ...] = ()


class ProbeReport(NamedTuple):
    """One probe: ``seconds`` it took, one line of ``detail`` for people, and what it found, the worst first."""

    name: str
    status: Status
    seconds: float
    detail: str
    findings: tuple[Finding, ...] = ()
    measured: Mapping[str, object] = MappingProxyType({})
    """What else the probe tells, for programs: operations with errors and times, devices, versions."""

    def as_json(self) -> documents.Probe:
        """The object of the JSON contract."""
        found: documents.Probe = {
            "name": self.name,
            "status": self.status.value,
            "seconds": self.seconds,
            "detail": self.detail,
            "finding": self.findings[0].id if self.findings else None,
        }
        if self.measured:
            found["measured"] = dict(self.measured)
        return found


class Report(NamedTuple):
    """All of a validation: ``python`` is the interpreter that was validated, ``libraries`` those that were loaded."""

    python: Path
    probes: tuple[ProbeReport, ...]
    libraries: tuple[Library, ...]
    proofs: tuple[str, ...] = ()
    """The probes that compute: those of the frameworks, or the driver's where there is none."""
    notes: tuple[Note, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing failed and something was computed."""
        return self.is_unbroken and any(it.status is Status.PASS for it in self.probes if it.name in self.proofs)

    @property
    def is_unbroken(self) -> bool:
        """Whether nothing failed, be it that nothing could be proven."""
        return not any(probe.status is Status.FAIL for probe in self.probes)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every finding once, the worst first. What a later probe finds again of a framework is evidence for it."""
        found: dict[object, Finding] = {}
        for probe in self.probes:
            known = dict(found)
            for finding in probe.findings:
                again = (finding.id, finding.about) if finding.about is not None else None
                if again in known:
                    found[again] = _merged(known[again], finding)
                else:
                    found[finding if again in found or again is None else again] = finding
        return tuple(sorted(found.values(), key=lambda it: list(Severity).index(it.severity)))


def _merged(first: Finding, again: Finding) -> Finding:
    """One finding of two alike: the words of the worse one, the first where both are as bad, and what both saw."""
    worse = min((first, again), key=lambda it: list(Severity).index(it.severity))
    return worse._replace(evidence=tuple(dict.fromkeys((*first.evidence, *again.evidence))))


def concluded(name: str, seconds: float, detail: str, findings: tuple[Finding, ...] = ()) -> ProbeReport:
    """The report of a probe that fails if it found an error, and passes otherwise."""
    ordered = tuple(sorted(findings, key=lambda it: list(Severity).index(it.severity)))
    failed = any(it.severity is Severity.ERROR for it in ordered)
    return ProbeReport(name, Status.FAIL if failed else Status.PASS, seconds, detail, ordered)
