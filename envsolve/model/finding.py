"""One diagnosed fact about an environment or a machine: what is wrong, why, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from envsolve import documents


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    """Something that is asked of the environment does not work."""
    WARNING = "warning"
    """It works, and something beside it is likely to break or to mislead."""
    INFO = "info"
    """Worth knowing; nothing has to be done."""


class Confidence(StrEnum):
    """How sure it is that the first cause is the one."""

    HIGH = "high"
    """What was seen allows no other."""
    MEDIUM = "medium"
    """What was seen allows others, and speaks for this one."""
    LOW = "low"
    """Nothing that was seen decides between the causes."""


class PossibleCause(NamedTuple):
    """One of several causes that a failure may have.

    ``check`` is the one command that shows whether it is this one, ``shows`` what that command then shows.
    """

    id: str
    title: str
    cause: str
    fix: str
    commands: tuple[str, ...] = ()
    check: str = ""
    shows: str = ""
    more: str = ""

    def with_texts(self, change: Callable[[str], str]) -> PossibleCause:
        """The cause with ``change`` made to every text."""
        commands = tuple(map(change, self.commands))
        texts = (change(it) for it in (self.title, self.cause, self.fix, self.check, self.shows, self.more))
        title, cause, fix, check, shows, more = texts
        return PossibleCause(self.id, title, cause, fix, commands, check, shows, more)

    def as_json(self) -> documents.PossibleCause:
        """The object of the JSON contract."""
        return {
            "id": self.id,
            "title": self.title,
            "cause": self.cause,
            "fix": self.fix,
            "commands": list(self.commands),
            "check": self.check,
            "shows": self.shows,
            "more": self.more,
        }


class Finding(NamedTuple):
    """A finding. ``id`` is kebab-case and forever.

    ``cause`` says in full sentences what is so, ``fix`` what to do about it, ``commands`` what to type for that, all in
    few words; ``more`` is what else is known: background, other ways to fix it, warnings.
    ``evidence`` are the facts it rests on, as they were seen: lines of a log, files, numbers of calls. ``in_scope`` is
    false for what is no mismatch of framework, CUDA, cuDNN, driver and GPU. ``about`` is what it concerns: a
    framework by envsolve's name, or a library. ``possible_causes`` are there where what was seen allows more than one:
    the likeliest first, which is the one that the finding itself names. ``confidence`` says how sure that is. ``facts``
    are the values that were read, by name: versions, GPU, driver. ``sources`` are what the finding's rule rests on.
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
    possible_causes: tuple[PossibleCause, ...] = ()
    sources: tuple[str, ...] = ()
    more: str = ""
    confidence: Confidence = Confidence.HIGH
    facts: tuple[tuple[str, str], ...] = ()

    def with_texts(self, change: Callable[[str], str]) -> Finding:
        """The finding with ``change`` made to every text for people, those of its possible causes included."""
        return self._replace(
            title=change(self.title),
            cause=change(self.cause),
            fix=change(self.fix),
            commands=tuple(map(change, self.commands)),
            evidence=tuple(map(change, self.evidence)),
            about=None if self.about is None else change(self.about),
            more=change(self.more),
            facts=tuple((name, change(value)) for name, value in self.facts),
            possible_causes=tuple(it.with_texts(change) for it in self.possible_causes),
        )

    def as_json(self) -> documents.Finding:
        """The object of the JSON contract; what there is none of is left out, but for the contract's own keys."""
        found: documents.Finding = {
            "id": self.id,
            "title": self.title,
            "severity": self.severity.value,
            "in_scope": self.in_scope,
            "confidence": self.confidence.value,
            "cause": self.cause,
            "fix": self.fix,
            "commands": list(self.commands),
            "evidence": list(self.evidence),
            "about": self.about,
        }
        if self.more:
            found["more"] = self.more
        if self.facts:
            found["facts"] = dict(self.facts)
        if self.possible_causes:
            found["possible_causes"] = [it.as_json() for it in self.possible_causes]
        if self.sources:
            found["sources"] = list(self.sources)
        return found
