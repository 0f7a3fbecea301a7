"""The report of a validation: the measurements, and plainly whether a GPU was present."""

from __future__ import annotations

from typing import Any

from scripts.record_validation import report

OPERATION = {
    "name": "matmul",
    "proves": "cuBLAS",
    "ok": True,
    "max_error": 3.8e-7,
    "tolerance": 1e-4,
    "seconds": 0.0123,
}
MEASURED = {
    "version": "2.13.0+cu126",
    "asked": "cuda",
    "import_seconds": 1.5,
    "first_kernel_seconds": 0.25,
    "built_cuda": "12.6",
    "operations": [OPERATION, {**OPERATION, "name": "training", "proves": None, "ok": None, "max_error": None}],
}


def answer(*, gpus: list[dict[str, Any]], driver: str | None) -> dict[str, Any]:
    """The parts of validate's output that the report uses."""
    return {
        "ok": driver is not None,
        "device": "cuda",
        "host": {"platform": "linux-64", "glibc": "2.36", "driver": driver, "driver_cuda": "13.0", "gpus": gpus},
        "probes": [
            {"name": "driver", "status": "pass", "seconds": 0.2, "detail": "65,536 results right | all"},
            {"name": "pytorch", "status": "pass", "seconds": 3.0, "detail": "right", "measured": MEASURED},
        ],
        "findings": [{"id": "ptx-only", "severity": "info", "cause": "compiled\nfirst"}],
    }


def test_the_gpu_and_its_stack_are_recorded() -> None:
    gpus = [{"name": "NVIDIA H200", "compute_capability": "9.0", "count": 2}]
    text = "\n".join(report([answer(gpus=gpus, driver="580.65.06")]))
    assert "- 2 x NVIDIA H200, compute capability 9.0" in text
    assert "NVIDIA driver 580.65.06 (CUDA 13.0)" in text
    assert "No NVIDIA GPU" not in text
    assert "## pytorch 2.13.0+cu126 on the GPU: proven" in text
    assert "| matmul | cuBLAS | right | 3.8e-07 | 0.0001 | 0.0123 |" in text
    assert "| training |  | not supported |  | 0.0001 | 0.0123 |" in text
    assert "65,536 results right \\| all" in text
    assert "- info `ptx-only`: compiled first" in text


def test_a_missing_gpu_is_reported_first() -> None:
    lines = list(report([answer(gpus=[], driver=None)]))
    assert lines[2].startswith("**No NVIDIA GPU was available.**")
    assert any(line.endswith("no NVIDIA driver.") for line in lines)
    assert "## pytorch 2.13.0+cu126 on the GPU: not proven" in lines
