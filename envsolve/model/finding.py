"""A diagnosed fact about an environment or a machine: what is wrong, why, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from envsolve import documents


class Severity(StrEnum):
    """How much a finding matters."""

    ERROR = "error"
    """Something that the environment has to do does not work."""
    WARNING = "warning"
    """It works, but something next to it is likely to break or to mislead."""
    INFO = "info"
    """Worth knowing; no action needed."""

    @property
    def rank(self) -> int:
        """Its place from the most severe on."""
        return list(Severity).index(self)


class Confidence(StrEnum):
    """How certain the first cause is."""

    HIGH = "high"
    """The evidence allows no other cause."""
    MEDIUM = "medium"
    """The evidence allows others, but supports this one."""
    LOW = "low"
    """The evidence does not decide between the causes."""


class PossibleCause(NamedTuple):
    """One of several causes that a failure may have.

    ``check`` is a command that shows whether this is the cause, ``shows`` is its output in that case.
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
        """Return the cause with ``change`` applied to every text."""
        commands = tuple(map(change, self.commands))
        texts = (change(it) for it in (self.title, self.cause, self.fix, self.check, self.shows, self.more))
        title, cause, fix, check, shows, more = texts
        return PossibleCause(self.id, title, cause, fix, commands, check, shows, more)

    def as_json(self) -> documents.PossibleCause:
        """Return the object for the JSON output."""
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
    """A finding. ``id`` is in kebab-case and never changes.

    ``cause`` describes the problem in full sentences, ``fix`` the solution, ``commands`` the commands for it, all in
    few words. ``more`` is additional information: background, other fixes, warnings. ``evidence`` are the observed
    facts: lines of a log, files, numbers of calls. ``in_scope`` is false if the problem is not a mismatch of framework,
    CUDA, cuDNN, driver and GPU. ``about`` is its subject: a framework by envsolve's name, or a library.
    ``possible_causes`` are given if the evidence allows more than one, most likely first; the first is the one that the
    finding describes, and ``confidence`` says how certain it is. ``facts`` are values that were read, by name:
    versions, GPU, driver. ``sources`` are those of the finding's rule. ``broken`` are the names of packages whose files
    must be installed again, also in the same version.
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
    broken: tuple[str, ...] = ()

    def with_texts(self, change: Callable[[str], str]) -> Finding:
        """Return the finding with ``change`` applied to every text for users, including those of possible causes."""
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
        """Return the object for the JSON output. Empty values are left out, except for the documented keys."""
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


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings, the most severe first, and otherwise in their order."""
    return tuple(sorted(findings, key=lambda it: it.severity.rank))


def merged(first: Finding, again: Finding) -> Finding:
    """One finding from two about the same: the words of the more severe one, or else of the first; all evidence."""
    worse = min((first, again), key=lambda it: it.severity.rank)
    return worse._replace(
        evidence=tuple(dict.fromkeys((*first.evidence, *again.evidence))),
        broken=tuple(dict.fromkeys((*first.broken, *again.broken))),
    )
