"""Decisions of the rules if the driver refuses code for the GPU: the driver, the build or the library."""

from __future__ import annotations

import pytest

from tests.diagnose.facts.code_cases import NOTHING, Known, causes_of, found_causes, words_of

INVALID = "CUDA_ERROR_INVALID_IMAGE: device kernel image is invalid"
TORCH = {"torch": "2.2.0+cu118"}


@pytest.mark.parametrize(
    ("known", "first"),
    [
        (NOTHING, "invalid-kernel-image"),
        (Known("RTX 4090", TORCH, driver="450.80.02"), "invalid-kernel-image"),
        (Known("RTX 4090", TORCH, driver="550.54.14"), "invalid-kernel-image-of-library"),
    ],
)
def test_an_invalid_image_is_the_librarys_where_all_fits(known: Known, first: str) -> None:
    assert causes_of(INVALID, known)[0] == first


@pytest.mark.parametrize(
    ("known", "first"),
    [
        (Known("RTX 3090", {"tensorflow": "2.3.0"}), "invalid-kernel-image-of-older-cuda"),
        (Known("RTX 5090", TORCH), "invalid-kernel-image-of-older-cuda"),
        (Known("RTX 3090", {"tensorflow": "2.4.0"}), "invalid-kernel-image"),
        (Known("RTX 2080 Ti", {"tensorflow": "2.3.0"}), "invalid-kernel-image"),
        (Known(None, {"tensorflow": "2.3.0"}), "invalid-kernel-image"),
        (Known("RTX 4090", {"cupy-cuda102": "10.6.0"}), "invalid-kernel-image"),
    ],
)
def test_a_build_of_a_cuda_before_the_gpu_is_at_fault(known: Known, first: str) -> None:
    assert causes_of(INVALID, known)[0] == first


def test_the_first_build_for_the_gpu_is_named() -> None:
    words = words_of(INVALID, Known("RTX 3090", {"tensorflow": "2.3.0"}))
    assert "Install TensorFlow 2.4.0 (cuda11), the first with code for 8.6" in words
    assert "TensorFlow 2.3.0 was built with CUDA 10.1," in words


def test_the_driver_stays_a_second_cause() -> None:
    names = [it.id for it in found_causes(INVALID, Known("RTX 3090", {"tensorflow": "2.3.0"}))]
    assert names == ["invalid-kernel-image-of-older-cuda", "invalid-kernel-image"]
