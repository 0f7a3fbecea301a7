"""The healthy machine gives no finding; with one fault it gives that fault's, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    found,
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


@pytest.mark.parametrize("name", CASES)
def test_a_fault_is_found_and_nothing_else(name: str, tmp_path: Path) -> None:
    case, expected = CASES[name]
    assert found(tmp_path, case) == expected


@pytest.mark.parametrize("name", CASES)
def test_findings_are_whole(name: str, tmp_path: Path) -> None:
    for finding in examined(tmp_path, CASES[name][0]).findings:
        for text in (finding.title, finding.cause, finding.fix):
            assert text
            assert not any(slip in text for slip in ("  ", "None", "..", "[]", "()")), finding
        assert finding.cause.endswith(".")
        assert finding.fix.endswith(".")
        assert str(tmp_path) not in str(finding), "a recorded machine's paths are its own"
        assert all(command and command.strip() == command for command in finding.commands)
