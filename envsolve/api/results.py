"""What the functions give back: frozen values, which say the same as JSON that the commands do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeVar

from envsolve.errors import UsageError
from envsolve.model.finding import Finding, Severity
from envsolve.model.host import Host, Platform
from envsolve.model.note import Note
from envsolve.model.solution import Solution
from envsolve.validation.report import Report

T = TypeVar("T")


class DetectedHost(Host):
    """The machine that :func:`detect` found itself on."""

    __slots__ = ()

    def as_json(self) -> dict[str, object]:
        """The host file that ``hosts`` and ``--host`` read."""
        from envsolve.host.host_file import host_as_json

        return host_as_json(self)


class Environment(NamedTuple):
    """What :func:`solve` found: texts of files, each with its platform, the stack for each platform, and remarks.

    One text may be for all platforms, as in the formats ``json`` and ``pixi``.
    """

    texts: tuple[tuple[Platform, str], ...]
    solutions: tuple[Solution, ...]
    notes: tuple[Note, ...]
    json_text: str

    @property
    def text(self) -> str:
        """The text of the file. Raises UsageError where there is one for each of several platforms."""
        return _only(self.texts)[1]

    @property
    def solution(self) -> Solution:
        """The stack. Raises UsageError where there is one for each of several platforms."""
        return _only(self.solutions)

    def __repr__(self) -> str:
        return f"<Environment: {_stacks(self.solutions)}>"

    def as_json(self) -> dict[str, object]:
        """What ``envsolve solve --json`` says."""
        import json

        data: dict[str, object] = json.loads(self.json_text)
        return data


class LockFiles(NamedTuple):
    """What :func:`lock` made: texts of files, each with its platform, the stack for each platform, and remarks.

    A ``conda-lock`` is one text for all platforms. ``solutions`` are empty where no framework is involved.
    """

    texts: tuple[tuple[Platform, str], ...]
    solutions: tuple[Solution, ...]
    notes: tuple[Note, ...]

    @property
    def text(self) -> str:
        """The text of the file. Raises UsageError where there is one for each of several platforms."""
        return _only(self.texts)[1]

    def __repr__(self) -> str:
        platforms = ", ".join(platform for platform, _ in self.texts)
        return f"<LockFiles: {_stacks(self.solutions) or platforms}>"


class Validation(NamedTuple):
    """What :func:`validate` proved: the probes and what they found, where operations ran, and the machine."""

    report: Report
    device: Literal["cuda", "cpu"]
    host: Host

    @property
    def ok(self) -> bool:
        """Whether the environment is proven: something was computed, and no probe failed."""
        return self.report.ok

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong, each once, the worst first."""
        return self.report.findings

    def __repr__(self) -> str:
        probes = ", ".join(f"{it.name} {it.status.value}" for it in self.report.probes)
        return f"<Validation on {self.device}: {'proven' if self.ok else 'not proven'} ({probes})>"

    def as_json(self) -> dict[str, object]:
        """What ``envsolve validate --json`` says."""
        from envsolve.host.host_file import host_as_json

        return {
            "schema_version": 1,
            "ok": self.ok,
            "python": str(self.report.python),
            "device": self.device,
            "host": host_as_json(self.host),
            "probes": [probe.as_json() for probe in self.report.probes],
            "findings": [finding.as_json() for finding in self.findings],
            "libraries": [library.as_json() for library in self.report.libraries],
            "notes": [it.as_json() for it in self.report.notes],
        }


class Explanation(NamedTuple):
    """What :func:`explain` found in a text; without a finding, what it recognised and what would tell more."""

    findings: tuple[Finding, ...]
    recognised: tuple[str, ...]
    collect: tuple[str, ...]
    notes: tuple[Note, ...]

    def __repr__(self) -> str:
        return f"<Explanation: {_ids(self.findings)}>"

    def as_json(self) -> dict[str, object]:
        """What ``envsolve explain --json`` says."""
        return {
            "schema_version": 1,
            "findings": [finding.as_json() for finding in self.findings],
            "recognised": list(self.recognised),
            "collect": [] if self.findings else list(self.collect),
            "notes": [it.as_json() for it in self.notes],
        }


class Diagnosis(NamedTuple):
    """What :func:`doctor` found, the gravest first, and what it looked at.

    ``frameworks`` are those of the environment, by envsolve's names, with their versions.
    """

    host: Host
    findings: tuple[Finding, ...]
    inventory: Mapping[str, object]
    frameworks: tuple[tuple[str, str], ...]
    notes: tuple[Note, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is broken: warnings and hints are no errors."""
        return not any(it.severity is Severity.ERROR for it in self.findings)

    def __repr__(self) -> str:
        return f"<Diagnosis: {_ids(self.findings)}>"

    def as_json(self) -> dict[str, object]:
        """What ``envsolve doctor --json`` says."""
        from envsolve.host.host_file import host_as_json

        return {
            "schema_version": 1,
            "ok": self.ok,
            "host": host_as_json(self.host),
            "inventory": dict(self.inventory),
            "findings": [finding.as_json() for finding in self.findings],
            "notes": [it.as_json() for it in self.notes],
        }


def _stacks(solutions: tuple[Solution, ...]) -> str:
    """The frameworks of each platform, for a person at a prompt."""
    stacks = []
    for it in solutions:
        named = ", ".join(f"{c.release.framework} {c.release.version} {c.release.build}" for c in it.choices)
        stacks.append(f"{it.problem.platform.value} {named}")
    return "; ".join(stacks)


def _ids(findings: tuple[Finding, ...]) -> str:
    return ", ".join(it.id for it in findings) or "no findings"


def _only(values: tuple[T, ...]) -> T:
    if len(values) != 1:
        raise UsageError("several-platforms", f"there are {len(values)} of them: use the tuple of all")
    return values[0]
