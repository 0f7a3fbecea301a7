"""The result of a validation, and how findings of several probes become one list."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsolve.model.finding import Finding, Severity
from envsolve.validation.report import ProbeReport, Report, Status

SEEN_IN_FILES = Finding("foreign-library", "from files", Severity.WARNING, "", "", (), ("a",), about="libcudart.so.12")
SEEN_LOADED = SEEN_IN_FILES._replace(title="loaded", severity=Severity.ERROR, evidence=("a", "b"))


def report(*probes: ProbeReport, proofs: tuple[str, ...] = ("pytorch",)) -> Report:
    return Report(Path("python"), probes, (), proofs)


def probe(name: str, status: Status, *findings: Finding) -> ProbeReport:
    return ProbeReport(name, status, 0.1, "", findings)


@pytest.mark.parametrize(
    ("statuses", "ok"),
    [
        ({"driver": Status.PASS, "pytorch": Status.PASS}, True),
        ({"driver": Status.PASS, "pytorch": Status.FAIL}, False),
        ({"driver": Status.PASS, "pytorch": Status.SKIP}, False),
        ({"driver": Status.FAIL, "pytorch": Status.PASS}, False),
        ({"driver": Status.SKIP, "files": Status.PASS, "pytorch": Status.SKIP}, False),
    ],
)
def test_it_passes_if_a_framework_computed_and_nothing_failed(statuses: dict[str, Status], *, ok: bool) -> None:
    assert report(*(probe(name, status) for name, status in statuses.items())).ok is ok


def test_the_same_finding_of_two_probes_is_reported_once_with_the_worse_text() -> None:
    found = report(probe("files", Status.PASS, SEEN_IN_FILES), probe("loaded", Status.FAIL, SEEN_LOADED)).findings
    assert found == (SEEN_LOADED,)


def test_two_findings_of_one_probe_stay_two() -> None:
    other = SEEN_IN_FILES._replace(title="another")
    assert len(report(probe("files", Status.PASS, SEEN_IN_FILES, other)).findings) == 2


def test_the_most_severe_comes_first() -> None:
    note = Finding("ptx-only", "", Severity.INFO, "", "")
    found = report(probe("files", Status.PASS, note, SEEN_IN_FILES), probe("loaded", Status.FAIL, SEEN_LOADED)).findings
    assert [it.severity for it in found] == [Severity.ERROR, Severity.INFO]
