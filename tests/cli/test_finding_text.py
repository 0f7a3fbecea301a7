"""Findings as text: what is only for information is one line, unless all details are wanted."""

from __future__ import annotations

import click
import pytest

from envsolve.cli.finding_text import findings_of_check
from envsolve.model.finding import Finding, Severity


def finding(identifier: str, severity: Severity) -> Finding:
    return Finding(identifier, f"the title of {identifier}", severity, "a cause", "a fix", evidence=("a line",))


@pytest.mark.parametrize("full", [False, True])
def test_information_is_one_line_after_what_is_broken(full: bool) -> None:
    findings = (finding("copies", Severity.INFO), finding("damaged", Severity.ERROR))
    lines = [click.unstyle(line) for line in findings_of_check(findings, full=full)]
    brief = "info: copies: the title of copies; more with -v"
    assert (brief in lines) is not full
    assert lines.count("cause: a cause") == (2 if full else 1)
    assert lines[-1] == ""
    if not full:
        assert lines[0] == "error: damaged"
        assert lines[-2] == brief
