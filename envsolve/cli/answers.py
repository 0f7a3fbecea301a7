"""The answers to ``--why`` and ``--why-not``, as text and as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from envsolve.cli.output import json_text
from envsolve.model.fact import Fact

if TYPE_CHECKING:
    from envsolve.app.any_lock.why import Answers, Why
    from envsolve.app.any_lock.why_not import WhyNot

SCHEMA_VERSION = 1
_MOST_CAUSES = 3
"""The limit for a refusal of packages, whose message does not say what a wheel lacks; errors have the same limit."""


def answers_text(answers: Sequence[Answers], *, sources: bool) -> str:
    """One paragraph for each question; ``sources`` adds the source of each fact."""
    return "".join(f"{line}\n" for line in _lines(answers, sources=sources))


def _lines(answers: Sequence[Answers], *, sources: bool) -> Iterator[str]:
    for part in answers:
        of = f" on {part.platform}" if len(answers) > 1 else ""
        for why in part.why:
            yield f"{why.name}{of} is {why.value}"
            yield from (f"  {_fact(fact, sources=sources)}" for fact in why.facts)
        for other in part.why_not:
            yield f"{other.requirement}{of} {'fits' if other.fits else 'does not fit'}"
            yield f"  {other.message}"
            of_packages = [fact for fact in other.facts if not fact.source][:_MOST_CAUSES]
            yield from (f"  {_fact(it, sources=sources)}" for it in (other.facts if sources else of_packages))
            for hint in other.hints:
                yield f"  hint: {hint.text}"
                yield from () if hint.command is None else (f"    {hint.command}",)


def _fact(fact: Fact, *, sources: bool) -> str:
    return f"{fact.text} [{fact.source}]" if sources and fact.source else fact.text


def answers_json(answers: Sequence[Answers]) -> str:
    """The answers as one JSON document; with several platforms, each answer is under ``platforms``."""
    documents = [
        {
            "platform": part.platform,
            "why": [_why(why) for why in part.why],
            "why_not": [_why_not(other) for other in part.why_not],
        }
        for part in answers
    ]
    more: dict[str, object] = {"platforms": documents} if len(documents) > 1 else {}
    document = {"schema_version": SCHEMA_VERSION, **documents[0], **more}
    return json_text(document)


def _why(why: Why) -> dict[str, object]:
    return {"name": why.name, "value": why.value, "facts": _facts(why.facts)}


def _why_not(other: WhyNot) -> dict[str, object]:
    return {
        "requirement": other.requirement,
        "fits": other.fits,
        "message": other.message,
        "facts": _facts(other.facts),
        "constraints": list(other.constraints),
        "hints": [hint.as_json() for hint in other.hints],
    }


def _facts(facts: Sequence[Fact]) -> list[dict[str, str]]:
    return [{"fact": fact.text, "source": fact.source} for fact in facts]
