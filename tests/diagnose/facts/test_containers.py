"""Rules on containers, and on WSL."""

from __future__ import annotations

import pytest

from envsolve.diagnose.facts.machine import runtime_reason
from envsolve.model.host import Platform
from tests.diagnose.facts.driver_cases import WSL, Known, case_of, cause_ids, seen, words
from tests.diagnose.facts.library_cases import case_of as read

REASONS = [
    ("initialization", "nvml error: driver not loaded: unknown.", "container-host-driver"),
    ("initialization", 'driver error: failed to process request\\\\n\\""": unknown.', "container-host-driver"),
    (
        "initialization",
        "load library failed: libnvidia-ml.so.1: cannot open shared object file",
        "container-host-driver",
    ),
    ("container", "cgroup subsystem devices not found: unknown.", "container-cgroup"),
    ("mount", "failed to add device rules: unable to find any existing device filters", "container-cgroup"),
    ("mount", f"file creation failed: {'/a' * 90}/libnvidia-ml.so.1: file exists: unknown.", "container-file-exists"),
    ("device", "false: unknown device: unknown.", "container-device-unknown"),
    ("ldcache", "process /sbin/ldconfig.real failed with error code: 1", "container-ldconfig"),
    ("mount", "mount operation failed: no such device", "container-runtime-failed"),
]


@pytest.mark.parametrize(("stage", "reason", "expected"), REASONS)
def test_messages_of_nvidias_container_runtime(stage: str, reason: str, expected: str) -> None:
    sighting = seen("container-runtime-failed", stage=stage, reason=reason)
    assert cause_ids(Known(), sighting) == [expected]
    reason = runtime_reason(case_of(Known(), sighting), (sighting,)) or ""
    assert "\\" not in reason
    assert not reason.endswith("unknown")
    assert 0 < len(reason) <= 161


@pytest.mark.parametrize("other", ["wsl-without-adapter", "driver-version-mismatch", "device-files-denied"])
def test_a_second_wording_of_the_container_runtime_is_not_reported_twice(other: str) -> None:
    sighting = seen("container-runtime-failed", stage="initialization", reason="nvml error")
    assert cause_ids(Known(), sighting, seen(other)) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Windows 10 Pro 20H2 (19042.928), Docker Desktop with WSL2", {"windows-without-gpu-for-wsl"}),
        ("OS build 19043", {"windows-without-gpu-for-wsl"}),
        ("OS: Windows 10 10.0.17763, WSL 1", {"windows-without-gpu-for-wsl", "wsl-1"}),
        ("[x] WSL 1", {"wsl-1"}),
        ("Python platform: Windows-10-10.0.19041-SP0", set()),
        ("Windows 10 Pro 22H2 (19045.3324)", set()),
        ("Microsoft Windows [Version 10.0.22631.2715]", set()),
        ("Is it on WSL 1 or WSL 2?", set()),
        ("GPUs do not work in WSL 1 and need WSL 2", set()),
        ("WSL 1.2.5.0", set()),
    ],
)
def test_the_release_of_windows_and_wsl_is_reported(line: str, expected: set[str]) -> None:
    about = ("windows-without-gpu-for-wsl", "wsl-1")
    assert {it.symptom for it in read(line).sightings if it.symptom in about} == expected


def test_a_docker_on_an_old_windows() -> None:
    failed = seen("container-runtime-failed", stage="initialization", reason="load library failed: libnvidia-ml.so.1")
    old = seen("windows-without-gpu-for-wsl", build_of_version="19042", version="20H2")
    assert cause_ids(Known(clues=WSL), failed, old) == [
        "windows-too-old-for-wsl", "wsl-driver-not-reached", "container-host-driver",
    ]  # fmt: skip


def test_wsl_that_blocks_the_gpu() -> None:
    blocked = seen("wsl-gpu-blocked")
    assert cause_ids(Known(), blocked, seen("tcc-mode")) == ["wsl-tcc-mode"]
    assert (
        cause_ids(Known(), blocked, seen("windows-without-gpu-for-wsl", build="18363"))[0] == "windows-too-old-for-wsl"
    )
    assert cause_ids(Known(), blocked) == ["wsl-gpu-blocked", "wsl-tcc-mode"]


@pytest.mark.parametrize(
    ("library", "capability"),
    [
        ("libnvcuvid.so.1", "video"),
        ("libnvidia-encode.so.1", "video"),
        ("libnvoptix.so.1", "graphics"),
        ("libEGL_nvidia.so.0", "graphics"),
    ],
)
def test_which_capability_brings_a_library(library: str, capability: str) -> None:
    answer = words(Known(), seen("driver-capability-missing", library, library=library))
    assert f"NVIDIA_DRIVER_CAPABILITIES=compute,utility,{capability} IMAGE" in answer


def test_docker_on_windows_has_no_toolkit_to_install() -> None:
    known = Known(platform=Platform.WIN_64)
    assert cause_ids(known, seen("container-toolkit-missing")) == ["container-on-windows", "container-toolkit-missing"]
    registered = seen("container-toolkit-missing", runtime="unknown or invalid runtime name: nvidia")
    assert cause_ids(known, registered) == ["container-toolkit-missing"]


@pytest.mark.parametrize("symptom", ["container-toolkit-missing", "image-without-driver"])
def test_no_container_has_a_gpu_on_a_mac(symptom: str) -> None:
    assert cause_ids(Known(platform=Platform.OSX_ARM64), seen(symptom)) == ["macos-without-cuda"]
