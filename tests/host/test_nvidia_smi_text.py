"""Reading nvidia-smi's text, in the forms its versions have printed."""

from __future__ import annotations

import pytest

from envsolve.boundary.programs import Finished
from envsolve.host.libcuda import reading_of
from envsolve.host.nvidia_smi import FIELDS, failure, header_facts, rows
from envsolve.host.trouble import Trouble
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Gpu

HEADERS = {
    "| NVIDIA-SMI 331.62     Driver Version: 331.62         |": ("331.62", None),
    "| NVIDIA-SMI 450.57       Driver Version: 450.57       CUDA Version: 11.0     |": ("450.57", "11.0"),
    "| NVIDIA-SMI 535.54.03              Driver Version: 536.40       CUDA Version: 12.2     |": ("536.40", "12.2"),
    "| NVIDIA-SMI 470.256.02   Driver Version: 580.95.05    CUDA Version: 13.0     |": ("580.95.05", "13.0"),
    "| NVIDIA-SMI 610.43.02              KMD Version: 610.43.02     CUDA UMD Version: 13.3     |": (
        "610.43.02",
        "13.3",
    ),
    "| NVIDIA-SMI 550.54.14              Driver Version: 550.54.14    CUDA Version: N/A      |": ("550.54.14", None),
    "| NVIDIA-SMI 540.4.0                Driver Version: 540.4.0      CUDA Version: ERR!     |": ("540.4.0", None),
    "nothing of the kind": (None, None),
}


@pytest.mark.parametrize("header", HEADERS)
def test_the_header_gives_driver_and_cuda(header: str) -> None:
    driver, cuda = header_facts(header)
    assert (driver and str(driver), cuda and str(cuda)) == HEADERS[header]


ROWS = {
    "NVIDIA H100 80GB HBM3, 9.0, 81559, Disabled": Gpu("NVIDIA H100 80GB HBM3", ComputeCapability(9, 0), 1, 81559),
    "NVIDIA A100-SXM4-40GB, 8.0, 40960, Enabled": Gpu(
        "NVIDIA A100-SXM4-40GB", ComputeCapability(8, 0), 1, 40960, mig=True
    ),
    "NVIDIA GB10, 12.1, [N/A], [N/A]": Gpu("NVIDIA GB10", ComputeCapability(12, 1)),
    "[Unknown Error], [Unknown Error], [Unknown Error], [N/A]": Gpu(None, None),
    "Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost.  Reboot the system": None,
    "No devices were found": None,
    "": None,
}


@pytest.mark.parametrize("line", ROWS)
def test_a_row_is_a_gpu_or_a_message(line: str) -> None:
    assert list(rows(line, FIELDS)) == ([] if ROWS[line] is None else [ROWS[line]])


FAILURES = {
    "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.95": (
        255,
        Trouble.VERSION_MISMATCH,
    ),
    "Failed to initialize NVML: Unknown Error": (255, Trouble.UNKNOWN_ERROR),
    "Failed to initialize NVML: GPU access blocked by the operating system": (17, Trouble.BLOCKED_BY_SYSTEM),
    "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.": (12, Trouble.LIBRARY_MISSING),
    "": (9, Trouble.DRIVER_NOT_LOADED),
    "Something new": (77, Trouble.OTHER_ERROR),
}


@pytest.mark.parametrize("output", FAILURES)
def test_a_failure_is_told_by_words_then_by_exit_code(output: str) -> None:
    code, trouble = FAILURES[output]
    assert failure(Finished(code, output)).code == trouble


CHILD_ANSWERS = {
    "": Trouble.CRASH,
    "[1]": Trouble.CRASH,
    '{"error": {"call": "load", "text": "libcuda.so.1: wrong ELF class"}}': Trouble.LIBRARY_UNUSABLE,
    '{"version": 13000, "error": {"call": "cuInit", "number": 802}}': Trouble.FABRIC_MANAGER,
    '{"version": 13000, "error": {"call": "cuDeviceTotalMem_v2", "number": null, "text": "undefined symbol"}}': (
        Trouble.LIBRARY_UNUSABLE
    ),
}


@pytest.mark.parametrize("output", CHILD_ANSWERS)
def test_whatever_the_libcuda_child_says_is_a_reading(output: str) -> None:
    problem = reading_of(Finished(0, output)).problem
    assert problem is not None
    assert problem.code == CHILD_ANSWERS[output]


def test_lines_printed_before_the_childs_answer_are_skipped() -> None:
    assert str(reading_of(Finished(0, 'preloaded!\n{"version": 12040, "devices": []}\n')).driver_cuda) == "12.4"
