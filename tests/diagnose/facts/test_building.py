"""The texts of findings on building: a fix for the platform and place, and no command with a missing value."""

from __future__ import annotations

import pytest

from envsolve.diagnose.case import Given
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from tests.diagnose.facts.package_cases import causes_of, words_of

TORCH = Given(packages={"torch": "2.4.1+cu121"})
WINDOWS = Given(packages={"torch": "2.4.1+cu121"}, platform=Platform.WIN_64)
NO_HOME = "OSError: CUDA_HOME environment variable is not set. torch"
NO_NVCC = "No such file or directory: '{}'"
ADVICE = (
    "nvcc was not found. If you're installing within a container from https://hub.docker.com/r/pytorch/pytorch, torch"
)


@pytest.mark.parametrize(
    ("text", "given", "says", "never"),
    [
        (NO_HOME, TORCH, ["export CUDA_HOME=/usr/local/cuda-12.1"], ["devel"]),
        (NO_HOME, WINDOWS, ["set CUDA_HOME=C:\\Program Files"], ["export", "devel"]),
        (
            f"docker build\n{NO_HOME}",
            TORCH,
            ["container image has no nvcc", "devel", "CUDA 12.1"],
            ["export CUDA_HOME"],
        ),
        (f"FROM nvidia/cuda:12.1.0-base-ubuntu22.04\n{NO_HOME}", TORCH, ["nvidia/cuda:12.1.0-base-ubuntu22.04"], []),
        (
            f"FROM nvidia/cuda:12.1.0-devel-ubuntu22.04\n{NO_HOME}",
            TORCH,
            ["export CUDA_HOME"],
            ["The image", "in its tag"],
        ),
        (ADVICE, TORCH, ["export CUDA_HOME"], ["container image"]),
        (NO_NVCC.format("/opt/cuda/bin/nvcc"), TORCH, ["ls /usr/local/cuda*/bin/nvcc"], ["export CUDA_HOME"]),
        (NO_NVCC.format("/a/cuda:/b/cuda/bin/nvcc"), TORCH, ["export CUDA_HOME=/a/cuda\n"], ["CUDA_HOME=/a/cuda:"]),
        (NO_NVCC.format("C:\\\\CUDA\\\\v12.1\\\\bin\\\\nvcc"), WINDOWS, ["bin\\nvcc.exe"], ["colon", "export"]),
    ],
)
def test_a_fix_fits_the_place(text: str, given: Given, says: list[str], never: list[str]) -> None:
    words = words_of(text, given)
    assert [it for it in says if it not in words] == []
    assert [it for it in never if it in words] == []


def test_nvcc_by_its_name_alone_is_no_directory() -> None:
    assert causes_of(NO_NVCC.format("nvcc"), TORCH) == ["cuda-compiler-missing"]
    assert "CUDA_HOME=nvcc" not in words_of(NO_NVCC.format("nvcc"), TORCH)


@pytest.mark.parametrize(
    ("gpu", "says", "never"),
    [
        ("8.6", "export TORCH_CUDA_ARCH_LIST=8.6", "cuda-12.8"),
        ("12.0", "export CUDA_HOME=/usr/local/cuda-12.8", "export TORCH_CUDA_ARCH_LIST"),
    ],
)
def test_code_compiled_for_the_own_gpu_needs_an_nvcc_that_knows_it(gpu: str, says: str, never: str) -> None:
    text = "nvcc fatal   : Unsupported gpu architecture 'compute_120'\nCuda compilation tools, release 12.1, V12.1.105"
    words = words_of(text, Given(capabilities=(ComputeCapability.parse(gpu),)))
    assert says in words
    assert never not in words.partition("\nOr use nvcc")[0]


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [("12.0", ["flashinfer-without-target"]), ("9.0", []), ("7.0", ["flashinfer-needs-turing"])],
)
def test_flashinfer_that_leaves_out_every_gpu_has_an_old_nvcc_or_an_old_gpu(gpu: str, expected: list[str]) -> None:
    text = "RuntimeError: FlashInfer requires GPUs with sm75 or higher"
    causes = causes_of(text, Given(capabilities=(ComputeCapability.parse(gpu),)))
    assert causes == expected
