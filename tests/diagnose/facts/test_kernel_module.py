"""Rules on the driver's kernel module, and on GPUs that it does not reach."""

from __future__ import annotations

import pytest

from tests.diagnose.facts.driver_cases import DOCKER, WSL, Known, cause_ids, seen

DEAD = [
    pytest.param("no-devices-found", Known(), ["no-devices-found"], id="nothing is known"),
    pytest.param("no-devices-found", Known(gpu="12.0"), ["open-modules-needed", "no-devices-found"], id="Blackwell"),
    pytest.param(
        "no-devices-found",
        Known(gpu="12.0", driver="550.54.14"),
        ["driver-too-old-for-gpu", "no-devices-found"],
        id="Blackwell on R550",
    ),
    pytest.param(
        "no-devices-found",
        Known(gpu="6.1", driver="595.71.05"),
        ["driver-too-new-for-gpu", "no-devices-found"],
        id="Pascal on R595",
    ),
    pytest.param("no-devices-found", Known(clues=WSL), ["wsl-driver-not-reached", "no-devices-found"], id="WSL"),
    pytest.param(
        "gpu-init-failed",
        Known(gpu="12.0"),
        ["open-modules-needed", "gpu-init-failed"],
        id="Blackwell that does not start",
    ),
    pytest.param(
        "driver-not-loaded",
        Known(gpu="3.5", driver="535.129.03"),
        ["driver-too-new-for-gpu", "kernel-module-not-loaded"],
        id="Kepler on R535",
    ),
    pytest.param(
        "driver-not-loaded",
        Known(clues=WSL),
        ["wsl-driver-not-reached", "kernel-module-not-loaded"],
        id="nvidia-smi of Linux in WSL",
    ),
    pytest.param("driver-not-loaded", Known(), ["kernel-module-not-loaded"], id="not loaded"),
]


@pytest.mark.parametrize(("symptom", "known", "expected"), DEAD)
def test_gpus_that_the_driver_does_not_start(symptom: str, known: Known, expected: list[str]) -> None:
    assert cause_ids(known, seen(symptom)) == expected


def test_an_open_module_that_is_loaded_is_not_the_proprietary_one() -> None:
    loaded = {"open_module": "NVIDIA UNIX Open Kernel Module"}
    assert cause_ids(Known(gpu="12.0", clues=loaded), seen("gpu-init-failed")) == ["gpu-init-failed"]


@pytest.mark.parametrize(
    "root", ["kernel-module-refused", "kernel-module-missing", "nouveau-has-gpu", "driver-branch-ended"]
)
def test_a_module_that_is_not_loaded_follows_from_the_reported_cause(root: str) -> None:
    assert cause_ids(Known(), seen("driver-not-loaded"), seen(root)) == []


def test_the_system_under_wsl_comes_before_the_module() -> None:
    loaded, old = seen("driver-not-loaded"), seen("windows-without-gpu-for-wsl", build="17763")
    assert cause_ids(Known(clues=WSL), loaded, seen("wsl-1"), old) == ["wsl-1"]
    assert cause_ids(Known(clues=WSL), loaded, old) == [
        "windows-too-old-for-wsl", "wsl-driver-not-reached", "kernel-module-not-loaded",
    ]  # fmt: skip


def test_handles_that_wsl_refuses() -> None:
    line = "Unable to determine the device handle for GPU0"
    first, second = seen("gpu-lost", line, bus="0000:C1:00.0"), seen("gpu-lost", line, bus="0000:E1:00.0")
    assert cause_ids(Known(), first) == ["gpu-lost"]
    assert cause_ids(Known(clues=WSL), first) == ["wsl-tcc-mode", "gpu-lost"]
    assert cause_ids(Known(), first, second, seen("no-devices-found")) == ["gpu-lost", "wsl-tcc-mode"]
    assert cause_ids(Known(clues=DOCKER), first) == ["gpu-lost", "container-lost-gpu"]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        (["119", "119"], ["gsp-timeout"]),
        (["48"], ["gpu-hardware-error"]),
        (["48", "119"], ["gpu-hardware-error", "gsp-timeout"]),
        (["13", "31", "43", "79"], []),
    ],
)
def test_xid_errors_of_hardware_and_driver_are_reported_once_each(numbers: list[str], expected: list[str]) -> None:
    assert cause_ids(Known(), *(seen("gpu-xid", xid=number, bus="0000:01:00") for number in numbers)) == expected
