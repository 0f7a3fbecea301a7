"""Rules on the driver's version depend on other facts: the same error has other causes on other machines."""

from __future__ import annotations

import pytest

from envsolve.diagnose.facts import CaseFacts, driver
from envsolve.findings.catalogue import shipped
from envsolve.model.host import Platform
from envsolve.model.versions import CudaVersion
from tests.diagnose.facts.driver_cases import KNOWLEDGE, Known, case_of, cause_ids, only, seen, words

TOO_OLD = "driver version is insufficient for CUDA runtime version"


PYTORCH = {"torch": "2.8.0+cu128"}


INSUFFICIENT = [
    pytest.param(
        Known(),
        ["driver-too-old", "driver-library-missing", "container-without-gpu", "stale-compat-library"],
        id="nothing is known",
    ),
    pytest.param(Known(driver="470.86", packages=PYTORCH), ["driver-too-old"], id="the build is newer than the driver"),
    pytest.param(
        Known(driver="570.133.20", clues={"toolkit": "12.9"}),
        ["newer-cuda-runtime-loaded", "container-without-gpu"],
        id="the toolkit is not newer, so something else is",
    ),
    pytest.param(
        Known(driver="570.133.20", packages=PYTORCH, clues={"container": "docker"}),
        ["container-without-gpu", "newer-cuda-runtime-loaded"],
        id="driver and build fit, in a container",
    ),
    pytest.param(
        Known(driver="465.21", clues={"toolkit": "11.0", "wsl": "WSL"}),
        ["wsl-driver-not-reached", "newer-cuda-runtime-loaded"],
        id="driver and toolkit fit, in WSL",
    ),
    pytest.param(Known(platform=Platform.OSX_64), ["macos-without-cuda"], id="a Mac"),
    pytest.param(
        Known(clues={"container": "docker"}),
        ["driver-too-old", "container-without-gpu", "driver-library-missing", "stale-compat-library"],
        id="a container of which nothing else is known",
    ),
]


@pytest.mark.parametrize(("known", "expected"), INSUFFICIENT)
def test_error_35_has_the_possible_causes_on_this_machine(known: Known, expected: list[str]) -> None:
    sighting = seen("driver-too-old", TOO_OLD)
    assert cause_ids(known, sighting) == expected


@pytest.mark.parametrize(
    ("symptom", "cause"), [("wsl-1", "wsl-1"), ("windows-without-gpu-for-wsl", "windows-too-old-for-wsl")]
)
def test_a_windows_without_gpus_for_wsl_is_the_only_cause(symptom: str, cause: str) -> None:
    sighting = seen("driver-too-old", TOO_OLD)
    assert cause_ids(Known(driver="465.21", clues={"wsl": "WSL"}), sighting, seen(symptom, build="18363")) == [cause]


FOUND = [
    pytest.param("10010", Known(), "CUDA 10.1", id="before CUDA 11 nothing is known of what was asked"),
    pytest.param("11040", Known(), "CUDA 12 or newer, which needs driver 525.60.13", id="majors are kept"),
    pytest.param(
        "12080",
        Known(packages={"torch": "2.11.0"}),
        "is for CUDA 13.0, which needs driver 580.65.06",
        id="by the build of the version",
    ),
    pytest.param("11040", Known(packages={"torch": ""}), "for CUDA 11.8 or older", id="what runs"),
    pytest.param("12080", Known(platform=Platform.WIN_64), "580.88", id="Windows has numbers of its own"),
    pytest.param(
        "11040", Known(gpu="3.7"), "R470 is the last driver branch", id="a GPU whose drivers ended gets no newer one"
    ),
    pytest.param("11040", Known(gpu="6.1"), "R580 at most", id="a GPU whose drivers end"),
]


@pytest.mark.parametrize(("number", "known", "expected"), FOUND)
def test_the_driver_version_decides_what_it_runs(number: str, known: Known, expected: str) -> None:
    sighting = seen("driver-too-old", cuda=number)
    assert cause_ids(known, sighting) == ["driver-too-old"]
    assert expected in words(known, sighting)


def test_a_driver_known_only_by_its_cuda_limits_the_solver() -> None:
    sighting = seen("driver-too-old", cuda="11040")
    remedy = only(Known(), sighting).remedy
    assert remedy is not None
    assert remedy.cuda == "<=11.8"


@pytest.mark.parametrize(("gpu", "has_build"), [(None, True), ("8.6", True), ("12.0", False)])
def test_a_driver_older_than_the_gpu_runs_no_build(gpu: str | None, has_build: bool) -> None:
    answer = words(Known(driver="470.86", gpu=gpu, packages={"torch": ""}), seen("driver-too-old", cuda="11040"))
    assert ("for CUDA 11.8 or older" in answer) is has_build
    assert ("branch R570 or newer" in answer) is (gpu == "12.0")


def test_pytorch_is_known_by_its_own_words() -> None:
    sighting = seen("driver-too-old", cuda="11040", pytorch="driver on your system is too old")
    cause = only(Known(gpu="8.6"), sighting)
    assert "too old for PyTorch" in words(Known(gpu="8.6"), sighting)
    assert cause.fields["name"] == "pytorch"
    assert cause.remedy is not None
    assert cause.remedy.cuda == "<=11.8"


@pytest.mark.parametrize("number", ["2147483647", "0", "999999"])
def test_a_number_that_is_no_cuda_is_not_nvidias(number: str) -> None:
    sighting = seen("driver-too-old", cuda=number)
    assert cause_ids(Known(), sighting) == ["driver-not-nvidia"]


CONDA = [
    pytest.param({"wanted": "11.0", "found": "10.2"}, Known(), "conda-cuda-too-low", id="lower than asked"),
    pytest.param({"wanted": "12"}, Known(driver="470.86"), "conda-cuda-too-low", id="by the driver"),
    pytest.param({"wanted": "12"}, Known(), "conda-cuda-missing", id="missing"),
    pytest.param({"found": "10.2"}, Known(), "conda-conflict-not-driver", id="only mentioned"),
    pytest.param({"wanted": "10.1", "found": "10.2"}, Known(), "conda-conflict-not-driver", id="high enough"),
]


@pytest.mark.parametrize(("fields", "known", "expected"), CONDA)
def test_messages_of_conda_about_its_virtual_package(fields: dict[str, str], known: Known, expected: str) -> None:
    sighting = seen("conda-cuda", **fields)
    assert cause_ids(known, sighting)[0] == expected


IMAGES = [
    pytest.param(
        {"what": "cuda", "operator": ">=", "wanted": "12.8"},
        Known(driver="535.104.05"),
        "12.8",
        "NVIDIA_DISABLE_REQUIRE",
        id="same major",
    ),
    pytest.param(
        {"what": "cuda", "operator": ">=", "wanted": "12.8"}, Known(driver="470.86"), "12.8", "", id="another major"
    ),
    pytest.param(
        {"what": "brand", "operator": "=", "wanted": "tesla", "image": "10.1"}, Known(), "10.1", "", id="told beside it"
    ),
]


@pytest.mark.parametrize(("fields", "known", "wanted", "minor"), IMAGES)
def test_requirements_of_an_image_on_the_host(fields: dict[str, str], known: Known, wanted: str, minor: str) -> None:
    sighting = seen("driver-too-old-for-image", **fields)
    answer = words(known, sighting)
    assert f"needs a driver that fully supports CUDA {wanted}" in answer
    assert f"Update the NVIDIA driver of the host to {KNOWLEDGE.full_driver(CudaVersion.parse(wanted))}" in answer
    assert minor in answer
    assert ("minor-version compatibility" in answer) is bool(minor)


def test_arguments_of_a_container_alone_mean_nothing() -> None:
    sighting = seen("driver-too-old-for-image", image="9.0")
    assert cause_ids(Known(), sighting) == []


PTX = [
    pytest.param(
        {"made": "8.5", "reads": "8.4"},
        Known(driver="550.54.15"),
        ["PTX 8.5 is from CUDA 12.5", "to 555.42.02 or newer", "CUDA 12.4 or older"],
        id="both told",
    ),
    pytest.param(
        {"made": "6.3", "reads": "6.1"}, Known(), ["from CUDA 10.0", "CUDA 9.1 or older"], id="without the driver"
    ),
    pytest.param({}, Known(driver="460.80", cuda="11.3"), ["to 465.19.01 or newer"], id="by the CUDA of the build"),
    pytest.param(
        {}, Known(driver="460.80", cuda="11.3", platform=Platform.WIN_64), ["to 465.89 or newer"], id="on Windows"
    ),
    pytest.param({}, Known(driver="580.126.09"), ["newer than 13.0", "CUDA 13.0 or older"], id="by the driver alone"),
    pytest.param(
        {},
        Known(driver="580.126.09", cuda="12.8"),
        ["newer than 13.0"],
        id="not of a CUDA that the driver compiles",
    ),
]


@pytest.mark.parametrize(("fields", "known", "expected"), PTX)
def test_ptx_that_is_too_new(fields: dict[str, str], known: Known, expected: list[str]) -> None:
    answer = words(known, seen("ptx-too-new", **fields))
    assert [it for it in expected if it not in answer] == []


ENDED = [
    pytest.param({"legacy": "580", "gpu": "NVIDIA GeForce GTX 1050"}, Known(), ["driver-too-new-for-gpu"], id="told"),
    pytest.param(
        {"driver": "595.71.05"},
        Known(driver="595.71.05", gpu="6.1"),
        ["driver-too-new-for-gpu"],
        id="by driver and GPU",
    ),
    pytest.param({"driver": "595.71.05"}, Known(driver="595.71.05", gpu="8.6"), [], id="of a GPU that it supports"),
]


@pytest.mark.parametrize(("fields", "known", "expected"), ENDED)
def test_a_driver_that_is_too_new(fields: dict[str, str], known: Known, expected: list[str]) -> None:
    sighting = seen("driver-branch-ended", **fields)
    assert cause_ids(known, sighting) == expected


MODULES = [
    pytest.param(
        {"needs_open": "NVIDIA open kernel modules"}, Known(), ["open-modules-needed"], id="needs the open ones"
    ),
    pytest.param({"pci": "1b82"}, Known(), ["open-modules-on-old-gpu"], id="has the open ones"),
    pytest.param(
        {"driver": "550.54.14"},
        Known(driver="550.54.14", gpu="12.0"),
        ["driver-too-old-for-gpu"],
        id="Blackwell on R550",
    ),
    pytest.param(
        {"driver": "590.44.01"}, Known(driver="590.44.01", gpu="7.0"), ["driver-too-new-for-gpu"], id="Volta on R590"
    ),
    pytest.param(
        {"driver": "590.44.01"},
        Known(),
        ["driver-too-old-for-gpu", "driver-too-new-for-gpu"],
        id="nobody knows the GPU",
    ),
]


@pytest.mark.parametrize(("fields", "known", "expected"), MODULES)
def test_modules_that_do_not_support_a_gpu(fields: dict[str, str], known: Known, expected: list[str]) -> None:
    sighting = seen("gpu-not-supported-by-module", **fields)
    assert cause_ids(known, sighting) == expected


def test_a_gpu_is_known_by_its_pci_number() -> None:
    sighting = seen("gpu-not-supported-by-module", pci="1b82")
    assert "GeForce GTX 1070 Ti with compute capability 6.1" in words(Known(), sighting)


@pytest.mark.parametrize(
    ("wants", "found", "expected"),
    [
        ("CUDA 11.x or 12.x", "13.0", "driver-newer-than-program"),
        ("CUDA 11.x or higher", "10.2", "driver-too-old"),
    ],
)
def test_a_program_that_refuses_a_driver(wants: str, found: str, expected: str) -> None:
    sighting = seen("driver-newer-than-program", program="CUDA.jl", wants=wants, found=found)
    assert cause_ids(Known(gpu="6.1"), sighting) == [expected]
    assert ("CUDA 12.9 is the last for compute capability 6.1" in words(Known(gpu="6.1"), sighting)) is (
        found == "13.0"
    )


UNAVAILABLE = [
    pytest.param(
        Known(driver="410.48", packages={"torch": "1.3.0"}), ["driver-too-old"], id="older than the default build"
    ),
    pytest.param(
        Known(driver="391.74", packages={"torch": "1.3.0+cu92"}, platform=Platform.WIN_64),
        ["driver-too-old"],
        id="older than the build",
    ),
    pytest.param(Known(driver="580.65.06", packages=PYTORCH), [], id="new enough"),
    pytest.param(Known(packages=PYTORCH), [], id="nobody knows the driver"),
    pytest.param(Known(driver="410.48"), [], id="nobody knows the framework"),
]


@pytest.mark.parametrize(("known", "expected"), UNAVAILABLE)
def test_missing_cuda_is_a_fault_of_the_driver_only_if_versions_prove_it(known: Known, expected: list[str]) -> None:
    sighting = seen("cuda-unavailable")
    assert cause_ids(known, sighting) == expected


@pytest.mark.parametrize(
    ("capability", "version", "too_new", "too_old"),
    [
        ("6.1", "590.44.01", True, False),
        ("6.1", "580.95.05", False, False),
        ("6.1", "581.29", False, False),
        ("3.7", "495.29.05", True, False),
        ("12.0", "550.54.14", False, True),
    ],
)
def test_whether_a_driver_supports_a_gpu(capability: str, version: str, too_new: bool, too_old: bool) -> None:
    facts = CaseFacts(case_of(Known(driver=version, gpu=capability)), (), shipped())
    assert facts("driver_too_new_for_gpu") is too_new
    assert facts("driver_too_old_for_gpu") is too_old


def test_the_driver_version_counts_before_that_of_an_image() -> None:
    case = case_of(Known(driver="470.161.03", clues={"driver_cuda": "11.8"}))
    assert driver.driver_full(case, ()) == CudaVersion(11, 4)
    assert driver.driver_newest(case, ()) == CudaVersion(11, 8)
