"""A finding as people read it: what it is, why, what to type, the lines it rests on, and what else it may be."""

from __future__ import annotations

from collections.abc import Iterator

import click

from envsolve.model.finding import Finding, PossibleCause, Severity

_EVIDENCE = 4
"""Lines of what was seen that a short finding shows."""
_SEVERITIES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


def finding_lines(finding: Finding, *, full: bool, plain: bool = False) -> Iterator[str]:
    """The lines of ``finding``; ``full``: with all that is known. ``plain`` is for a place without colour."""
    word = f"{finding.severity.value}:"
    yield f"{word if plain else click.style(word, fg=_SEVERITIES[finding.severity], bold=True)} {finding.id}"
    yield f"  {printable(finding.title)}"
    yield f"cause: {printable(finding.cause)}"
    if finding.fix:
        yield f"fix: {printable(finding.fix)}"
    yield from (f"  {printable(command)}" for command in finding.commands)
    if finding.more and full:
        yield f"more: {printable(finding.more)}"
    most = len(finding.evidence) if full else _EVIDENCE
    yield from (f"seen: {printable(line)}" for line in finding.evidence[:most])
    if len(finding.evidence) > most:
        yield f"seen: {len(finding.evidence) - most} more, with -v"
    if finding.possible_causes:
        first, *others = finding.possible_causes
        if first.check not in first.commands:
            yield from (f"check: {it}" for it in _check(first))
        for other in others:
            yield f"or: {'. '.join((printable(other.title), *_check(other)))}"
            yield from _in_full(other) if full else ()


def _check(cause: PossibleCause) -> Iterator[str]:
    """What tells this cause from the others."""
    if cause.check:
        yield printable(f"`{cause.check}` {cause.shows}" if cause.shows else f"`{cause.check}`")


def _in_full(cause: PossibleCause) -> Iterator[str]:
    yield f"  cause: {printable(cause.cause)}"
    if cause.fix:
        yield f"  fix: {printable(cause.fix)}"
    yield from (f"    {printable(command)}" for command in cause.commands)
    if cause.more:
        yield f"  more: {printable(cause.more)}"


def printable(text: str) -> str:
    """``text`` on one line, without what a terminal would obey and XML does not have: some of it is from libraries."""
    return "".join(it if it.isprintable() else "?" for it in " ".join(text.split()))
