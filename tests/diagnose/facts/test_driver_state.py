"""Rules on a failing driver: two versions of it, numbers of errors, a driver that does not start."""

from __future__ import annotations

import pytest

from envsolve.diagnose.case import Sighting
from envsolve.model.host import Platform
from tests.diagnose.facts.driver_cases import DOCKER, WSL, Known, case_of, cause_ids, seen, words

NUMBERS = [
    ("3", "driver-not-initialized"),
    ("30", "driver-unknown-error"),
    ("34", "stub-driver-library"),
    ("35", "driver-too-old"),
    ("46", "gpu-unavailable"),
    ("100", "no-device"),
    ("101", "invalid-device"),
    ("214", "gpu-ecc-error"),
    ("222", "ptx-too-new"),
    ("303", "driver-library-not-found"),
    ("500", "wsl-container-library"),
    ("802", "fabric-manager-not-ready"),
    ("803", "driver-version-mismatch"),
    ("804", "forward-compatibility-unsupported"),
    ("805", "mps-in-trouble"),
    ("999", "driver-unknown-error"),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("number", "cause"), NUMBERS)
def test_a_number_means_what_its_words_mean(number: str, cause: str) -> None:
    assert (
        cause_ids(Known(), seen("cuda-error-number", "failed call to cuInit: UNKNOWN ERROR", number=number))[0] == cause
    )


@pytest.mark.parametrize("number", ["2", "700", "1"])
def test_a_number_of_another_subject_is_left_alone(number: str) -> None:
    assert case_of(Known(), seen("cuda-error-number", number=number)).sightings[0].symptom == "cuda-error-number"


def test_messages_of_container_runtimes_are_about_the_host() -> None:
    line = "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch"
    sighting = seen("driver-version-mismatch", line, by_driver="driver/library version mismatch")
    assert cause_ids(Known(clues=DOCKER), sighting) == ["driver-version-mismatch"]


def test_a_number_with_its_words_is_reported_once() -> None:
    sightings = (seen("cuda-error-number", number="804"), seen("forward-compatibility-unsupported"))
    assert len(case_of(Known(), *sightings).of("forward-compatibility-unsupported")) == 1


MISMATCH = [
    pytest.param(
        Known(),
        {"by_driver": "Driver/library version mismatch"},
        ["driver-version-mismatch"],
        id="NVML: an update without a restart",
    ),
    pytest.param(
        Known(clues=DOCKER),
        {"by_driver": "Driver/library version mismatch"},
        ["driver-in-container", "driver-version-mismatch"],
        id="NVML in a container",
    ),
    pytest.param(
        Known(clues=DOCKER),
        {"by_driver": "API mismatch", "kernel": "470.182.3", "library": "520.61.5"},
        ["driver-version-mismatch"],
        id="a kernel that a container's log shows",
    ),
    pytest.param(Known(), {}, ["driver-version-mismatch", "stale-compat-library"], id="803 alone"),
    pytest.param(Known(clues=DOCKER), {}, ["stale-compat-library", "driver-version-mismatch"], id="803 in a container"),
    pytest.param(
        Known(clues={"ld_library_path": "/opt/lib:/usr/local/cuda-12.4/compat"}),
        {},
        ["stale-compat-library", "driver-version-mismatch"],
        id="803 and a directory of cuda-compat",
    ),
    pytest.param(
        Known(),
        {"kernel": "470.182.3", "library": "520.61.5"},
        ["stale-compat-library", "driver-version-mismatch"],
        id="a library of a newer branch",
    ),
    pytest.param(
        Known(),
        {"kernel": "460.73.01", "library": "460.56"},
        ["driver-version-mismatch", "stale-compat-library"],
        id="of one branch",
    ),
]


@pytest.mark.parametrize(("known", "fields", "expected"), MISMATCH)
def test_why_module_and_library_differ(known: Known, fields: dict[str, str], expected: list[str]) -> None:
    assert cause_ids(known, seen("driver-version-mismatch", **fields)) == expected


def test_packages_give_the_version_of_the_libraries() -> None:
    sightings = (seen("driver-version-mismatch", by_driver="mismatch"), seen("driver-packages", package="525.85.12"))
    answer = words(Known(clues={"driver": "520.56.06"}), *sightings)
    assert "The kernel module is 520.56.06, the driver's libraries are 525.85.12." in answer


COMPAT = [
    pytest.param(Known(clues=DOCKER), (), ["forward-compatibility-unsupported"], id="a container"),
    pytest.param(Known(), (), ["forward-compatibility-unsupported", "driver-version-mismatch"], id="nothing is known"),
    pytest.param(
        Known(), (seen("driver-version-mismatch", by_driver="mismatch"),), [], id="an update without a restart"
    ),
]


@pytest.mark.parametrize(("known", "others", "expected"), COMPAT)
def test_error_804(known: Known, others: tuple[Sighting, ...], expected: list[str]) -> None:
    assert cause_ids(known, seen("forward-compatibility-unsupported"), *others) == expected


def test_the_cuda_that_an_image_shows_is_not_the_drivers() -> None:
    sighting = seen("forward-compatibility-unsupported")
    answer = words(Known(driver="470.161.03", clues={"driver_cuda": "11.8"}), sighting)
    assert "shows CUDA 11.8 only because of the compat library" in answer
    assert "to 520.61.05 or newer" in answer


UNKNOWN = [
    pytest.param(
        Known(), "CUDA unknown error", ["driver-unknown-error", "container-without-uvm"], id="nothing is known"
    ),
    pytest.param(
        Known(clues=DOCKER), "CUDA unknown error", ["container-without-uvm", "driver-unknown-error"], id="a container"
    ),
    pytest.param(
        Known(),
        "lxd cannot use cuda, cudaErrorUnknown",
        ["container-without-uvm", "driver-unknown-error"],
        id="LXD by its name",
    ),
    pytest.param(
        Known(platform=Platform.WIN_64),
        "CUDA unknown error",
        ["driver-restart-windows"],
        id="Windows",
    ),
]


@pytest.mark.parametrize(("known", "line", "expected"), UNKNOWN)
def test_the_unknown_error(known: Known, line: str, expected: list[str]) -> None:
    assert cause_ids(known, seen("driver-unknown-error", line)) == expected


INITIAL = [
    pytest.param(
        Known(), "CUDA driver initialization failed", ["driver-not-initialized", "forked-cuda"], id="at the start"
    ),
    pytest.param(
        Known(), "cuda runtime error (3) : initialization error", ["forked-cuda", "driver-not-initialized"], id="later"
    ),
    pytest.param(
        Known(driver="426.78", cuda="11.3", platform=Platform.WIN_64, packages={"torch": "1.11.0"}),
        "CUDA driver initialization failed",
        ["driver-too-old", "driver-not-initialized"],
        id="a driver that is too old",
    ),
    pytest.param(
        Known(driver="418.226.00"),
        "CUDA driver initialization failed",
        ["driver-too-old", "driver-not-initialized", "forked-cuda"],
        id="a driver from before CUDA 11",
    ),
]


@pytest.mark.parametrize(("known", "line", "expected"), INITIAL)
def test_error_3(known: Known, line: str, expected: list[str]) -> None:
    assert cause_ids(known, seen("driver-not-initialized", line)) == expected


def test_a_gpu_in_exclusive_mode_is_reported_with_its_mode() -> None:
    assert cause_ids(Known(), seen("gpu-unavailable"), seen("exclusive-mode")) == ["gpu-unavailable"]
    assert cause_ids(Known(), seen("gpu-unavailable")) == ["gpu-unavailable", "gpu-stuck"]
    assert cause_ids(Known(clues=WSL), seen("gpu-unavailable")) == ["gpu-stuck", "gpu-unavailable"]


def test_a_library_of_an_older_driver_is_to_be_removed() -> None:
    sighting = seen("driver-version-mismatch", kernel="384.130.0", library="375.66.0")
    answer = words(Known(), sighting)
    assert "the library is the older one" in answer
    assert "Remove the libraries of 375.66.0" in answer
    assert "ldconfig -p | grep libcuda" in answer


PROC = {"kernel": "535.104.12"}
NAMED = [
    pytest.param(
        {"library": "535.129"}, PROC, {}, "The kernel module is 535.104.12, the driver's libraries are 535.129."
    ),
    pytest.param({"library": "535.129"}, {}, {"driver": "535.104.12"}, "The kernel module is 535.104.12"),
    pytest.param({"library": "535.129"}, {}, {"driver": "535.129.03"}, "The driver's libraries are 535.129."),
    pytest.param({}, PROC, {}, "The kernel module is 535.104.12."),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("nvml_fields", "parts", "clues", "expected"), NAMED)
def test_the_reported_versions_are_named(
    nvml_fields: dict[str, str], parts: dict[str, str], clues: dict[str, str], expected: str
) -> None:
    """NVML reports two of three numbers, so 535.129.03 does not differ from its 535.129."""
    sighting = seen("driver-version-mismatch", by_driver="mismatch", **nvml_fields)
    beside = (seen("driver-packages", **parts),) if parts else ()
    answer = words(Known(clues=clues), sighting, *beside)
    assert expected.removesuffix(".") in answer
    assert ("The kernel module is" in answer) is ("kernel module is" in expected)


START = "out-of-memory-at-start"


def test_out_of_memory_at_the_first_call_is_wsls_only_in_wsl() -> None:
    every = ["wsl-out-of-memory-at-start", "host-memory-limit", "gpu-memory-taken"]
    neutral = ["out-of-memory-at-start", "gpu-memory-taken", "host-memory-limit", "wsl-out-of-memory-at-start"]
    assert cause_ids(Known(), seen(START)) == neutral
    assert cause_ids(Known(clues=WSL), seen(START), seen("slurm")) == every
    assert cause_ids(Known(driver="551.52"), seen(START)) == neutral
    assert cause_ids(Known(), seen(START), seen("slurm")) == every[1:]
    assert cause_ids(Known(driver="535.104.12"), seen(START)) == every[1:]
