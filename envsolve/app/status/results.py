"""The results of commands and of the Python API: frozen values, with the JSON that the commands print.

Notebooks show those of the API as tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from envsolve.app.status.html_table import html_table
from envsolve.errors import UsageError
from envsolve.model.finding import Finding, Severity
from envsolve.model.host import Host, Platform
from envsolve.model.note import Note

if TYPE_CHECKING:
    from envsolve import documents
    from envsolve.app.status.status import FileStatus
    from envsolve.model.solution import Solution
    from envsolve.validation.report import Report

T = TypeVar("T")


class DetectedHost(Host):
    """The machine that :func:`envsolve.detect` found."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        facts = ("driver", "driver_cuda", "glibc")
        rows = [(name, getattr(self, name), self.origin.get(name)) for name in facts]
        gpus = [(f"{it.count} x {it.name}", it.compute_capability, self.origin.get("gpus")) for it in self.gpus]
        return html_table(f"{self.platform.value}: {self.status.value}", ("fact", "value", "from"), [*rows, *gpus])

    def as_json(self) -> documents.Host:
        """The machine as a host file, which ``hosts`` and ``--host`` read."""
        from envsolve.host.host_file import host_as_json

        return host_as_json(self)


class _Files(NamedTuple):
    """The texts of files with their platforms, the stack for each platform, and notes."""

    texts: tuple[tuple[Platform, str], ...]
    solutions: tuple[Solution, ...]
    notes: tuple[Note, ...]
    json_text: str

    @property
    def text(self) -> str:
        """The text of the file. Raises UsageError if there are several, each for one platform."""
        return _only(self.texts)[1]

    def _repr_html_(self) -> str:
        return _stack_tables(self.as_json())

    def as_json(self) -> documents.Stack:
        """The JSON that ``envsolve solve --json`` prints for the same format."""
        import json

        data: documents.Stack = json.loads(self.json_text)
        return data


class Environment(_Files):
    """The result of :func:`envsolve.solve`: texts of files, the stack for each platform, and notes.

    One text may be for all platforms, as in the formats ``json`` and ``pixi``.
    """

    __slots__ = ()

    @property
    def solution(self) -> Solution:
        """The stack. Raises UsageError if there are several, each for one platform."""
        return _only(self.solutions)

    def __repr__(self) -> str:
        return f"<Environment: {_stacks(self.solutions)}>"


class LockFiles(_Files):
    """The result of :func:`envsolve.lock`: texts of files, the stack for each platform, and notes.

    A ``conda-lock`` is one text for all platforms. ``solutions`` is empty without frameworks.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        platforms = ", ".join(platform for platform, _ in self.texts)
        return f"<LockFiles: {_stacks(self.solutions) or platforms}>"


class Status(NamedTuple):
    """The result of :func:`envsolve.status`: files, and whether they run on the machine."""

    files: tuple[FileStatus, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing has to be done."""
        return all(it.verdict.is_good for it in self.files)

    def __repr__(self) -> str:
        return f"<Status: {', '.join(f'{it.path} {it.verdict.value}' for it in self.files)}>"

    def _repr_html_(self) -> str:
        rows = (
            (it.path, it.platform, it.verdict.value, "\n".join(it.builds), "\n".join(each.text for each in it.reasons))
            for it in self.files
        )
        return html_table(f"ok: {self.ok}", ("file", "platform", "status", "builds", "reasons"), rows)

    def as_json(self) -> documents.Status:
        """The JSON that ``envsolve status --json`` prints."""
        return {"schema_version": 1, "ok": self.ok, "files": [it.as_json() for it in self.files]}


class Validation(NamedTuple):
    """The result of :func:`envsolve.validate`: the probes and their findings, the device, and the machine."""

    report: Report
    device: Literal["cuda", "cpu"]
    host: Host

    @property
    def ok(self) -> bool:
        """Whether the environment works: something was computed, and no probe failed."""
        return self.report.ok

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings, each once, the worst first."""
        return self.report.findings

    def __repr__(self) -> str:
        probes = ", ".join(f"{it.name} {it.status.value}" for it in self.report.probes)
        return f"<Validation on {self.device}: {'proven' if self.ok else 'not proven'} ({probes})>"

    def _repr_html_(self) -> str:
        rows = ((it.name, it.status.value, f"{it.seconds:.2f}", it.detail) for it in self.report.probes)
        title = f"{self.report.python} on {self.device}: {'proven' if self.ok else 'not proven'}"
        return html_table(title, ("probe", "status", "seconds", "detail"), rows) + _finding_table(self.findings)

    def as_json(self) -> documents.Validation:
        """The JSON that ``envsolve validate --json`` prints."""
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
    """The result of :func:`envsolve.explain`. Without a finding, it lists what was recognised and what would help.

    ``collect`` has the command whose output decides, if people's own words are all that the findings rest on.
    """

    findings: tuple[Finding, ...]
    recognised: tuple[str, ...]
    collect: tuple[str, ...]
    notes: tuple[Note, ...] = ()

    def __repr__(self) -> str:
        return f"<Explanation: {_ids(self.findings)}>"

    def _repr_html_(self) -> str:
        return _finding_table(self.findings)

    def as_json(self) -> documents.Explanation:
        """The JSON that ``envsolve explain --json`` prints."""
        return {
            "schema_version": 1,
            "findings": [finding.as_json() for finding in self.findings],
            "recognised": list(self.recognised),
            "collect": list(self.collect),
            "notes": [it.as_json() for it in self.notes],
        }


class Diagnosis(NamedTuple):
    """The result of :func:`envsolve.doctor`: findings, the worst first, and what was checked.

    ``frameworks`` are those of the environment, by envsolve's names, with their versions.
    """

    host: Host
    findings: tuple[Finding, ...]
    inventory: Mapping[str, object]
    frameworks: tuple[tuple[str, str], ...]
    notes: tuple[Note, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is broken; warnings and hints are not errors."""
        return not any(it.severity is Severity.ERROR for it in self.findings)

    def __repr__(self) -> str:
        return f"<Diagnosis: {_ids(self.findings)}>"

    def _repr_html_(self) -> str:
        return _finding_table(self.findings)

    def as_json(self) -> documents.Diagnosis:
        """The JSON that ``envsolve doctor --json`` prints."""
        from envsolve.host.host_file import host_as_json

        return {
            "schema_version": 1,
            "ok": self.ok,
            "host": host_as_json(self.host),
            "inventory": dict(self.inventory),
            "findings": [finding.as_json() for finding in self.findings],
            "notes": [it.as_json() for it in self.notes],
        }


def _stack_tables(document: documents.Stack) -> str:
    """Tables of the frameworks and the packages, for each platform."""
    tables = []
    for it in document.get("platforms", [document]):
        cuda = "CPU" if it["cuda"] is None else f"CUDA {it['cuda']}, NVIDIA driver {it['minimum_driver']} or newer"
        rows: list[tuple[object, ...]] = [
            (f["package"], f["version"], f["build"], f["source"]) for f in it["frameworks"]
        ]
        frameworks = {row[0] for row in rows}
        for package in it["packages"]:
            name = package.get("name", package.get("spec"))
            if name not in frameworks:
                rows.append((name, package.get("version"), package.get("build"), package["manager"]))
        title = f"{it['host']['platform']}: Python {it['python']}, {cuda}"
        tables.append(html_table(title, ("package", "version", "build", "from"), rows))
    return "".join(tables)


def _finding_table(findings: Iterable[Finding]) -> str:
    rows = [(it.severity.value, it.title, it.cause, "\n".join((it.fix, *it.commands))) for it in findings]
    return html_table(f"findings: {len(rows)}", ("severity", "finding", "cause", "fix"), rows)


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
