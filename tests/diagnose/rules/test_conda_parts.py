"""CUDA's libraries of conda: only one that is of another CUDA than the framework is spoken of."""

from __future__ import annotations

import pytest

from envsolve.diagnose.facts.conda_parts import part_fields
from envsolve.diagnose.facts.library_names import span_of
from tests.diagnose.rules.driver_cases import KNOWLEDGE, Known, case_of

CUSPARSE = ("libcusparse", "nvidia-cusparse")
SPAN = span_of(KNOWLEDGE, "libcusparse.so.11")


def told(component: str, pytorch_cuda: str = "") -> dict[str, str]:
    packages = {"pytorch-cuda": pytorch_cuda} if pytorch_cuda else {}
    return part_fields(case_of(Known(packages=packages, clues={"component": component})), *CUSPARSE, SPAN)


def test_a_library_of_another_cuda_is_named_with_the_label_that_has_the_right_one() -> None:
    fields = told("libcusparse   12.0.0.76  0   nvidia/linux-64", "11.7")
    assert fields["part"] == "libcusparse 12.0.0.76"
    assert (fields["part_cuda"], fields["part_wanted"]) == ("12.0", "CUDA 11.7")
    assert (fields["part_channel"], fields["part_label"]) == ("nvidia", "11.7.1")


def test_without_the_frameworks_cuda_the_wanted_file_decides_and_no_label_is_named() -> None:
    fields = told("libcusparse 12.0.0.76 0 nvidia")
    assert fields["part_wanted"] == "CUDA 11.0 to 11.8"
    assert "part_label" not in fields


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
def test_what_fits_and_what_is_not_known_is_left_alone(component: str, pytorch_cuda: str) -> None:
    assert told(component, pytorch_cuda) == {}
