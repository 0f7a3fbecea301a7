"""A validation as text, as the contract's JSON and for CI systems."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from envsolve.cli.finding_text import findings_of_check, printable
from envsolve.cli.output_formats import Case, Item, Level, Outcome, finding_item
from envsolve.validation.report import IMPORT, IMPORTS, ProbeReport, Report, Status

if TYPE_CHECKING:
    from envsolve.app.status.results import Validation

_COLOURS = {Status.PASS: "green", Status.FAIL: "red", Status.SKIP: "cyan"}


def as_text(validation: Validation, *, full: bool = False) -> str:
    """One line per probe, then each finding with its fix; ``full``: with all details."""
    report = validation.report
    width = max((len(probe.name) for probe in report.probes), default=0)
    lines = [_probe_line(probe, width) for probe in report.probes]
    lines += ["", *findings_of_check(report.findings, full=full)]
    return "".join(f"{line}\n" for line in (*lines, printable(_conclusion(report))))


def as_outcome(validation: Validation) -> Outcome:
    """The validation with one case for each probe; a finding of several probes is with the first."""
    cases = (
        Case(
            probe.name,
            tuple(map(finding_item, probe.findings)) or _failed(probe),
            printable(probe.detail),
            probe.seconds,
            probe.status is Status.SKIP,
        )
        for probe in validation.report.probes
    )
    return Outcome("envsolve validate", tuple(cases), click.unstyle(as_text(validation)))


def _failed(probe: ProbeReport) -> tuple[Item, ...]:
    """The item of a probe that failed without a finding."""
    is_failed = probe.status is Status.FAIL
    return (Item(Level.ERROR, "probe-failed", f"{probe.name}: {printable(probe.detail)}"),) if is_failed else ()


def _probe_line(probe: ProbeReport, width: int) -> str:
    status = click.style(f"{probe.status.value:<4}", fg=_COLOURS[probe.status])
    return f"{status}  {probe.name:<{width}} {probe.seconds:7.2f} s  {printable(probe.detail)}"


def _conclusion(report: Report) -> str:
    failed = [probe.name for probe in report.probes if probe.status is Status.FAIL]
    if failed:
        return f"{report.python}: not proven, {', '.join(failed)} failed"
    if not report.ok:
        return f"{report.python}: not proven, no operation could run"
    passed = [it.name for it in report.probes if it.status is Status.PASS and it.name in (*report.proofs, IMPORTS)]
    not_tried = ", ".join(it.name for it in report.probes if it.status is Status.SKIP and it.name.startswith(IMPORT))
    return f"{report.python}: proven by {', '.join(passed)}{f'; not tried: {not_tried}' if not_tried else ''}"
