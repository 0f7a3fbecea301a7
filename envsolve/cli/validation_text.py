"""A validation as people read it, as the contract's JSON and as JUnit XML, which CI systems show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from envsolve.cli.finding_text import finding_lines, printable
from envsolve.cli.output import json_text
from envsolve.validation.report import IMPORT, IMPORTS, ProbeReport, Report, Status

if TYPE_CHECKING:
    from envsolve.app.validating import Validation

_COLOURS = {Status.PASS: "green", Status.FAIL: "red", Status.SKIP: "cyan"}


def as_text(validation: Validation, *, full: bool = False) -> str:
    """One line per probe, then each finding with what to do; ``full``: with all that is known of it."""
    report = validation.report
    width = max((len(probe.name) for probe in report.probes), default=0)
    lines = [_probe_line(probe, width) for probe in report.probes]
    for finding in report.findings:
        lines += ["", *finding_lines(finding, full=full)]
    return "".join(f"{line}\n" for line in (*lines, "", printable(_conclusion(report))))


def as_json(validation: Validation) -> str:
    """The object of the contract, and the findings in full."""
    return json_text(as_data(validation))


def as_data(validation: Validation) -> dict[str, object]:
    """The same as data."""
    from envsolve.host.host_file import host_as_json

    report = validation.report
    return {
        "schema_version": 1,
        "ok": report.ok,
        "python": str(report.python),
        "device": validation.device,
        "host": host_as_json(validation.host),
        "probes": [probe.as_json() for probe in report.probes],
        "findings": [finding.as_json() for finding in report.findings],
        "libraries": [library.as_json() for library in report.libraries],
        "notes": [it.as_json() for it in report.notes],
    }


def as_junit(validation: Validation) -> str:
    """One test case per probe; a skipped one says why, a failed one holds its findings."""
    from xml.etree import ElementTree as ET

    probes = validation.report.probes
    counts = {status: sum(probe.status is status for probe in probes) for status in Status}
    suite = ET.Element(
        "testsuite",
        name="envsolve validate",
        tests=str(len(probes)),
        failures=str(counts[Status.FAIL]),
        errors="0",
        skipped=str(counts[Status.SKIP]),
        time=f"{sum(probe.seconds for probe in probes):.3f}",
    )
    for probe in probes:
        case = ET.SubElement(
            suite, "testcase", classname="envsolve.validate", name=probe.name, time=f"{probe.seconds:.3f}"
        )
        if probe.status is Status.SKIP:
            ET.SubElement(case, "skipped", message=printable(probe.detail))
        if probe.status is Status.FAIL:
            title = probe.findings[0].title if probe.findings else probe.detail
            failure = ET.SubElement(case, "failure", message=printable(title))
            failure.text = "\n\n".join("\n".join(finding_lines(it, full=True, plain=True)) for it in probe.findings)
        ET.SubElement(case, "system-out").text = printable(probe.detail)
    ET.indent(suite)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suite, encoding="unicode")}\n'


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
