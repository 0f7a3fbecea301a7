"""Packages whose builds do not fit the GPU, the framework or the other packages, according to the matrix."""

from __future__ import annotations

import pytest

from envsolve.model.capability import ComputeCapability
from envsolve.model.finding import Finding, Severity
from tests.binary.device_library import library_for_torch
from tests.diagnose.environment.on_disk import Patient, host, pip
from tests.scripts.fat_binary import fat_binary

PASCAL, TURING = ComputeCapability(6, 1), ComputeCapability(7, 5)


def found(patient: Patient, about: str, *gpus: ComputeCapability) -> list[Finding]:
    return [it for it in patient.report(host(*gpus) if gpus else None).findings if it.about == about]


@pytest.mark.thorough
def test_a_package_without_code_for_the_gpu_is_found(stack: Patient) -> None:
    stack.install("xformers", "0.0.32")
    (finding,) = found(stack, "xformers", PASCAL)
    assert (finding.id, finding.severity) == ("no-code-for-gpu", Severity.ERROR)
    assert finding.commands == (pip("install", "'xformers>=0.0.30,<0.0.31'"),)
    assert finding.sources
    assert found(stack, "xformers", TURING) == []


@pytest.mark.thorough
def test_a_package_without_code_for_this_gpu_should_be_compiled(stack: Patient) -> None:
    stack.install("vllm", "0.10.0")
    (finding,) = found(stack, "vllm", PASCAL)
    assert "from source" in finding.fix
    assert finding.commands == ()


def test_a_package_for_another_cuda_than_the_framework_s_is_found(stack: Patient) -> None:
    stack.install("vllm", "0.20.0")
    (finding,) = found(stack, "vllm")
    assert (finding.id, finding.severity) == ("companion-mismatch", Severity.ERROR)
    assert finding.title == "vllm 0.20.0 is for CUDA 13, and PyTorch for CUDA 12.8"
    assert finding.commands == (pip("install", "'vllm>=0.17.0,<0.20.0'"),)


@pytest.mark.thorough
def test_a_package_that_only_loses_a_feature_is_a_warning(stack: Patient) -> None:
    stack.install("xformers", "0.0.33")
    (finding,) = found(stack, "xformers")
    assert finding.severity is Severity.WARNING
    assert "Without its C++ library it has no memory-efficient attention" in finding.cause


@pytest.mark.thorough
def test_numpy_2_beside_builds_for_numpy_1_is_found(stack: Patient) -> None:
    stack.install("numpy", "2.2.0")
    stack.install("pandas", "2.0.3")
    (finding,) = found(stack, "pandas")
    assert (finding.id, finding.severity) == ("numpy-mismatch", Severity.ERROR)
    assert finding.commands == (pip("install", "'numpy<2'"),)
    stack.uninstall("numpy")
    stack.install("numpy", "1.26.4")
    assert found(stack, "pandas") == []


def test_a_package_that_lacks_an_undeclared_requirement_is_found(empty: Patient) -> None:
    empty.install("tensorflow-probability", "0.25.0")
    empty.install("tensorflow-cpu", "2.18.0", "tensorflow/__init__.py")
    findings = found(empty, "tensorflow-probability")
    assert [it.title for it in findings if "tf-keras" in it.title] == [
        "tensorflow-probability 0.25.0 does not work without tf-keras"
    ]
    assert pip("install", "tf-keras") in [command for it in findings for command in it.commands]


@pytest.mark.thorough
def test_unknown_packages_are_not_a_fault(stack: Patient) -> None:
    stack.install("xformers", "9.9.9")
    stack.install("mamba-ssm", "2.3.0")
    assert stack.report(host(PASCAL, TURING)).findings != ()
    assert {it.about for it in stack.report(host(TURING)).findings} & {"xformers", "mamba-ssm"} == set()


@pytest.mark.thorough
def test_a_package_that_the_matrix_does_not_know_is_read(stack: Patient) -> None:
    library = stack.site / "kernels" / "_C.abi3.so"
    library.parent.mkdir()
    library.write_bytes(b"\x7fELF\0libcudart.so.13\0" + fat_binary((75, 80)))
    stack.install("kernels", "1.0", "kernels/_C.abi3.so", requires=["torch>=2"])
    without, other = found(stack, "kernels", PASCAL)
    assert (without.id, other.id) == ("no-code-for-gpu", "companion-mismatch")
    assert other.title == "kernels 1.0 is for CUDA 13, and PyTorch for CUDA 12.8"
    library.write_bytes(b"\x7fELF\0libcudart.so.12\0" + fat_binary((61, 80)))
    assert not {"no-code-for-gpu", "companion-mismatch"} & {it.id for it in found(stack, "kernels", PASCAL)}
    library.unlink()
    assert not {"no-code-for-gpu", "companion-mismatch"} & {it.id for it in found(stack, "kernels", PASCAL)}


@pytest.mark.thorough
def test_an_extension_for_another_pytorch_is_found(stack: Patient) -> None:
    library = stack.site / "kernels" / "_C.abi3.so"
    library.parent.mkdir()
    stack.install("kernels", "1.0", "kernels/_C.abi3.so", requires=["torch>=2"])
    library.write_bytes(library_for_torch(needs=("_ZN3c104cuda10set_deviceEa", "_ZN3c1021c10_compute_alignmentEm")))
    assert found(stack, "kernels") == []  # it is of no release, as if it were of several
    library.write_bytes(library_for_torch(needs=("_ZN3c104cuda10set_deviceEa",)))
    (finding,) = found(stack, "kernels")
    assert finding.title == "kernels 1.0 does not work without torch>=1.8,<2.8"
    assert "PyTorch 2.8 does not have c10::cuda::set_device" in finding.evidence[-1]
