"""One diagnosed fact about an environment or a machine: what is wrong, why, and what to do about it."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    """Something that is asked of the environment does not work."""
    WARNING = "warning"
    """It works, and something beside it is likely to break or to mislead."""
    INFO = "info"
    """Worth knowing; nothing has to be done."""


class Finding(NamedTuple):
    """A finding. ``id`` is kebab-case and for ever.

    ``cause`` says in full sentences what is so, ``fix`` what to do about it, ``commands`` what to type for that.
    ``evidence`` are the facts it rests on, as they were seen: lines of a log, files, numbers of calls. ``in_scope`` is
    false for what is no mismatch of framework, CUDA, cuDNN, driver and GPU. ``about`` is what it concerns: a
    framework by envsolve's name, or a library.
    """

    id: str
    title: str
    severity: Severity
    cause: str
    fix: str
    commands: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    in_scope: bool = True
    about: str | None = None

    def as_json(self) -> dict[str, object]:
        """The object of the JSON contract."""
        return {
            "id": self.id,
            "title": self.title,
            "severity": self.severity.value,
            "in_scope": self.in_scope,
            "cause": self.cause,
            "fix": self.fix,
            "commands": list(self.commands),
            "evidence": list(self.evidence),
            "about": self.about,
        }
