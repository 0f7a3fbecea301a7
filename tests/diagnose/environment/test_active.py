"""Variables of an activation whose environment was removed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from envsolve.diagnose.environment.found import FoundEnvironment, find_environment
from envsolve.model.finding import Severity
from envsolve.validation.child import Children
from tests.diagnose.environment.on_disk import Patient, names


def _found(**variables: str) -> FoundEnvironment:
    with Children() as children:
        return find_environment(None, None, {"PATH": os.environ.get("PATH", os.defpath), **variables}, children)


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that runs."""
    root = tmp_path_factory.mktemp("venv") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
    return root


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_a_removed_environment_is_a_warning(empty: Patient, tmp_path: Path, variable: str) -> None:
    finding = empty.only("stale-activation", Severity.WARNING, variables={variable: f"{tmp_path}/gone"})
    assert finding.cause.startswith(f"{variable} is {tmp_path}/gone, which is not there")
    assert f"{empty.root} was checked instead" in finding.cause
    assert finding.commands == (f"unset {variable}",)


def test_other_variables_of_conda_are_reset_too(empty: Patient) -> None:
    variables = {"CONDA_PREFIX": "/nonexistent", "CONDA_SHLVL": "1", "CONDA_DEFAULT_ENV": "x", "CONDA_EXE": "/x/conda"}
    finding = empty.only("stale-activation", Severity.WARNING, variables=variables)
    assert finding.commands == ("unset CONDA_PREFIX CONDA_DEFAULT_ENV CONDA_SHLVL",)


def test_a_directory_without_a_python_is_a_warning(empty: Patient, tmp_path: Path) -> None:
    (tmp_path / "left").mkdir()
    finding = empty.only("stale-activation", Severity.WARNING, variables={"VIRTUAL_ENV": f"{tmp_path}/left"})
    assert f"holds no Python that runs: {tmp_path}/left/bin/python is not there" in finding.cause


def test_a_file_is_no_environment(empty: Patient, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    finding = empty.only("stale-activation", Severity.WARNING, variables={"VIRTUAL_ENV": f"{tmp_path}/file"})
    assert "which is not a directory" in finding.cause


def test_a_removed_active_environment_is_reported_beside_the_examined_one(empty: Patient, tmp_path: Path) -> None:
    (tmp_path / "old/bin").mkdir(parents=True)
    (tmp_path / "old/pyvenv.cfg").write_text("home = /nonexistent/bin\n")
    (tmp_path / "old/bin/python").symlink_to("/nonexistent/bin/python3.9")
    finding = empty.only("stale-activation", Severity.WARNING, variables={"VIRTUAL_ENV": f"{tmp_path}/old"})
    assert "is a link to /nonexistent/bin/python3.9, which is not there" in finding.cause


@pytest.mark.thorough
def test_a_complete_active_environment_is_not_a_fault(empty: Patient, venv: Path) -> None:
    assert names(empty.report(variables={"VIRTUAL_ENV": str(venv)}).findings) == []
    assert names(empty.report(variables={"VIRTUAL_ENV": ""}).findings) == []


def test_an_active_environment_of_compilers_is_not_a_fault(empty: Patient, tmp_path: Path) -> None:
    (tmp_path / "gcc/conda-meta").mkdir(parents=True)
    (tmp_path / "gcc/conda-meta/history").touch()
    assert names(empty.report(variables={"CONDA_PREFIX": f"{tmp_path}/gcc"}).findings) == []


@pytest.mark.thorough
def test_the_python_on_path_is_examined_instead(venv: Path, tmp_path: Path) -> None:
    (tmp_path / "left").mkdir()
    for stale in (tmp_path / "gone", tmp_path / "left"):
        found = _found(VIRTUAL_ENV=str(stale), PATH=f"{venv}/bin")
        assert (found.inventory.prefix, found.findings, found.origin, found.runs) == (venv, (), "PATH", True)


def test_the_existing_one_of_two_environments_is_examined(venv: Path) -> None:
    found = _found(VIRTUAL_ENV="/nonexistent", CONDA_PREFIX=str(venv))
    assert (found.inventory.prefix, found.origin) == (venv, "CONDA_PREFIX")


def test_beside_an_environment_of_compilers_the_python_on_path_is_examined(venv: Path, tmp_path: Path) -> None:
    (tmp_path / "conda-meta").mkdir()
    (tmp_path / "conda-meta/history").touch()
    found = _found(CONDA_PREFIX=str(tmp_path), PATH=f"{venv}/bin")
    assert found.inventory.prefix == venv
    assert [it.id for it in found.findings] == ["environment-without-python"]
