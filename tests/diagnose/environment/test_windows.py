"""The C++ runtime of Visual Studio, on a Windows of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsolve.model.finding import Finding
from envsolve.model.host import Platform
from tests.binary.tiny_dll import tiny_dll
from tests.diagnose.environment.on_disk import Patient, host, names

EVERY = ("VCRUNTIME140.dll", "vcruntime140_1.dll", "MSVCP140.dll")


def _found(patient: Patient, windows: Path, *, platform: Platform = Platform.WIN_64) -> list[Finding]:
    report = patient.report(host(), {"SystemRoot": str(windows)}, platform=platform)
    return [it for it in report.findings if it.id == "visual-c-runtime-missing"]


def _torch(patient: Patient) -> None:
    patient.write("torch/__init__.py")
    patient.write("torch/lib/torch_python.dll")
    patient.install("torch", "2.8.0+cpu", "torch/__init__.py")


def test_a_missing_part_of_the_runtime_is_named(empty: Patient, tmp_path: Path) -> None:
    _torch(empty)
    system = tmp_path / "Windows/System32"
    system.mkdir(parents=True)
    (system / "vcruntime140.dll").touch()
    (finding,) = _found(empty, tmp_path / "Windows")
    assert finding.cause.startswith("vcruntime140_1.dll, msvcp140.dll is nowhere")
    assert f"looked in {system}" in finding.evidence
    assert _found(empty, tmp_path / "Windows", platform=Platform.LINUX_64) == []


@pytest.mark.parametrize("place", ["system", "framework", "conda"])
def test_the_runtime_may_lie_in_several_places(empty: Patient, tmp_path: Path, place: str) -> None:
    _torch(empty)
    directories = {
        "system": tmp_path / "Windows/System32",
        "framework": empty.site / "torch/lib",
        "conda": empty.root / "Library/bin",
    }
    directories[place].mkdir(parents=True, exist_ok=True)
    for name in EVERY:
        (directories[place] / name).touch()
    assert _found(empty, tmp_path / "Windows") == []


def test_without_a_framework_it_is_not_needed(empty: Patient, tmp_path: Path) -> None:
    assert _found(empty, tmp_path / "Windows") == []


@pytest.mark.thorough
def test_without_a_gpu_a_dll_that_the_import_needs_is_still_missed(empty: Patient, tmp_path: Path) -> None:
    empty.write("torch/__init__.py")
    empty.write("torch/version.py", "__version__ = '2.8.0+cu128'\ncuda = '12.8'\nhip = None\n")
    empty.write("torch/lib/torch_cuda.dll").write_bytes(tiny_dll(("cudart64_12.dll",), ()))
    empty.install("torch", "2.8.0+cu128", "torch/__init__.py")
    report = empty.report(host(), {"SystemRoot": str(tmp_path)}, platform=Platform.WIN_64)
    assert ("library-missing", "error") in names(report.findings)
