from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envsolve.model.versions import CudaVersion, DriverVersion, minor_of

PARTS = st.tuples(st.integers(300, 999), st.integers(0, 999), st.integers(0, 99))


def driver(text: str) -> DriverVersion:
    return DriverVersion.parse(text)


@pytest.mark.parametrize(
    ("have", "floor", "meets"),
    [
        ("535.104.05", "535.86.09", True),
        ("535.86.09", "535.104.05", False),
        ("580.65.06", "580.65.06", True),
        ("570.195.03", "580.65.06", False),
        ("580", "580.65.06", True),
        ("R580", "580.65.06", True),
        ("579", "580.65.06", False),
        ("535.183", "535.54.03", True),
        ("470.256", "470.256.02", True),
        ("566.36", "528.33", True),
        ("595.45.04", "580", True),
    ],
)
def test_drivers_compare_part_by_part_as_numbers(have: str, floor: str, meets: bool) -> None:
    assert driver(have).meets(driver(floor)) is meets


def test_spaces_around_a_driver_version_are_ignored() -> None:
    assert driver(" 580.65.06 ").text == "580.65.06"


@pytest.mark.parametrize("text", ["", "abc", "5", "58", "580.", "580.65.06.1", "580,65", "12.4", "v580.65"])
def test_other_numbers_are_not_driver_versions(text: str) -> None:
    with pytest.raises(ValueError, match="driver version"):
        driver(text)


@given(PARTS, PARTS)
def test_two_full_versions_are_always_comparable(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    one, other = (DriverVersion(parts, ".".join(map(str, parts))) for parts in (first, second))
    assert one.meets(other) or other.meets(one)
    assert (one.meets(other) and other.meets(one)) is (first == second)


@pytest.mark.parametrize(("number", "expected"), [(12040, "12.4"), (11080, "11.8"), (13000, "13.0"), (12060, "12.6")])
def test_the_driver_api_number_is_a_cuda_version(number: int, expected: str) -> None:
    assert str(CudaVersion.from_driver_api(number)) == expected


@pytest.mark.parametrize("number", [0, -1, 999, 99991, 2**31])
def test_a_driver_api_number_out_of_range_is_no_version(number: int) -> None:
    assert CudaVersion.from_driver_api(number) is None


@pytest.mark.parametrize("text", ["12", "cudart64_110.dll", "libcudart.so.11.0", "v12.4", ""])
def test_a_file_name_or_a_bare_major_is_no_cuda_version(text: str) -> None:
    with pytest.raises(ValueError, match="CUDA version"):
        CudaVersion.parse(text)


@pytest.mark.parametrize(
    ("text", "minor"),
    [
        ("3.12.11", "3.12"),
        ("11.8", "11.8"),
        ("3", "3"),
        ("3.14rc1", "3.14"),
        ("11.8x", None),
        ("abc", None),
        ("9e", None),
        ("", None),
    ],
)
def test_the_minor_version_of_a_text(text: str, minor: str | None) -> None:
    assert minor_of(text) == minor
