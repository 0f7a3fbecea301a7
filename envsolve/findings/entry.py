"""An entry of the catalogue: a finding or one of its causes, in sentences that each hold in some cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from envsolve.findings.condition import Condition, Facts
from envsolve.findings.template import Sentence, fields_of, shown
from envsolve.model.finding import Severity


class Words(NamedTuple):
    """The words of an entry for one case."""

    title: str
    cause: str
    fix: str
    commands: tuple[str, ...]
    more: str
    check: str
    shows: str
    facts: Mapping[str, str]


class Entry(NamedTuple):
    """A finding or one of its causes: what it means and what to do.

    Of ``title``, ``check`` and ``shows`` the first sentence that holds is used, of the other fields all that hold.
    ``more`` are details: background, other ways to fix it, warnings. ``when`` is the condition for it, ``unless`` the
    condition that excludes it. ``check`` is the command that shows which cause it is, ``shows`` its output then.
    ``solvable``: another environment can be the fix. ``finding`` is the public id, which several causes may share.
    ``seen`` are symptoms whose lines are evidence for it and have fields for it. ``remedy`` says how the environment
    for the fix differs. ``number`` and ``error`` are the driver error that it explains.
    """

    id: str
    finding: str
    severity: Severity
    in_scope: bool
    solvable: bool
    sources: tuple[str, ...]
    seen: tuple[str, ...]
    remedy: Mapping[str, str]
    error: str
    number: int | None
    when: Condition | None
    unless: Condition | None
    title: tuple[Sentence, ...]
    cause: tuple[Sentence, ...]
    fix: tuple[Sentence, ...]
    commands: tuple[Sentence, ...]
    more: tuple[Sentence, ...]
    check: tuple[Sentence, ...]
    shows: tuple[Sentence, ...]
    variants: tuple[Entry, ...] = ()

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        """All of its sentences."""
        return (*self.title, *self.cause, *self.fix, *self.commands, *self.more, *self.check, *self.shows)

    def is_possible(self, facts: Facts) -> bool:
        """Whether no known fact excludes it."""
        return (self.when is None or self.when.holds(facts)) and not (self.unless and self.unless.holds(facts))

    def variant(self, facts: Facts) -> Entry:
        """The first variant that holds, or the entry itself."""
        return next((it for it in self.variants if it.is_possible(facts)), self)

    def words(self, facts: Facts) -> Words:
        """The words for ``facts``, from the first variant that holds."""
        it = self.variant(facts)
        fix = [step for step in it.fix if step.holds(facts)]
        commands = [command for step in fix for command in step.filled_commands(facts)]
        commands += [command.filled(facts) for command in it.commands if command.holds(facts)]
        return Words(
            title=_first(it.title, facts),
            cause=_all(it.cause, facts),
            fix=" ".join(dict.fromkeys(step.filled(facts) for step in fix)),
            commands=tuple(dict.fromkeys(commands)),
            more=_all(it.more, facts),
            check=_first(it.check, facts),
            shows=_first(it.shows, facts),
            facts=it.fact_texts(facts),
        )

    def fact_texts(self, facts: Facts) -> Mapping[str, str]:
        """The known facts that its sentences name, as text."""
        sentences = (
            sentence for sentence in (*self.title, *self.cause, *self.fix, *self.more) if sentence.holds(facts)
        )
        names = sorted({name for sentence in sentences for name in fields_of(sentence.text)})
        return {name: text for name in names if (text := shown(facts(name)))}


def _all(sentences: tuple[Sentence, ...], facts: Facts) -> str:
    return " ".join(it.filled(facts) for it in sentences if it.holds(facts))


def _first(sentences: tuple[Sentence, ...], facts: Facts) -> str:
    return next((it.filled(facts) for it in sentences if it.holds(facts)), "")
