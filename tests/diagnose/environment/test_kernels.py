"""Jupyter's kernels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envsolve.model.finding import Severity
from tests.diagnose.environment.on_disk import Patient, names


def _kernel(directory: Path, name: str, spec: object) -> None:
    file = directory / "kernels" / name / "kernel.json"
    file.parent.mkdir(parents=True)
    file.write_text(spec if isinstance(spec, str) else json.dumps(spec))


def _starting(program: str) -> dict[str, object]:
    return {"argv": [program, "-m", "ipykernel_launcher"], "display_name": "Python 3", "language": "python"}


@pytest.mark.thorough
@pytest.mark.parametrize("variable", ["HOME", "JUPYTER_PATH", "JUPYTER_DATA_DIR"])
def test_a_kernel_whose_python_is_gone_is_reported(empty: Patient, tmp_path: Path, variable: str) -> None:
    place = tmp_path / ".local/share/jupyter" if variable == "HOME" else tmp_path
    _kernel(place, "old", _starting("/nonexistent/bin/python"))
    finding = empty.only("notebook-kernel-broken", Severity.WARNING, variables={variable: str(tmp_path)})
    assert finding.commands[0] == "jupyter kernelspec remove old"


def test_a_kernel_whose_python_may_not_be_run_is_not_called_gone(empty: Patient, tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.touch(mode=0o644)
    _kernel(tmp_path, "closed", _starting(str(program)))
    finding = empty.only("notebook-kernel-broken", Severity.WARNING, variables={"JUPYTER_PATH": str(tmp_path)})
    assert finding.title == "Jupyter's kernel closed starts a Python that does not run"
    assert "is there, and may not be run by this user" in finding.cause


def test_a_kernel_of_the_environment_that_starts_another_s_python_is_reported(empty: Patient, tmp_path: Path) -> None:
    other = tmp_path / "other/bin/python3"
    other.parent.mkdir(parents=True)
    other.touch(mode=0o755)
    _kernel(empty.root / "share/jupyter", "python3", _starting(str(other)))
    finding = empty.only("notebook-kernel-elsewhere", Severity.WARNING)
    assert f"run with {other}" in finding.cause


def test_sound_kernels_are_no_fault(empty: Patient, tmp_path: Path) -> None:
    own, other = empty.root / "bin/python", tmp_path / "other/bin/python"
    for program in (own, other, tmp_path / "bin/env"):
        program.parent.mkdir(parents=True, exist_ok=True)
        program.touch(mode=0o755)
    _kernel(empty.root / "share/jupyter", "python3", _starting(str(own)))
    _kernel(empty.root / "share/jupyter", "by-name", _starting("python"))
    _kernel(empty.root / "share/jupyter", "through-env", _starting(str(tmp_path / "bin/env")))
    _kernel(tmp_path / ".local/share/jupyter", "other", _starting(str(other)))
    _kernel(tmp_path / ".local/share/jupyter", "julia", {"argv": ["/nonexistent/julia"], "language": "julia"})
    for number, spec in enumerate(("", "[]", "{", '{"argv": []}', '{"argv": [3]}', '{"argv": "python"}', "[" * 9999)):
        _kernel(tmp_path / ".local/share/jupyter", f"odd{number}", spec)
    assert names(empty.report(variables={"HOME": str(tmp_path)}).findings) == []
