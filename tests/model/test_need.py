"""Requirements and markers are parsed like by packaging."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.markers import Marker
from packaging.requirements import Requirement

from envsolve.model.need import Markers, is_marker, lower_bound, parse_need

_PLAIN = st.sampled_from(
    ['sys_platform == "linux"', "python_version < '3.9'", 'platform_machine != "arm64"', 'os_name == "nt"']
)
_EXTRAS = st.sampled_from(['extra == "gpu"', "extra == 'all'", 'extra=="gpu"', '"gpu" == extra', 'extra != "gpu"'])


def _joined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    both = st.tuples(parts, st.sampled_from(["and", "or"]), parts, st.booleans())
    return both.map(lambda it: f"({it[0]} {it[1]} {it[2]})" if it[3] else f"{it[0]} {it[1]} {it[2]}")


_MARKERS = st.recursive(st.one_of(_PLAIN, _EXTRAS), _joined, max_leaves=6)
_ENVIRONMENTS = [
    {"sys_platform": "linux", "python_version": "3.11", "platform_machine": "x86_64", "os_name": "posix"},
    {"sys_platform": "win32", "python_version": "3.8", "platform_machine": "arm64", "os_name": "nt"},
]


@given(_MARKERS)
def test_a_marker_only_holds_with_its_own_extra(marker: str) -> None:
    need = parse_need(f"alpha ; {marker}")
    if not need.for_extra:
        return
    for environment in _ENVIRONMENTS:
        for extra in {"", "gpu", "all", "other"} - {need.for_extra}:
            assert not Marker(marker).evaluate({**environment, "extra": extra})


@pytest.mark.parametrize(
    ("marker", "extra"),
    [
        ('extra == "gpu"', "gpu"),
        ('sys_platform == "linux" and extra == "GPU"', "gpu"),
        ('(sys_platform == "linux" or sys_platform == "win32") and extra == "cublas"', "cublas"),
        ('extra == "gpu" or extra == "all"', ""),
        ('sys_platform == "linux" or extra == "gpu"', ""),
        ('(sys_platform == "linux" and extra == "gpu") or os_name == "nt"', ""),
        ('sys_platform == "linux"', ""),
    ],
)
def test_usual_markers_name_their_extra(marker: str, extra: str) -> None:
    assert parse_need(f"alpha>=1 ; {marker}").for_extra == extra


@pytest.mark.parametrize(
    "line",
    [
        "alpha",
        "Alpha_Beta.Gamma >= 1.0, < 2",
        "alpha[one, Two_2]>=1",
        "alpha (>=1.0,<2)",
        "alpha==1.*;python_version<'3.12'",
        "alpha @ https://files.example.org/alpha-1.0-py3-none-any.whl",
        "alpha===1.0-weird",
    ],
)
def test_a_line_is_parsed_like_by_packaging(line: str) -> None:
    ours, theirs = parse_need(line), Requirement(line)
    assert ours.name == theirs.name.lower().replace("_", "-").replace(".", "-")
    assert set(ours.extras) == {extra.lower().replace("_", "-") for extra in theirs.extras}
    assert {*filter(None, ours.specifier.split(","))} == {*map(str, theirs.specifier)}
    assert ours.url == (theirs.url or "")


@pytest.mark.parametrize("line", ["", "alpha beta", ">=1", "alpha[", "alpha>=1 >=2", f"alpha>={'9' * 5000}", "alpha;x"])
def test_an_invalid_requirement_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="is not a requirement") as caught:
        parse_need(line)
    assert len(str(caught.value)) < 400


def test_the_clauses_stay_in_the_order_they_were_written_in() -> None:
    assert str(parse_need("alpha >= 1.0, != 1.3.*, < 2")) == "alpha>=1.0,!=1.3.*,<2"


@pytest.mark.parametrize("brackets", [500, 5000])
def test_brackets_within_brackets_end_in_an_error(brackets: int) -> None:
    marker = f"{'(' * brackets}os_name == 'nt'{')' * brackets}"
    assert not is_marker(marker)
    with pytest.raises(ValueError, match="nested more than 200 levels deep") as caught:
        Markers({}).holds(marker)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("specifier", "bound"),
    [(">=2.6", ">=2.6"), ("<3,>2", ">2"), ("~=2.1", ">=2.1"), ("==2.18.0", ""), ("==2.*", ""), ("!=2.5", ""), ("", "")],
)
def test_a_lower_bound_excludes_older_versions_and_no_newer_ones(specifier: str, bound: str) -> None:
    assert lower_bound(specifier) == bound
