"""The course of a validation, as far as the tests of the command line do not cover it."""

from __future__ import annotations

import pytest

from envsolve.validation.validator import numbered, visible


@pytest.mark.parametrize(
    ("listed", "index", "expected"),
    [
        (None, 2, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "2"}),
        ("4,7", 1, {"CUDA_VISIBLE_DEVICES": "7"}),
        ("GPU-1a, MIG-2b", 1, {"CUDA_VISIBLE_DEVICES": "MIG-2b"}),
        ("4", 1, {"CUDA_VISIBLE_DEVICES": "-1"}),
    ],
)
def test_a_framework_only_sees_one_gpu(listed: str | None, index: int, expected: dict[str, str]) -> None:
    environ = {} if listed is None else {"CUDA_VISIBLE_DEVICES": listed}
    assert visible(environ, index) == expected


def test_the_driver_numbers_gpus_as_the_frameworks_do() -> None:
    """With GPUs of two kinds, a number in CUDA_VISIBLE_DEVICES is another GPU in another order."""
    listed = {"CUDA_VISIBLE_DEVICES": "1,0"}
    assert numbered(listed) == listed
    assert {**numbered(listed), "CUDA_VISIBLE_DEVICES": "1"} == visible(listed, 0)
    assert numbered({}) == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
