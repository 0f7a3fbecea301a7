"""The doctor also reports what validation finds in the files, with the same ids, and the severity for this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from envsolve.model.capability import ComputeCapability
from envsolve.model.finding import Severity
from envsolve.model.host import Gpu
from tests.diagnose.environment.on_disk import Patient, host, names, pip

NCCL = "nvidia/nccl/lib/libnccl.so.2"


def _remove_cublas(stack: Patient) -> None:
    for file in (stack.site / "nvidia/cublas/lib").iterdir():
        file.unlink()
    stack.uninstall("nvidia-cublas-cu12")
    metadata = stack.folder("torch", "2.8.0") / "METADATA"
    metadata.write_text("\n".join(line for line in metadata.read_text().splitlines() if "cublas" not in line))


@pytest.mark.thorough
def test_a_library_that_is_missing_is_an_error(stack: Patient) -> None:
    _remove_cublas(stack)
    finding = stack.only("library-missing", Severity.ERROR)
    assert finding.commands == (pip("install", "nvidia-cublas-cu12"),)


@pytest.mark.thorough
def test_without_a_gpu_it_is_an_error_where_the_import_needs_it(stack: Patient) -> None:
    _remove_cublas(stack)
    stack.only("library-missing", Severity.ERROR, host())


def test_without_a_gpu_a_library_that_only_a_gpu_needs_is_a_warning(empty: Patient) -> None:
    empty.onnxruntime()
    empty.install("onnxruntime-gpu", "1.26.0", "onnxruntime/__init__.py")
    empty.only("library-missing", Severity.WARNING, host())


@pytest.mark.thorough
def test_a_cpu_build_beside_a_gpu_is_an_error(empty: Patient) -> None:
    empty.torch(version="2.8.0+cpu", cuda=None)
    empty.only("cpu-build", Severity.ERROR)


def test_a_cpu_build_that_another_package_requires_is_only_mentioned(empty: Patient) -> None:
    empty.install("onnxruntime", "1.30.0", "onnxruntime/__init__.py")
    empty.install("faster-whisper", "1.2.1", requires=["onnxruntime<2,>=1.14"])
    finding = empty.only("cpu-build", Severity.INFO)
    assert finding.evidence[-1] == "faster-whisper requires onnxruntime"


def test_a_missing_c_compiler_is_mentioned_if_triton_is_installed(empty: Patient, tmp_path: Path) -> None:
    """As in a slim container with an H200, where torch.compile failed and all else ran."""
    nothing = {"PATH": str(tmp_path)}
    assert names(empty.report(variables=nothing).findings) == []
    empty.install("triton", "3.6.0")
    empty.only("c-compiler-missing", Severity.INFO, variables=nothing)
    compiler = tmp_path / "mine/cc"
    compiler.parent.mkdir()
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    assert names(empty.report(variables={**nothing, "CC": str(compiler)}).findings) == []
    assert names(empty.report(variables={**nothing, "CC": "/not/there"}).findings) == [("c-compiler-missing", "info")]
    empty.install("vllm", "0.30.0")
    finding = empty.only("c-compiler-missing", Severity.WARNING, variables=nothing)
    assert "torch.compile fails, and so does vllm" in finding.cause


def test_a_cpu_build_is_found_beside_a_gpu_that_no_table_knows(empty: Patient) -> None:
    empty.torch(version="2.8.0+cpu", cuda=None)
    unknown = host(ComputeCapability(8, 0))._replace(gpus=(Gpu("NVIDIA new", None),))
    empty.only("cpu-build", Severity.ERROR, unknown)


def test_without_a_gpu_a_cpu_build_is_right(empty: Patient) -> None:
    empty.torch(version="2.8.0+cpu", cuda=None)
    assert names(empty.report(host()).findings) == []


@pytest.mark.parametrize(("size", "winner"), [(30, "nvidia-nccl-cu13 2.27.3"), (20, "nvidia-nccl-cu12 2.27.3")])
def test_the_owner_of_a_shared_file_is_reported(empty: Patient, size: int, winner: str) -> None:
    contents = {"nvidia-nccl-cu12": b"1" * 20, "nvidia-nccl-cu13": b"2" * 30}
    file = empty.write(NCCL)
    for name, content in contents.items():
        file.write_bytes(content)
        empty.install(name, "2.27.3", NCCL)
    file.write_bytes(next(content for content in contents.values() if len(content) == size))
    findings = [it for it in empty.report().findings if it.id != "library-damaged"]  # it is none of gcc's
    assert names(findings) == [("two-distributions", "error")]
    loser = "20" if size == 30 else "30"
    assert findings[0].evidence == (
        f"both own {NCCL}",
        f"libnccl.so.2 is that of {winner}: {empty.site / NCCL} has {size} bytes, its RECORD says {loser}",
    )


@pytest.mark.thorough
def test_without_the_interpreter_the_loader_is_still_simulated(stack: Patient, tmp_path: Path) -> None:
    """For the processor of this process, which replaces it."""
    _remove_cublas(stack)
    findings = stack.report(executable=tmp_path / "gone").findings
    assert names(findings) == [("library-missing", "error")]


@pytest.mark.thorough
@pytest.mark.parametrize("size", [-100, 100])
def test_a_truncated_library_is_one_finding(stack: Patient, size: int) -> None:
    """Whether the loader reaches it and stops, or it ends after the part that the loader reads."""
    name = "nvidia/cudnn/lib/libcudnn_ops.so.9"
    content = (stack.site / name).read_bytes()
    (stack.site / name).unlink()
    (stack.site / name).write_bytes(content[:size])
    finding = stack.only("library-damaged", Severity.ERROR)
    again = "--force-reinstall --no-deps --no-cache-dir nvidia-cudnn-cu12==9.10.2.21"
    assert finding.commands == (pip("install", again),)


def test_tensorflow_without_its_libraries_is_installed_with_the_extra_that_brings_them(empty: Patient) -> None:
    empty.tensorflow()
    empty.install("tensorflow", "2.18.0", "tensorflow/__init__.py")
    finding = empty.only("library-missing", Severity.ERROR)
    assert finding.title == "TensorFlow 2.18.0 is installed without its CUDA libraries"
    assert finding.commands == (pip("install", "'tensorflow[and-cuda]==2.18.0'"),)
