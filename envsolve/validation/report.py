"""The result of a validation: whether each probe passed, the findings, and the CUDA libraries."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from envsolve.model.finding import Finding, Severity, merged, worst_first
from envsolve.model.note import Note

if TYPE_CHECKING:
    from envsolve import documents

IMPORTS = "imports"
"""The probe that imports all modules and found no failure."""
IMPORT = "import "
"""The prefix of the names of probes of single modules that could not be imported."""


class Status(StrEnum):
    """How a probe ended."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    SKIP = "skip"


class Owner(StrEnum):
    """The owner of a library file."""

    ENVIRONMENT = "environment"
    SYSTEM = "system"
    """Neither the environment nor the driver: a toolkit of the machine, or another environment."""
    DRIVER = "driver"


class Library(NamedTuple):
    """A CUDA library: the name it is loaded by, its file, its owner, and its version if known."""

    soname: str
    path: Path
    owner: Owner
    version: str | None = None

    def as_json(self) -> documents.Library:
        """The object of the JSON contract."""
        return {"soname": self.soname, "path": str(self.path), "owner": self.owner.value, "version": self.version}


class Shadowed(NamedTuple):
    """Copies of a library that the loader would have used without the one before them."""

    soname: str
    path: str
    copies: tuple[str, ...]


class StaticReport(NamedTuple):
    """Static checks: findings, the most severe first, the libraries that frameworks would load, and further copies."""

    findings: tuple[Finding, ...]
    libraries: tuple[Library, ...]
    shadowed: tuple[Shadowed, ...] = ()


class ProbeReport(NamedTuple):
    """One probe: ``seconds`` it took, one line of ``detail`` for people, and its findings, the most severe first."""

    name: str
    status: Status
    seconds: float
    detail: str
    findings: tuple[Finding, ...] = ()
    measured: Mapping[str, object] = MappingProxyType({})
    """Further results for programs: operations with errors and times, devices, versions."""

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
    """The whole validation: ``python`` is the validated interpreter, ``libraries`` were loaded."""

    python: Path
    probes: tuple[ProbeReport, ...]
    libraries: tuple[Library, ...]
    proofs: tuple[str, ...] = ()
    """The probes that compute: those of the frameworks, or the driver's if there is no framework."""
    notes: tuple[Note, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing failed and something was computed."""
        return self.is_unbroken and any(it.status is Status.PASS for it in self.probes if it.name in self.proofs)

    @property
    def is_unbroken(self) -> bool:
        """Whether nothing failed, even if nothing could be tested."""
        return not any(probe.status is Status.FAIL for probe in self.probes)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Every finding once, the most severe first. A repeated finding of a later probe is evidence for the first."""
        found: dict[object, Finding] = {}
        for probe in self.probes:
            known = dict(found)
            for finding in probe.findings:
                again = (finding.id, finding.about) if finding.about is not None else None
                if again in known:
                    found[again] = merged(known[again], finding)
                else:
                    found[finding if again in found or again is None else again] = finding
        return worst_first(found.values())


def concluded(name: str, seconds: float, detail: str, findings: tuple[Finding, ...]) -> ProbeReport:
    """The report of a probe that fails if it has an error as a finding, and passes otherwise."""
    ordered = worst_first(findings)
    failed = any(it.severity is Severity.ERROR for it in ordered)
    return ProbeReport(name, Status.FAIL if failed else Status.PASS, seconds, detail, ordered)
