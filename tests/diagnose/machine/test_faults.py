"""The healthy machine has no finding; with one fault it has the finding of that fault only."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from envsolve.model.finding import Finding, Severity
from envsolve.model.host import Reading
from tests.diagnose.machine.faults_driver import DRIVER_FAULTS
from tests.diagnose.machine.faults_libraries import LIBRARIES
from tests.diagnose.machine.faults_places import PLACE_FAULTS
from tests.diagnose.machine.faults_reports import HIDDEN, REPORTED
from tests.diagnose.machine.faults_settings import GPU_KINDS, TOOLKITS, VARIABLES
from tests.diagnose.machine.recorded import (
    WORKING,
    Case,
    examined,
)

CASES = {
    f"{group}: {name}": case
    for group, cases in {
        "driver": DRIVER_FAULTS,
        "place": PLACE_FAULTS,
        "reported": REPORTED,
        "hidden": HIDDEN,
        "libraries": LIBRARIES,
        "toolkits": TOOLKITS,
        "variables": VARIABLES,
        "kinds": GPU_KINDS,
    }.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize("readings", [(), WORKING], ids=["files alone", "a working driver"])
def test_a_healthy_machine_has_no_finding(readings: tuple[Reading, ...], tmp_path: Path) -> None:
    assert examined(tmp_path, Case(readings=readings)).findings == ()


class Fault(NamedTuple):
    """A machine with one fault, and what is found on it."""

    root: Path
    findings: tuple[Finding, ...]
    expected: dict[str, Severity]


@pytest.fixture(scope="module", params=CASES)
def fault(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Fault:
    case, expected = CASES[request.param]
    root = tmp_path_factory.mktemp("machine")
    return Fault(root, examined(root, case).findings, expected)


@pytest.mark.thorough
def test_a_fault_is_found_and_nothing_else(fault: Fault) -> None:
    assert {finding.id: finding.severity for finding in fault.findings} == fault.expected


@pytest.mark.thorough
def test_findings_are_whole(fault: Fault) -> None:
    for finding in fault.findings:
        for text in (finding.title, finding.cause, finding.fix):
            assert text
            assert not any(slip in text for slip in ("  ", "None", "..", "[]", "()")), finding
        assert finding.cause.endswith(".")
        assert finding.fix.endswith(".")
        assert str(fault.root) not in str(finding), "a recorded machine's paths are its own"
        assert all(command and command.strip() == command for command in finding.commands)
