"""End to end, from a misbehaving framework in its own process to the finding: none may pass."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from envsolve.frameworks import DEPENDENT_FRAMEWORKS, FRAMEWORKS, DependentFramework
from envsolve.validation.child import Children, Outcome
from envsolve.validation.framework_verdict import verdict
from envsolve.validation.report import ProbeReport, Status
from tests.validation.explained import explained

PYTORCH = FRAMEWORKS["pytorch"]
EVERYTHING = "element-wise, matmul, convolution, convolution-backward, training, run-time-compilation"
DOUBLES = Path(__file__).parent / "doubles"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def children() -> Iterator[Children]:
    with Children() as running:
        yield running


def outcome(children: Children, fault: str) -> Outcome:
    environ = {**os.environ, "PYTHONPATH": str(DOUBLES), "ENVSOLVE_TEST_TORCH": fault}
    job = {"device": "cuda", "index": 0, "burn": 0}
    return children.run(Path(sys.executable), PYTORCH.probe, job, environ, 60)


def report(children: Children, fault: str) -> ProbeReport:
    return verdict(PYTORCH, "cuda", outcome(children, fault), explained)


@pytest.mark.thorough
def test_a_correct_framework_passes_on_its_gpu(children: Children) -> None:
    found = report(children, "")
    assert found.findings == ()
    assert found.status is Status.PASS
    assert "training, run-time-compilation right on NVIDIA Imaginary" in found.detail


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("fault", "finding", "operations"),
    [
        ("cpu-build", "cpu-build", ""),
        ("library-missing", "cuda-library-missing", ""),
        ("no-driver", "driver-library-missing", ""),
        ("no-kernel", "no-code-for-gpu", EVERYTHING),
        ("no-kernel-in-cudnn", "cudnn-without-code", "convolution, convolution-backward, training"),
        ("cudnn", "cudnn-broken", "convolution, convolution-backward, training"),
        ("cublas", "cublas-broken", "matmul, training"),
        ("no-nvrtc", "cuda-library-missing", "run-time-compilation"),
        ("nvrtc", "run-time-compiler-broken", "run-time-compilation"),
        ("out-of-memory", "out-of-memory", "element-wise"),
        ("wrong-matmul", "wrong-result", "matmul, training"),
        ("nan-in-convolution", "wrong-result", "convolution, training"),
        ("runs-on-cpu", "ran-on-cpu", EVERYTHING),
        ("allocates-nothing", "ran-on-cpu", EVERYTHING),
        ("learns-backwards", "training-does-not-learn", "training"),
    ],
)
def test_a_misbehaving_framework_is_reported_accordingly(
    children: Children, fault: str, finding: str, operations: str
) -> None:
    found = report(children, fault)
    assert found.status is Status.FAIL
    assert found.findings[0].id == finding
    assert found.findings[0].evidence
    assert f"({operations})" in found.detail or not operations


@pytest.mark.thorough
def test_missing_code_only_in_cudnn_is_reported(children: Children) -> None:
    assert "this cuDNN dropped the GPU" in report(children, "no-kernel-in-cudnn").findings[0].cause


@pytest.mark.thorough
def test_a_crash_preserves_earlier_results(children: Children) -> None:
    found = report(children, "crash-in-convolution").findings[0]
    assert found.id == "probe-crash"
    assert "in convolution. It died with signal 6 (SIGABRT)" in found.cause
    assert "element-wise, matmul had come out right" in found.cause


def report_of_kernel(children: Children, known: DependentFramework, fault: str) -> ProbeReport:
    environ = {**os.environ, "PYTHONPATH": f"{DOUBLES}{os.pathsep}{ROOT}", "ENVSOLVE_TEST_TORCH": fault}
    job = {"device": "cuda", "index": 0, "burn": 30}
    return verdict(known, "cuda", children.run(Path(sys.executable), known.probe, job, environ, 20), explained)


@pytest.mark.parametrize("name", DEPENDENT_FRAMEWORKS)
def test_a_dependent_framework_runs_its_kernel_and_leaves_burn_to_the_other(children: Children, name: str) -> None:
    found = report_of_kernel(children, DEPENDENT_FRAMEWORKS[name], "")
    assert (found.status, found.findings) == (Status.PASS, ())
    assert f"{DEPENDENT_FRAMEWORKS[name].kernel} right on NVIDIA Imaginary" in found.detail


@pytest.mark.thorough
@pytest.mark.parametrize("name", DEPENDENT_FRAMEWORKS)
@pytest.mark.parametrize(
    ("fault", "finding"),
    [
        ("cpu-build", "cpu-build"),
        ("library-missing", "cuda-library-missing"),
        ("no-kernel-in-server", "no-code-for-gpu"),
        ("server-library-missing", "cuda-library-missing"),
        ("wrong-silu", "wrong-result"),
        ("runs-on-cpu", "ran-on-cpu"),
    ],
)
def test_a_misbehaving_dependent_framework_is_reported_accordingly(
    children: Children, name: str, fault: str, finding: str
) -> None:
    found = report_of_kernel(children, DEPENDENT_FRAMEWORKS[name], fault)
    assert found.status is Status.FAIL
    assert found.findings[0].id == finding
