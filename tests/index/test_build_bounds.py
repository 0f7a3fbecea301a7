"""Known builds that fail with the newest build tools."""

from __future__ import annotations

import pytest
from packaging.requirements import Requirement

from envsolve.index.build_bounds import BuildBound, bound_for, build_bounds


@pytest.mark.parametrize("bound", build_bounds(), ids=lambda it: it.constraint)
def test_each_limits_a_tool_and_is_recognised_in_a_build_error(bound: BuildBound) -> None:
    requirement = Requirement(bound.constraint)
    assert [it.operator for it in requirement.specifier] == ["<"]
    assert (requirement.marker, requirement.url) == (None, None)
    assert bound_for(f"Traceback:\n  error: {bound.text}\n") is bound


@pytest.mark.parametrize("output", ["", "No module named 'torch'", "error: gcc failed", "pkg_resources is deprecated"])
def test_other_build_errors_have_none(output: str) -> None:
    assert bound_for(output) is None
