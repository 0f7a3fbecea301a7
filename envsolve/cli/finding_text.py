"""A finding as text: what it is, why, the commands, the lines it is based on, and other possible causes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from envsolve.model.finding import Finding, PossibleCause, Severity

_EVIDENCE = 4
"""Limit for lines of evidence in a short finding."""
_SEVERITIES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


def findings_of_check(findings: Sequence[Finding], *, full: bool) -> Iterator[str]:
    """The lines of findings, with an empty one after each.

    Those for information ask for nothing, so they are one line each, unless ``full``.
    """
    brief = [it for it in findings if it.severity is Severity.INFO and not full]
    for finding in findings:
        if finding not in brief:
            yield from (*finding_lines(finding, full=full), "")
    word = click.style("info:", fg=_SEVERITIES[Severity.INFO], bold=True)
    yield from (f"{word} {it.id}: {printable(it.title)}; more with -v" for it in brief)
    if brief:
        yield ""


def finding_lines(finding: Finding, *, full: bool, plain: bool = False) -> Iterator[str]:
    """The lines of ``finding``; ``full``: with all details. ``plain``: without colour."""
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
    """How to distinguish this cause from the others."""
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
    """``text`` on one line, without control characters and those that XML forbids: some of it is from libraries."""
    return "".join(it if it.isprintable() else "?" for it in " ".join(text.split()))
