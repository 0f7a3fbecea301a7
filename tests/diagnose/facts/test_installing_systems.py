"""Decisions of the rules if a package has no wheel for a system: CUDA on a Mac, ARM, placeholder packages."""

from __future__ import annotations

import pytest

from envsolve.diagnose.case import Given
from envsolve.diagnose.facts.installing import for_cuda
from envsolve.model.host import Platform
from tests.diagnose.facts.library_cases import case_of
from tests.diagnose.facts.package_cases import causes_of, details_of, words_of

NONE = "ERROR: Could not find a version that satisfies the requirement {} (from versions: none)"
UNLISTED = "ERROR: No matching distribution found for {}"
MAC = Given(platform=Platform.OSX_ARM64)
ARM = Given(platform=Platform.LINUX_AARCH64)


@pytest.mark.parametrize(
    ("package", "expected"),
    [
        ("onnxruntime-gpu", True),
        ("tensorflow-gpu", True),
        ("cupy-cuda12x", True),
        ("nvidia-cudnn-cu12", True),
        ("jax-cuda13-plugin", True),
        ("nvidia-ml-py", False),
        ("onnxruntime", False),
        ("torch", False),
        ("jax", False),
        ("cupy", False),
    ],
)
def test_packages_that_have_code_for_cuda_in_every_wheel(package: str, expected: bool) -> None:
    case = case_of(NONE.format(package))
    assert for_cuda(case, case.sightings) == expected


@pytest.mark.thorough
@pytest.mark.parametrize("package", ["onnxruntime-gpu", "onnxruntime-gpu==1.17.1", "cupy-cuda12x", "paddlepaddle-gpu"])
@pytest.mark.parametrize("text", [NONE, UNLISTED])
def test_a_mac_has_no_package_for_cuda(text: str, package: str) -> None:
    assert causes_of(text.format(package), MAC) == ["no-cuda-on-macos"]


def test_uv_gets_the_same_advice() -> None:
    text = "Because there is no version of onnxruntime-gpu==1.17.1 and you require onnxruntime-gpu==1.17.1"
    assert causes_of(text, MAC) == ["no-cuda-on-macos"]


def test_on_a_mac_the_package_for_the_cpu_is_named() -> None:
    assert "pip install onnxruntime" in words_of(NONE.format("onnxruntime-gpu"), MAC)
    assert "Leave it out" in words_of(NONE.format("nvidia-cublas-cu12"), MAC)


def test_a_package_for_the_cpu_is_not_refused_on_a_mac() -> None:
    assert causes_of(NONE.format("onnxruntime"), MAC) == ["no-wheel-for-this-system"]


def test_without_a_known_system_a_mac_is_one_of_the_reasons() -> None:
    no_mac = "no release has a wheel for macOS"
    assert no_mac in details_of(NONE.format("onnxruntime-gpu"))
    assert no_mac not in details_of(NONE.format("onnxruntime"))


@pytest.mark.parametrize("requirement", ["onnxruntime-gpu", "onnxruntime-gpu==1.21"])
def test_wheels_for_the_cpu_do_not_count_for_a_package_for_cuda(requirement: str) -> None:
    words = words_of(UNLISTED.format(requirement), ARM)
    assert "is 1.29.0, for CUDA 13.0" in words
    assert "Install onnxruntime-gpu 1.29.0 or newer" in words
    assert " only." not in words


def test_a_release_with_arm_wheels_is_not_reported_to_have_none() -> None:
    assert "first release with a wheel for ARM" not in words_of(UNLISTED.format("onnxruntime-gpu==1.30.0"), ARM)


def test_pytorchs_index_is_named_for_pytorch_alone() -> None:
    assert "PyTorch's own build" in words_of(NONE.format("torch"), ARM)
    assert "PyTorch's own build" not in words_of(NONE.format("tensorflow"), ARM)


@pytest.mark.parametrize(
    ("version", "platform", "gone"),
    [
        ("2.12.0", None, True),
        ("2.12.0", Platform.LINUX_64, True),
        ("2.11.0", Platform.WIN_64, True),
        ("2.11.0", Platform.LINUX_64, False),
        ("2.10.1", Platform.WIN_64, False),
    ],
)
def test_the_last_tensorflow_gpu_had_code(version: str, platform: Platform | None, gone: bool) -> None:
    found = causes_of(f"No version {version} of the tensorflow-gpu was found.", Given(platform=platform))
    assert (found == ["tensorflow-gpu-removed"]) == gone


def test_in_prose_the_version_comes_before_the_package() -> None:
    assert "2.12.0 has none" in words_of("No version 2.12.0 of the tensorflow-gpu was found.")
