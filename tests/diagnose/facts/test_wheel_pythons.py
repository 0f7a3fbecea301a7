"""The Pythons that a list of versions belongs to, and that a version has wheels for."""

from __future__ import annotations

import pytest

from envsolve.diagnose.case import Given
from envsolve.diagnose.facts import wheel_pythons
from envsolve.model.host import Platform
from tests.diagnose.facts.library_cases import case_of
from tests.diagnose.facts.test_installing import NOT_FOUND, ON_3_8, ON_3_12

LINUX = Given(platform=Platform.LINUX_64)


@pytest.mark.parametrize(
    ("requirement", "versions", "python"),
    [
        ("torch==1.13.1", ON_3_12, "3.12"),
        ("torch==2.5.1", ON_3_8, "3.8"),
        ("torch==1.7.1", "2.6.0, 2.7.0", None),
        ("tensorflow==2.16.1", "2.2.0, 2.3.0, 2.13.1", "3.8"),
        ("tensorflow==1.15", "2.12.0, 2.13.0", "3.11"),
        ("torchvision==0.15", "0.1.6, 0.2.0", None),
    ],
)
def test_the_list_of_versions_implies_the_python(requirement: str, versions: str, python: str | None) -> None:
    case = case_of(NOT_FOUND.format(requirement, versions), LINUX)
    assert wheel_pythons.listed_python(case, case.sightings) == python


@pytest.mark.parametrize(
    ("requirement", "pythons"), [("torchvision==0.14.1", "3.7 to 3.11"), ("torchvision==9.9", None)]
)
def test_wheels_of_a_companion_are_those_of_its_torch(requirement: str, pythons: str | None) -> None:
    case = case_of(NOT_FOUND.format(requirement, "none"), LINUX)
    assert wheel_pythons.wheel_pythons(case, case.sightings) == pythons


@pytest.mark.parametrize(
    ("index", "python", "given", "system", "other"),
    [
        ("cu121", "3.13.5", Given(), "Windows", "cu126"),
        ("cu121", "3.13.5", LINUX, None, None),
        ("cu118", "3.14.0", LINUX, "Linux", "cu126"),
        ("cu130", "3.8.10", LINUX, "Linux", "cu118"),
        ("nightly/cu121", "3.14.0", LINUX, None, None),
        ("cpu", "3.14.0", LINUX, None, None),
        ("cu117", None, LINUX, "Linux", "cu126"),  # for current Pythons
        ("cu128", None, LINUX, None, None),
    ],
)
def test_an_index_of_a_cuda_can_end_before_a_python(
    index: str, python: str | None, given: Given, system: str | None, other: str | None
) -> None:
    text = f"pip install torch --index-url https://download.pytorch.org/whl/{index}\n"
    text += f"Python {python}\n" if python else ""
    case = case_of(text + NOT_FOUND.format("torch", "none"), given)
    gap = wheel_pythons.index_gap(case, case.of("no-matching-distribution"))
    assert (system, other) == (None, None) if gap is None else (gap.system, gap.other) == (system, other)
