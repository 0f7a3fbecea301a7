"""A Windows machine, recorded on another system: its drives are directories of the tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsolve.diagnose.machine import Survey, examine_machine
from envsolve.diagnose.report import Report
from envsolve.host.machine import Machine
from envsolve.host.probe import Source
from envsolve.model.capability import ComputeCapability
from envsolve.model.finding import Severity
from envsolve.model.host import GpuStatus, Host, Platform, Reading
from envsolve.model.versions import CudaVersion, DriverVersion
from tests.diagnose.machine.recorded import MATRIX, RTX_4090, Content, write

CUDA = r"C:\Program Files\NVIDIA GPU Computing Toolkit\CUDA"
TOOLKIT = "C/Program Files/NVIDIA GPU Computing Toolkit/CUDA"
FILES: dict[str, Content] = {
    "C/Windows/System32/nvcuda.dll": b"MZ",
    "C/Windows/System32/nvml.dll": b"MZ",
    f"{TOOLKIT}/v12.4/version.json": '{"cuda": {"version": "12.4.1"}}',
    f"{TOOLKIT}/v12.4/bin/nvcc.exe": b"MZ",
    f"{TOOLKIT}/v12.4/bin/cudart64_12.dll": b"MZ",
}
ENVIRON = {"SystemRoot": r"C:\Windows", "ProgramFiles": r"C:\Program Files", "PATH": r"C:\Windows\System32;C:\Windows"}
DRIVER = DriverVersion.parse("580.88")
READING = Reading(Source.NVML, DRIVER, CudaVersion(13, 0), (RTX_4090,))
HOST = Host(Platform.WIN_64, DRIVER, CudaVersion(13, 0), None, (RTX_4090,), readings=(READING,))


def examined(root: Path, files: dict[str, Content], environ: dict[str, str], host: Host = HOST) -> Report:
    write(root, {**FILES, **files})
    machine = Machine(Platform.WIN_64, {**ENVIRON, **environ}, root, live=False)
    return examine_machine(Survey(machine, host, MATRIX))


def found(report: Report) -> dict[str, Severity]:
    return {it.id: it.severity for it in report.findings}


def test_a_healthy_windows_has_no_finding(tmp_path: Path) -> None:
    report = examined(tmp_path, {}, {"CUDA_PATH": rf"{CUDA}\v12.4"})
    assert report.findings == ()
    assert report.inventory["toolkits"] == [
        {"path": rf"{CUDA}\v12.4", "version": "12.4.1", "origin": "Program Files, CUDA_PATH"}
    ]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("files", "environ", "expected"),
    [
        ({"C/Windows/System32/nvcuda.dll": None}, {}, {"driver-library-missing": Severity.ERROR}),
        (
            {},
            {"PATH": rf"C:\Windows\System32;{CUDA}\v12.4\bin"},
            {"cuda-on-library-path": Severity.INFO},
        ),
        (
            {f"{TOOLKIT}/v11.8/version.json": '{"cuda": {"version": "11.8.0"}}'},
            {},
            {"several-toolkits": Severity.INFO},
        ),
        (
            {f"{TOOLKIT}/v12.4/bin/cudnn64_9.dll": b""},
            {},
            {"library-empty": Severity.WARNING},
        ),
        ({}, {"CUDA_PATH": r"D:\cuda"}, {"cuda-home-wrong": Severity.WARNING}),
        ({}, {"CUDA_VISIBLE_DEVICES": "-1"}, {"gpus-hidden": Severity.ERROR}),
        ({}, {"LD_LIBRARY_PATH": ":", "LD_PRELOAD": "libcudart.so"}, {}),
        ({}, {"CUDA_LAUNCH_BLOCKING": "1"}, {"launch-blocking": Severity.WARNING}),
    ],
)
def test_a_fault_of_windows_is_found_and_nothing_else(
    files: dict[str, Content], environ: dict[str, str], expected: dict[str, Severity], tmp_path: Path
) -> None:
    report = examined(tmp_path, files, environ)
    assert found(report) == expected
    assert not any("unset" in command or "sudo" in command for it in report.findings for command in it.commands)


def test_a_driver_of_windows_that_dropped_the_gpu(tmp_path: Path) -> None:
    pascal = RTX_4090._replace(name="NVIDIA GeForce GTX 1080", compute_capability=ComputeCapability(6, 1))
    host = HOST._replace(driver=DriverVersion.parse("591.44"), gpus=(pascal,), readings=(), status=GpuStatus.NO_DRIVER)
    (finding,) = examined(tmp_path, {}, {}, host).findings
    assert finding.id == "driver-too-new-for-gpu"
    assert "R580 and nothing after it" in finding.fix


def test_macos_has_no_cuda(tmp_path: Path) -> None:
    machine = Machine(Platform.OSX_ARM64, {"CUDA_HOME": ""}, tmp_path, live=False)
    host = Host(Platform.OSX_ARM64, status=GpuStatus.NO_HARDWARE)
    assert found(examine_machine(Survey(machine, host, MATRIX))) == {"macos-without-cuda": Severity.INFO}
