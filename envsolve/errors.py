"""Every error that may reach a user, each with the exit code it ends the process with.

    EnvsolveError
    ├── UsageError            2  the request or an input file is wrong; nothing was written
    │   └── MatrixError       2  the compatibility matrix holds mistakes (all of them are listed)
    ├── UnsolvableError       1  an honest no: nothing that was asked for fits the hosts
    └── OutsideError          3  network, disk or a tool failed; nothing was written

An error carries data; the command line prints it, as three parts or as JSON.
"""

from __future__ import annotations

from typing import NamedTuple


class Hint(NamedTuple):
    """A way out: what it does, and the command to type where one command does it."""

    text: str
    command: str | None = None


class ConflictStep(NamedTuple):
    """One link of a chain of facts: what is required, and because of what."""

    requirement: str
    because: str
    source: str = ""


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
    ) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.cause = cause
        self.hints = hints
        self.conflict = conflict

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def as_json(self) -> dict[str, object]:
        """The ``error`` object of the JSON contract."""
        return {
            "code": self.code,
            "message": self.message,
            "conflict": [{"requirement": step.requirement, "because": step.because} for step in self.conflict],
            "hints": [{"text": hint.text, "command": hint.command} for hint in self.hints],
        }


class UsageError(EnvsolveError):
    """The request cannot be understood or an input cannot be read. Nothing was written."""

    exit_code = 2


class MatrixError(UsageError):
    """The compatibility matrix does not load; ``cause`` lists every mistake with its file and key."""

    def as_json(self) -> dict[str, object]:
        """The ``error`` object of the JSON contract, and every mistake as one line."""
        return super().as_json() | {"mistakes": list(self.cause)}


class UnsolvableError(EnvsolveError):
    """No environment satisfies the request on every host, as far as the matrix of ``matrix_date`` knows."""

    exit_code = 1
    matrix_date: str | None = None

    def as_json(self) -> dict[str, object]:
        """The ``error`` object of the JSON contract, and the day of the matrix that says no."""
        return super().as_json() | ({} if self.matrix_date is None else {"matrix_date": self.matrix_date})


class OutsideError(EnvsolveError):
    """The outside world failed: network, disk, or a tool that is missing. Nothing was written."""

    exit_code = 3
