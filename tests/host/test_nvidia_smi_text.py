"""Parsing nvidia-smi's text, in the formats of its versions."""

from __future__ import annotations

import pytest

from envsolve.boundary.programs import Finished
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
    f"| Driver Version: {'5' * 5000}.1  CUDA Version: {'1' * 5000}.0 |": (None, None),
    "nothing of the kind": (None, None),
}


@pytest.mark.parametrize("header", HEADERS, ids=range(len(HEADERS)))
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
    f"T4, {'7' * 5000}.5, {'9' * 5000}, [N/A]": Gpu("T4", None),
    "T4, 7.5, \u00b2\u0663, [N/A]": Gpu("T4", ComputeCapability(7, 5)),
    "T4, 7.5, 0, [N/A]": Gpu("T4", ComputeCapability(7, 5)),
    "Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost.  Reboot the system": None,
    "No devices were found": None,
    "": None,
}


@pytest.mark.parametrize("line", ROWS, ids=range(len(ROWS)))
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
def test_a_failure_is_recognised_by_words_then_by_exit_code(output: str) -> None:
    code, trouble = FAILURES[output]
    assert failure(Finished(code, output)).code == trouble
