"""Whether commands use the active environment, and whose modules are imported in it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from envsolve.model.finding import Severity
from tests.diagnose.environment.on_disk import Patient, names


def _program(directory: Path, *programs: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for name in programs:
        (directory / name).symlink_to(sys.executable)
    return directory


def _path(*directories: Path) -> str:
    return os.pathsep.join(map(str, directories))


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_an_active_environment_whose_python_is_not_first_is_an_error(
    empty: Patient, tmp_path: Path, variable: str
) -> None:
    own, other = _program(empty.root / "bin", "python"), _program(tmp_path / "other", "python")
    finding = empty.only(
        "wrong-python", Severity.ERROR, variables={variable: str(empty.root), "PATH": _path(other, own)}
    )
    assert f"{variable} says that {empty.root} is active, and `python` starts {other / 'python'}" in finding.cause
    found = empty.report(variables={variable: str(empty.root), "PATH": _path(own, other)}).findings
    assert names(found) == []


@pytest.mark.thorough
def test_an_environment_that_is_not_active_is_not_expected_on_path(empty: Patient, tmp_path: Path) -> None:
    other = _program(tmp_path / "other/bin", "python", "pip")
    assert names(empty.report(variables={"PATH": _path(other)}).findings) == []
    assert names(empty.report(variables={"VIRTUAL_ENV": str(other.parent), "PATH": _path(other)}).findings) == []


def test_the_path_of_the_shell_counts_and_not_that_of_programs(empty: Patient, tmp_path: Path) -> None:
    own, other = _program(empty.root / "bin", "python"), _program(tmp_path / "other", "python")
    shell = {"VIRTUAL_ENV": str(empty.root), "PATH": _path(other, own)}
    found = empty.report(variables={"VIRTUAL_ENV": str(empty.root), "PATH": _path(own)}, shell=shell).findings
    assert names(found) == [("wrong-python", "error")]


@pytest.mark.parametrize(("own_pip", "severity"), [(True, Severity.WARNING), (False, Severity.INFO)])
def test_a_pip_of_another_environment_installs_elsewhere(
    empty: Patient, tmp_path: Path, own_pip: bool, severity: Severity
) -> None:
    first, own = _program(tmp_path / "other", "pip"), _program(empty.root / "bin", "python")
    if own_pip:
        _program(own, "pip")
    finding = empty.only("wrong-pip", severity, variables={"VIRTUAL_ENV": str(empty.root), "PATH": _path(first, own)})
    assert f"`pip` starts {first / 'pip'}" in finding.cause


def test_python_home_sends_every_python_elsewhere(empty: Patient) -> None:
    empty.only("python-home-set", Severity.WARNING, variables={"PYTHONHOME": "/opt/python"})


def _elsewhere(directory: Path, *packages: str) -> Path:
    for package in packages:
        name, _, version = package.partition("==")
        folder = directory / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
        (folder / "RECORD").write_text("")
    return directory


def test_a_framework_from_pythonpath_is_a_warning(empty: Patient, tmp_path: Path) -> None:
    more = _elsewhere(tmp_path / "more", "nvidia-cudnn-cu12==9.1.0.70", "requests==2.0")
    findings = empty.report(variables={"PYTHONPATH": str(more)}, before=[more]).findings
    assert names(findings) == [("modules-from-elsewhere", "warning")]
    assert findings[0].evidence == (f"nvidia-cudnn-cu12 9.1.0.70 in {more}",)
    assert findings[0].commands == ("unset PYTHONPATH",)


@pytest.mark.thorough
def test_a_framework_from_pythonpath_that_hides_the_environment_s_is_an_error(stack: Patient, tmp_path: Path) -> None:
    more = _elsewhere(tmp_path / "more", "torch==2.7.1")
    findings = stack.report(variables={"PYTHONPATH": str(more)}, before=[more]).findings
    assert names(findings) == [("modules-from-elsewhere", "error")]
    assert "torch 2.7.1 is imported instead of 2.8.0" in findings[0].cause


@pytest.mark.thorough
def test_modules_of_one_s_own_on_pythonpath_are_no_fault(stack: Patient, tmp_path: Path) -> None:
    more = _elsewhere(tmp_path / "more", "mine==1.0")
    findings = stack.report(variables={"PYTHONPATH": f"{more}{os.pathsep}{tmp_path}/gone"}, before=[more]).findings
    assert names(findings) == []


@pytest.mark.thorough
def test_packages_in_the_users_own_directory_come_before_those_of_conda(stack: Patient, tmp_path: Path) -> None:
    users = _elsewhere(tmp_path / ".local/lib/python3.12/site-packages", "torch==2.7.1")
    findings = stack.report(variables={"HOME": str(tmp_path)}, before=[users]).findings
    assert names(findings) == [("modules-from-elsewhere", "error")]
    assert findings[0].commands[0] == "export PYTHONNOUSERSITE=1"
