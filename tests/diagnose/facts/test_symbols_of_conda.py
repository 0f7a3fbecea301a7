"""CUDA's libraries of conda: only one of another CUDA than the framework's is mentioned."""

from __future__ import annotations

import pytest

from tests.diagnose.facts.package_cases import words_of

MISSING = "ImportError: /x/lib/libtorch_cuda_cu.so: undefined symbol: cusparseSpSM_analysis, version libcusparse.so.11"


def answer_to(component: str, pytorch_cuda: str = "") -> str:
    listed = f"pytorch-cuda  {pytorch_cuda}  h778d358_5  pytorch" if pytorch_cuda else ""
    return words_of(f"{listed}\n{component}\n{MISSING}")


def test_a_library_of_another_cuda_is_named_with_the_label_that_has_the_right_one() -> None:
    words = answer_to("libcusparse   12.0.0.76  0   nvidia/linux-64", "11.7")
    assert words.startswith("conda installed libcusparse 12.0.0.76 of CUDA 12.0, and CUDA 11.7 is needed\n")
    assert "conda install -c nvidia/label/cuda-11.7.1 libcusparse" in words


def test_without_the_frameworks_cuda_the_wanted_file_decides_and_no_label_is_named() -> None:
    words = answer_to("libcusparse 12.0.0.76 0 nvidia")
    assert "and CUDA 11.0 to 11.8 is needed" in words
    assert "nvidia/label" not in words


@pytest.mark.parametrize(
    ("component", "pytorch_cuda"),
    [
        ("libcusparse 11.7.5.86 0 nvidia", "11.8"),
        ("libcusparse 11.7.5.86 0 nvidia", ""),
        ("libcusparse 99.1.2.3 0 nvidia", "11.7"),
        ("libcusparse-dev 12.0.0.76 0 nvidia", "11.7"),
        ("libcublas 12.0.1.189 0 nvidia", "11.7"),
    ],
)
def test_matching_and_unknown_versions_are_not_reported(component: str, pytorch_cuda: str) -> None:
    assert "conda installed" not in answer_to(component, pytorch_cuda)
