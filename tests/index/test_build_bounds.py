"""What is known of builds that fail with the newest build tools."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement

from envsolve.index.build_bounds import BuildBound, bound_for, build_bounds


@pytest.mark.parametrize("bound", build_bounds(), ids=lambda it: it.constraint)
def test_each_bounds_a_tool_from_above_and_is_found_by_what_a_build_says(bound: BuildBound) -> None:
    requirement = Requirement(bound.constraint)
    assert [it.operator for it in requirement.specifier] == ["<"]
    assert (requirement.marker, requirement.url) == (None, None)
    assert bound_for(f"Traceback:\n  error: {bound.text}\n") is bound


@pytest.mark.parametrize("output", ["", "No module named 'torch'", "error: gcc failed", "pkg_resources is deprecated"])
def test_any_other_failure_has_none(output: str) -> None:
    assert bound_for(output) is None
