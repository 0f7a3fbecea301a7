"""Every error that a user may see, with its exit code.

EnvsolveError
├── UsageError            2  the request or an input file is wrong; nothing was written
│   ├── MatrixError       2  the compatibility matrix has mistakes (all of them are listed)
│   └── ProjectError      2  the project has mistakes (all of them are listed)
├── UnsolvableError       1  nothing that was requested fits the hosts
└── OutsideError          3  network, disk or a tool failed; nothing was written

An error only has data. The command line prints it, as text or as JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from envsolve import documents


class Hint(NamedTuple):
    """What the user can do: a sentence, and the command if there is one. ``kind`` is its code, if any."""

    text: str
    command: str | None = None
    kind: str | None = None

    def as_json(self) -> documents.Hint:
        """Return the hint for the JSON output."""
        return {"text": self.text, "command": self.command, "code": self.kind}


class ConflictStep(NamedTuple):
    """One link of a chain of facts: a requirement and its reason."""

    requirement: str
    because: str
    source: str = ""


class Refused(NamedTuple):
    """A requirement that cannot be locked: its name, or its address if it has none, its place, and the reason."""

    name: str
    where: str
    why: str


class HostGroup(NamedTuple):
    """Hosts, or GPUs, that one stack serves: their names, the builds of that stack, and the command for it."""

    hosts: tuple[str, ...]
    frameworks: tuple[str, ...]
    command: str


class EnvsolveError(Exception):
    """An error: a stable ``code`` (kebab-case, never renamed), what happened, why, and what to do."""

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
        """Return the ``error`` object of the JSON output."""
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
    """The request is invalid or an input cannot be read. Nothing was written."""

    exit_code = 2


class MatrixError(UsageError):
    """The compatibility matrix cannot be loaded. ``cause`` lists every mistake with its file and key."""

    def as_json(self) -> documents.Error:
        """Return the ``error`` object of the JSON output, with every mistake as one line."""
        return {**super().as_json(), "mistakes": list(self.cause)}


class ProjectError(UsageError):
    """The project has mistakes. ``cause`` lists every one with its file, line and key."""

    def as_json(self) -> documents.Error:
        """Return the ``error`` object of the JSON output, with every mistake as one line."""
        return {**super().as_json(), "mistakes": list(self.cause)}


class UnsolvableError(EnvsolveError):
    """No environment meets the request on every host, based on the matrix of ``matrix_date``.

    ``constraints`` cannot be met together, but can without any one of them. ``groups`` are hosts that share a stack, if
    all of them together have none. ``forced_by`` are those hosts without any one of which one stack would be enough.
    ``unknown`` is a framework with the requested versions, if the matrix has no such release. ``reasons`` are causes
    that tell more than the message, the most telling one first.
    """

    exit_code = 1
    matrix_date: str | None = None
    constraints: tuple[str, ...] = ()
    groups: tuple[HostGroup, ...] = ()
    forced_by: tuple[str, ...] = ()
    unknown: tuple[str, str] | None = None
    reasons: tuple[str, ...] = ()

    def as_json(self) -> documents.Error:
        """Return the ``error`` object of the JSON output, with the conflict and the date of the matrix."""
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
    """Network, disk or another tool failed. Nothing was written.

    ``address`` is that of the server that failed, if any.
    """

    exit_code = 3
    address: str = ""
