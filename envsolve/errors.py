"""Every error that may reach a user, each with the exit code it ends the process with.

    EnvsolveError
    ├── UsageError            2  the request or an input file is wrong; nothing was written
    │   ├── MatrixError       2  the compatibility matrix holds mistakes (all of them are listed)
    │   └── ProjectError      2  the project holds mistakes (all of them are listed)
    ├── UnsolvableError       1  an honest no: nothing that was requested fits the hosts
    └── OutsideError          3  network, disk or a tool failed; nothing was written

An error carries data; the command line prints it, as three parts or as JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from envsolve import documents


class Hint(NamedTuple):
    """A way out: what it does, and the command to type where one command does it; ``kind`` is its code, if any."""

    text: str
    command: str | None = None
    kind: str | None = None

    def as_json(self) -> documents.Hint:
        """The hint as every document of JSON has it."""
        return {"text": self.text, "command": self.command, "code": self.kind}


class ConflictStep(NamedTuple):
    """One link of a chain of facts: what is required, and because of what."""

    requirement: str
    because: str
    source: str = ""


class Refused(NamedTuple):
    """A requirement that a lock cannot hold: its name, or its address where it has none, where it stands, and why."""

    name: str
    where: str
    why: str


class HostGroup(NamedTuple):
    """Hosts, or GPUs, that one stack serves: their names, the builds of that stack, and the command that makes it."""

    hosts: tuple[str, ...]
    frameworks: tuple[str, ...]
    command: str


class EnvsolveError(Exception):
    """An error: a stable ``code`` (kebab-case, never renamed), what happened, what led to it, what to do next."""

    exit_code = 3

    def __init__(
        self,
        code: str,
        message: str,
        cause: tuple[str, ...] = (),
        hints: tuple[Hint, ...] = (),
        *,
        conflict: tuple[ConflictStep, ...] = (),
        refused: tuple[Refused, ...] = (),
    ) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.cause = cause
        self.hints = hints
        self.conflict = conflict
        self.refused = refused

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def as_json(self) -> documents.Error:
        """The ``error`` object of the JSON contract."""
        found: documents.Error = {
            "code": self.code,
            "message": self.message,
            "conflict": [
                {"requirement": step.requirement, "because": step.because, "source": step.source}
                for step in self.conflict
            ],
            "hints": [hint.as_json() for hint in self.hints],
        }
        if self.refused:
            found["refused"] = [{"name": it.name, "where": it.where, "why": it.why} for it in self.refused]
        return found


class UsageError(EnvsolveError):
    """The request cannot be understood or an input cannot be read. Nothing was written."""

    exit_code = 2


class MatrixError(UsageError):
    """The compatibility matrix does not load; ``cause`` lists every mistake with its file and key."""

    def as_json(self) -> documents.Error:
        """The ``error`` object of the JSON contract, and every mistake as one line."""
        return {**super().as_json(), "mistakes": list(self.cause)}


class ProjectError(UsageError):
    """What a project asks for holds mistakes; ``cause`` lists every one with its file, line and key."""

    def as_json(self) -> documents.Error:
        """The ``error`` object of the JSON contract, and every mistake as one line."""
        return {**super().as_json(), "mistakes": list(self.cause)}


class UnsolvableError(EnvsolveError):
    """No environment satisfies the request on every host, as far as the matrix of ``matrix_date`` knows.

    ``constraints`` cannot hold together, and would without any one of them. ``groups`` are hosts that have a stack in
    common where all together have none; ``forced_by`` are those without any one of which one stack would do.
    ``unknown`` is a framework with the versions that were requested, where the matrix has no release of these.
    """

    exit_code = 1
    matrix_date: str | None = None
    constraints: tuple[str, ...] = ()
    groups: tuple[HostGroup, ...] = ()
    forced_by: tuple[str, ...] = ()
    unknown: tuple[str, str] | None = None

    def as_json(self) -> documents.Error:
        """The ``error`` object of the JSON contract, what cannot hold together, and the day of the matrix that says."""
        found = super().as_json()
        if self.matrix_date is not None:
            found["matrix_date"] = self.matrix_date
        if self.constraints:
            found["constraints"] = list(self.constraints)
        if self.groups:
            found["groups"] = [
                {"hosts": list(it.hosts), "frameworks": list(it.frameworks), "command": it.command}
                for it in self.groups
            ]
            found["forced_by"] = list(self.forced_by)
        return found


class OutsideError(EnvsolveError):
    """The outside world failed: network, disk, or a tool that is missing. Nothing was written.

    ``address`` is that of the server that failed, where one did.
    """

    exit_code = 3
    address: str = ""
