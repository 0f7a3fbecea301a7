"""A finding as people read it: what it is, why, what to type, and the lines it rests on."""

from __future__ import annotations

from collections.abc import Iterator

import click

from envsolve.model.finding import Finding, Severity

EVIDENCE = 4
"""Lines of what was seen that a finding shows unless all are asked for."""
_SEVERITIES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


def finding_lines(finding: Finding, *, most: int, plain: bool = False) -> Iterator[str]:
    """The lines of ``finding`` with at most ``most`` lines of evidence; ``plain`` for a place without colour."""
    word = f"{finding.severity.value}:"
    yield f"{word if plain else click.style(word, fg=_SEVERITIES[finding.severity], bold=True)} {finding.id}"
    several = len(finding.possible_causes)
    yield f"  {printable(finding.title)}{f' (most likely of {several} possible causes)' if several else ''}"
    yield from _labelled("cause", finding.cause)
    yield from _labelled("fix", finding.fix)
    yield from (f"  {printable(command)}" for command in finding.commands)
    yield from (f"seen: {printable(line)}" for line in finding.evidence[:most])
    if len(finding.evidence) > most:
        yield f"seen: {len(finding.evidence) - most} more, with -v"


def _labelled(label: str, text: str) -> Iterator[str]:
    """One line, or the label and below it one line for each of several causes."""
    lines = [printable(line) for line in text.splitlines() if line.strip()]
    if len(lines) == 1:
        yield f"{label}: {lines[0]}"
    elif lines:
        yield f"{label}:"
        yield from (f"  {line}" for line in lines)


def printable(text: str) -> str:
    """``text`` on one line, without what a terminal would obey and XML does not have: some of it is from libraries."""
    return "".join(it if it.isprintable() else "?" for it in " ".join(text.split()))
