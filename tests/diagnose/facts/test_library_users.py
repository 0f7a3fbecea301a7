"""Which program needs a library that is not found, and where it is: from options, from the text or from the disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from envsolve.diagnose.case import Given
from tests.diagnose.facts.library_cases import causes_of, words_of

MISSING = "ImportError: {}: cannot open shared object file: No such file or directory"
IMPORT = 'File "/env/lib/python3.10/site-packages/{0}/__init__.py", line 3, in <module>\n'


@pytest.mark.parametrize(
    ("text", "packages", "title"),
    [
        ("pip install flash_attn", {"torch": "2.9.1+cu130"}, "flash-attn was built for CUDA 12, PyTorch for CUDA 13.0"),
        ("", {"torch": "2.9.1+cu130"}, "A package beside PyTorch was built for CUDA 12, PyTorch for CUDA 13.0"),
        (
            "import xformers fails: CUDA 13.0 is here\nxformers: ",
            {"torch": ""},
            "xformers was built for CUDA 12, and the machine has CUDA 13.0",
        ),
        (
            "pip install torch==2.6.0 --index-url https://download.pytorch.org/whl/cu118\nxformers: ",
            {},
            "xformers was built for CUDA 12, PyTorch for CUDA 11.8",
        ),
    ],
)
def test_a_pytorch_of_another_cuda_does_not_need_the_library(
    text: str, packages: Mapping[str, str], title: str
) -> None:
    end = "" if text.endswith(": ") else "\n"
    text = f"{text}{end}" + MISSING.format("libcudart.so.12")
    assert causes_of(text, Given(packages=packages))[0] == "extension-of-other-cuda"
    assert words_of(text, Given(packages=packages)).splitlines()[0] == title


def test_the_torchvision_of_the_installed_pytorch_comes_from_its_index() -> None:
    text = IMPORT.format("torchvision") + MISSING.format("libcudart.so.11.0")
    answer = words_of(text, Given(packages={"torch": "2.4.1+cu121"}))
    assert "torch==2.4.1 torchvision --index-url https://download.pytorch.org/whl/cu121" in answer


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("RuntimeError: Library libcublas.so.12 is not found or cannot be loaded", "pip install nvidia-cublas-cu12"),
        ("RuntimeError: Library cublas64_12.dll is not found or cannot be loaded", "pip install nvidia-cublas-cu12"),
        ("CuPy failed to load libnvrtc.so.13: " + MISSING.format("libnvrtc.so.13"), "cupy-cuda13x[ctk]"),
        ("/usr/lib/libonnxruntime_providers_cuda.so: " + MISSING.format("libcublasLt.so.12"), "[cuda,cudnn]<1.27"),
        (IMPORT.format("torch") + MISSING.format("libcublas.so.12"), "--force-reinstall torch"),
        ("./program: " + MISSING.format("libcudart.so.12"), "find / -name 'libcudart*'"),
    ],
)
def test_the_fix_is_the_one_of_the_program(text: str, command: str) -> None:
    assert command in words_of(text)


@pytest.mark.parametrize("name", ["cublas64_12.dll", "cudart64_110.dll"])
def test_a_dll_is_not_looked_for_on_ld_library_path(name: str) -> None:
    answer = words_of(f"The code execution cannot proceed because {name} was not found.")
    assert "LD_LIBRARY_PATH" not in answer
    assert "PATH" in answer
    assert "where /R" in answer


def test_a_program_in_java_gets_no_command_of_pip() -> None:
    text = "ai.onnxruntime.OrtException: Failed to load library libonnxruntime_providers_cuda.so with error: {0}"
    answer = words_of(text.format("libcublasLt.so.12: cannot open shared object file"))
    assert "Install CUDA 12 and its cuDNN on the system" in answer
    assert 'pip install "' not in answer


@pytest.mark.thorough
@pytest.mark.parametrize("place", ["lib", "lib/python3.11/site-packages/nvidia/cuda_runtime/lib"])
def test_the_file_is_searched_in_the_given_environment(tmp_path: Path, place: str) -> None:
    directory = tmp_path / place
    directory.mkdir(parents=True)
    (directory / "libcudart.so.12").write_bytes(b"")
    given = Given(prefix=str(tmp_path))
    assert causes_of(MISSING.format("libcudart.so.12"), given) == ["cuda-library-not-on-path"]
    answer = words_of(MISSING.format("libcudart.so.12"), given)
    assert f"export LD_LIBRARY_PATH={directory}:$LD_LIBRARY_PATH" in answer
    assert causes_of(MISSING.format("libcudart.so.13"), given) == ["cuda-library-missing"]
    assert f"libcudart.so.13 is not in {tmp_path}" in words_of(MISSING.format("libcudart.so.13"), given)


def test_a_file_of_another_name_is_not_the_one(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libcudart.so.11.0").write_bytes(b"")
    assert causes_of(MISSING.format("libcudart.so.12"), Given(prefix=str(tmp_path))) == ["cuda-library-missing"]


@pytest.mark.parametrize(
    ("toolkit", "cause"), [("12.4", "cuda-library-not-on-path"), ("13.0", "cuda-library-of-other-cuda")]
)
def test_a_given_toolkit_counts_before_the_text(toolkit: str, cause: str) -> None:
    text = "CUDA: 11.8\n" + MISSING.format("libcudart.so.12")
    assert causes_of(text, Given(toolkit=toolkit)) == [cause]
