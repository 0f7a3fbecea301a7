"""Code for the GPU if the framework's own libraries do not show it."""

from __future__ import annotations

import pytest

from envsolve.model.capability import ComputeCapability
from envsolve.model.finding import Severity
from tests.diagnose.environment.on_disk import Patient, host, names
from tests.diagnose.environment.static_environment import AMPERE
from tests.scripts.fat_binary import fat_binary

PASCAL = ComputeCapability(6, 1)


def _conda_torch(patient: Patient) -> None:
    """In the layout of conda-forge: modules here, the kernels in the prefix."""
    patient.write("torch/__init__.py")
    patient.write("torch/version.py", "__version__ = '2.7.0'\ncuda = '12.6'\nhip = None\n")
    patient.install("torch", "2.7.0", "torch/__init__.py", installer="conda")


@pytest.mark.thorough
def test_the_kernels_in_a_conda_prefix_are_read(empty: Patient) -> None:
    _conda_torch(empty)
    empty.conda("pytorch", "2.7.0", "cuda126_generic_py312_h1")
    empty.library("lib/libtorch_cuda.so", code=fat_binary((75, 80)), root=empty.root)
    assert names(empty.report(host(AMPERE)).findings) == []
    finding = empty.only("no-code-for-gpu", Severity.ERROR, host(PASCAL))
    assert finding.evidence == ("GPU: NVIDIA GPU (6.1)", "PyTorch 2.7.0: 7.5, 8.0")


@pytest.mark.thorough
def test_without_file_evidence_the_matrix_decides(empty: Patient) -> None:
    empty.write("torch/__init__.py")
    empty.write("torch/version.py", "__version__ = '2.15.0+cu132'\ncuda = '13.2'\nhip = None\n")
    empty.install("torch", "2.15.0", "torch/__init__.py")
    finding = empty.only("no-code-for-gpu", Severity.ERROR, host(PASCAL))
    assert finding.cause.startswith("PyTorch 2.15.0+cu132 has code for 7.5, 8.0")
    assert finding.evidence[0] == "GPU: NVIDIA GPU (6.1)"
    assert len(finding.evidence) == 2
    assert len(finding.sources) == 1
    assert names(empty.report(host(AMPERE)).findings) == []


def test_an_unknown_build_is_not_reported(empty: Patient) -> None:
    empty.write("torch/__init__.py")
    empty.write("torch/version.py", "__version__ = '2.15.0a0+git1234'\ncuda = '13.2'\nhip = None\n")
    empty.install("torch", "2.15.0a0+git1234", "torch/__init__.py")
    assert names(empty.report(host(PASCAL)).findings) == []


def test_evidence_of_validate_is_reported_in_two_lines(stack: Patient) -> None:
    """For a framework with many files every one is named there, each with its code."""
    stack.library("torch/lib/libtorch_cuda_linalg.so", code=fat_binary((75, 80, 90)), root=stack.site)
    findings = [it for it in stack.report(host(PASCAL)).findings if it.id == "no-code-for-gpu"]
    assert [it.evidence for it in findings] == [("GPU: NVIDIA GPU (6.1)", "PyTorch 2.8.0+cu128: 7.5, 8.0, 9.0")]
    assert findings[0].commands == (stack.planned,)
