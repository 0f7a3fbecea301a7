"""Markers that are split and joined again have the same meaning, without extras."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.markers import Marker

from envsolve.boundary.files import FileError
from envsolve.lockfile.marker_ways import ANYWHERE, NOWHERE, Ways, both, either, implies, marker_of, ways_of
from tests.laws import examples

ENVIRONMENTS = [
    {"sys_platform": platform, "os_name": name, "python_version": python, "extra": ""}
    for platform in ("linux", "win32", "darwin")
    for name in ("posix", "nt")
    for python in ("3.9", "3.11", "3.12", "3.14")
]
COMPARISONS = st.one_of(
    st.builds('sys_platform {} "{}"'.format, st.sampled_from(["==", "!="]), st.sampled_from(["linux", "win32"])),
    st.builds("os_name {} 'posix nt'".format, st.sampled_from(["in", "not in", "not  in"])),
    st.builds(
        "python_version {} '{}'".format,
        st.sampled_from(["<", ">=", "==", "!=", ">", "<=", "~="]),
        st.sampled_from(["3.11", "3.12"]),
    ),
    st.builds("'{}' {} extra".format, st.sampled_from(["gpu", "cpu"]), st.sampled_from(["==", "!="])),
)
MARKERS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        st.builds("{} and {}".format, inner, inner),
        st.builds("{} or {}".format, inner, inner),
        st.builds("({})".format, inner),
    ),
    max_leaves=6,
)


def holding(marker: str) -> list[bool]:
    return [not marker or Marker(marker).evaluate({**it}) for it in ENVIRONMENTS]


def meaning(ways: Ways) -> list[bool]:
    return [False] * len(ENVIRONMENTS) if ways == NOWHERE else holding(marker_of(ways))


@pytest.mark.thorough
@settings(max_examples=examples(300))
@given(MARKERS)
def test_a_marker_has_the_same_meaning_after_simplification(marker: str) -> None:
    ways = ways_of(marker)
    assert meaning(ways) == holding(marker)
    assert "extra" not in marker_of(ways)
    if ways != NOWHERE:
        assert ways_of(marker_of(ways)) == ways


@pytest.mark.thorough
@settings(max_examples=examples(300))
@given(MARKERS, MARKERS)
def test_markers_are_joined(one: str, other: str) -> None:
    first, second = ways_of(one), ways_of(other)
    pairs = list(zip(holding(one), holding(other), strict=True))
    assert meaning(either(first, second)) == [a or b for a, b in pairs]
    assert meaning(both(first, second)) == [a and b for a, b in pairs]
    if implies(first, second):
        assert all(b for a, b in pairs if a)
    assert implies(first, either(first, second)) or meaning(either(first, second)) != meaning(first)


@pytest.mark.parametrize(
    ("marker", "short"),
    [
        ("python_version < '3.12' or python_version >= '3.12'", ""),
        ("sys_platform == 'linux' and sys_platform != 'linux' or os_name == 'nt'", "os_name == 'nt'"),
        ("os_name == 'nt' or (os_name != 'nt' and sys_platform == 'x')", "os_name == 'nt' or sys_platform == 'x'"),
        ("extra == 'gpu' or extra != 'cpu' and os_name == 'nt'", "os_name == 'nt'"),
        ("platform_version == \"a 'b'\"", "platform_version == \"a 'b'\""),
    ],
)
def test_redundant_terms_are_removed(marker: str, short: str) -> None:
    assert marker_of(ways_of(marker)) == short


def test_no_marker_holds_everywhere() -> None:
    assert ways_of("") == ANYWHERE
    assert marker_of(ANYWHERE) == ""


@pytest.mark.parametrize(
    "marker",
    [
        "os_name",
        "os_name = 'nt'",
        "extra > 'gpu'",
        "(" * 5000 + "os_name == 'nt'" + ")" * 5000,
        " and ".join(f"(os_name == 'a{it}' or sys_platform == 'b{it}')" for it in range(30)),
        "os_name == 'nt' ; -r other",
    ],
)
def test_an_invalid_or_long_marker_is_one_error(marker: str) -> None:
    with pytest.raises(FileError):
        ways_of(marker)
