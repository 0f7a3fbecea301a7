"""A library of PyTorch that an extension misses: whether the installed PyTorch can have it."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsolve.diagnose.case import Given
from tests.diagnose.facts.library_cases import words_of

SPLIT = "libtorch_cuda_cu.so"
MISSING = "ImportError: {}: cannot open shared object file: No such file or directory"
FIRST = "import torch first"


@pytest.mark.parametrize(
    ("torch", "file", "may_have_it"),
    [
        ("1.8.1+cu102", SPLIT, False),
        ("1.8.1+cu111", SPLIT, True),
        ("1.13.1+cu117", SPLIT, True),
        ("2.0.1+cu118", SPLIT, False),
        ("1.7.1+cu110", SPLIT, False),
        ("2.8.0+cpu", "libc10_cuda.so", False),
        ("2.8.0+cu128", "libc10_cuda.so", True),
        ("2.8.0+cpu", "libc10.so", True),
        ("", SPLIT, True),
    ],
)
def test_the_order_of_imports_is_a_cause_only_if_the_library_may_be_installed(
    torch: str, file: str, may_have_it: bool
) -> None:
    answer = words_of(MISSING.format(file), Given(packages={"torch": torch}))
    assert (FIRST in answer) == may_have_it


def test_the_wheel_page_is_that_of_the_installed_build() -> None:
    answer = words_of("torch_scatter\n" + MISSING.format(SPLIT), Given(packages={"torch": "1.8.1+cu102"}))
    assert "torch-scatter -f https://data.pyg.org/whl/torch-1.8.0+cu102.html" in answer


def test_a_toolkit_of_another_cuda_plays_no_part() -> None:
    answer = words_of("CUDA: 11.2\n" + MISSING.format(SPLIT), Given(packages={"torch": "1.8.1+cu102"}))
    assert "toolkit of the machine, 11.2, plays no part" in answer


@pytest.mark.parametrize(
    ("torch", "file", "fix"),
    [
        ("2.5.1+cpu", "libc10_cuda.so", "torch==2.5.1 --index-url https://download.pytorch.org/whl/cu124"),
        ("2.5.1+cpu", "libc10.so", "-f https://data.pyg.org/whl/torch-2.5.0+cpu.html"),
        ("2.5.1+cu124", "libc10_cuda.so", "-f https://data.pyg.org/whl/torch-2.5.0+cu124.html"),
    ],
)
def test_a_cpu_build_is_replaced_only_for_a_library_of_cuda(torch: str, file: str, fix: str) -> None:
    assert fix in words_of("torch_scatter\n" + MISSING.format(file), Given(packages={"torch": torch}))


def test_an_existing_file_was_opened_too_early(tmp_path: Path) -> None:
    text = "torch_scatter\n" + MISSING.format("libc10.so")
    given = Given(packages={"torch": "2.5.1"}, prefix=str(tmp_path))
    assert "which the installed PyTorch does not have" in words_of(text, given)
    directory = tmp_path / "lib/python3.11/site-packages/torch/lib"
    directory.mkdir(parents=True)
    (directory / "libc10.so").write_bytes(b"")
    assert words_of(text, given).startswith("torch-scatter was imported before torch")
