"""Packages that conda installs: their version meets a requirement or nothing does, and no index is queried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsolve.model.need import parse_need
from envsolve.model.package import Pin, Present
from envsolve.resolve.closure.explain import explain, missing
from envsolve.resolve.closure.resolve import Conflict, Found
from envsolve.resolve.closure.world import Limit
from tests.laws import examples
from tests.resolve.closure.drawn import URL, Drawn, MemoryIndex, answer_for, resolved, worlds

Projects = Mapping[str, Mapping[str, Sequence[str]]]

NUMPY = {"numpy": Present("1.26.4", "numpy")}
FRAMES: Projects = {
    "pandas": {"1.0": ["numpy>=1.20"], "2.0": ["numpy>=1.26,<2"], "3.0": ["numpy>=2.4"]},
    "plots": {"1.0": ["pandas", "numpy"]},
}


def beside(
    requested: str | Sequence[str],
    present: Mapping[str, Present] = NUMPY,
    projects: Projects = FRAMES,
    limits: Mapping[str, Limit] | None = None,
) -> Found:
    """The answer on an index of ``projects``, which does not have the present packages."""
    lines = (requested,) if isinstance(requested, str) else tuple(requested)
    world = Drawn(projects, lines)
    return answer_for(world, MemoryIndex(world), present=present, limits=limits)


def refused(
    *requested: str, present: Mapping[str, Present] = NUMPY, limits: Mapping[str, Limit] | None = None
) -> Conflict:
    """The conflict for ``requested``."""
    with pytest.raises(Conflict) as caught:
        beside(requested, present, limits=limits)
    return caught.value


def test_the_newest_version_compatible_with_present_packages_is_chosen() -> None:
    found = beside("plots")
    assert [(pin.name, pin.version) for pin in found.pins] == [("pandas", "2.0"), ("plots", "1.0")]


def test_present_packages_are_named_by_their_dependents_and_not_pinned() -> None:
    pandas, plots = beside("plots").pins
    assert (pandas.requires, plots.requires) == (("numpy",), ("numpy", "pandas"))


def test_a_version_limited_by_a_present_package_notes_it() -> None:
    pandas, _ = beside("plots").pins
    assert pandas.because == ("pandas 3.0 requires numpy>=2.4, and conda installs numpy 1.26.4",)
    assert the_only(beside("pandas<3")).because == ()


def test_a_requirement_met_by_present_packages_installs_nothing() -> None:
    assert beside("numpy>=1.20,<2").pins == ()


@pytest.mark.parametrize("urls", [(URL,), (URL, "https://others.example.org/simple/")])
def test_no_index_is_queried_for_present_packages(urls: Sequence[str]) -> None:
    world = Drawn(FRAMES, ("numpy", "plots"))
    index = MemoryIndex(world)
    answer_for(world, index, present=NUMPY, urls=urls)
    assert {path for path in index.requested if "numpy" in path} == set()
    assert "/simple/pandas/" in index.requested


def test_an_extra_incompatible_with_present_packages_limits_a_version() -> None:
    projects: Projects = {"app": {"1.0": [], "2.0": ["numpy>=2; extra == 'x'"]}}
    (pin,) = beside("app[x]", projects=projects).pins
    assert pin.version == "1.0"
    assert pin.because == ("app 2.0 requires numpy>=2, and conda installs numpy 1.26.4",)


def test_present_packages_do_not_bring_requirements_of_their_index_version() -> None:
    projects: Projects = {"app": {"1.0": ["lib"]}, "lib": {"1.0": ["part"]}, "part": {"1.0": []}}
    found = beside("app", {"lib": Present("1.0", "lib")}, projects)
    assert [pin.name for pin in found.pins] == ["app"]


def test_extras_of_present_packages_bring_nothing_and_are_noted() -> None:
    projects: Projects = {"app": {"1.0": ["numpy[fast,x]>=1"]}}
    found = beside(["app", "numpy[tests]"], projects=projects)
    assert found.bare == (("numpy", "fast"), ("numpy", "tests"), ("numpy", "x"))
    assert the_only(found).name == "app"
    assert the_only(found).unknown_extras == ()


def test_extras_of_a_present_wheel_bring_their_requirements() -> None:
    requires = tuple(
        map(parse_need, ("part>=2; extra == 'x'", "never; python_version < '3' and extra == 'x'", "numpy"))
    )
    present = {"lib": Present("1.0", "lib", requires)}
    found = beside(["app"], present, {"app": {"1.0": ["lib[x]"]}, "part": {"1.0": [], "2.0": []}})
    assert [(pin.name, pin.version) for pin in found.pins] == [("app", "1.0"), ("part", "2.0")]
    assert found.bare == ()
    assert explain(refused("lib>1", present=present)) == ["the command line requires lib>1, and lib 1.0 is installed"]


def test_extras_are_only_noted_for_present_packages() -> None:
    assert beside("plots[x]").bare == ()


@pytest.mark.parametrize("requested", ["numpy>=2.4", "numpy!=1.26.*", "numpy==2.4"])
def test_a_request_for_another_version_names_the_one_that_conda_installs(requested: str) -> None:
    assert explain(refused(requested)) == [f"the command line requires {requested}, and conda installs numpy 1.26.4"]


def test_a_package_that_needs_another_version_is_named_with_the_path_to_the_request() -> None:
    assert explain(refused("pandas>=3")) == [
        "the command line requires pandas>=3",
        "pandas 3.0 requires numpy>=2.4, and conda installs numpy 1.26.4",
    ]


def test_requirements_that_present_packages_meet_are_not_mentioned() -> None:
    reasons = explain(refused("plots", "numpy>=1", "pandas==3.0"))
    assert "pandas 3.0 requires numpy>=2.4, and conda installs numpy 1.26.4" in reasons
    assert not [it for it in reasons if "numpy>=1" in it or "plots 1.0 requires numpy" in it]


def test_many_versions_that_need_another_one_are_named_together() -> None:
    projects: Projects = {"app": {f"{number}.0": ["numpy>=2"] for number in range(1, 7)}}
    with pytest.raises(Conflict) as caught:
        beside("app", projects=projects)
    assert explain(caught.value) == [
        "the command line requires app",
        "app 1.0 to 6.0 require other versions, such as numpy>=2, and conda installs numpy 1.26.4",
    ]


def test_a_constraint_that_excludes_a_present_package_is_a_conflict() -> None:
    conflict = refused("pandas<2", limits={"numpy": Limit("<1.25", "", "-c limits.txt")})
    assert explain(conflict) == [
        "the command line requires pandas<2",
        "pandas 1.0 requires numpy>=1.20, and conda installs numpy 1.26.4",
        "-c limits.txt limits numpy to <1.25, and conda installs numpy 1.26.4",
    ]


def test_user_and_package_requirements_and_the_limit_come_first() -> None:
    reasons = explain(refused("pandas>=2", limits={"numpy": Limit("<1.25", "", "-c limits.txt")}))
    assert reasons[:3] == [
        "the command line requires pandas>=2",
        "pandas 3.0 requires numpy>=2.4, and conda installs numpy 1.26.4",
        "-c limits.txt limits numpy to <1.25, and conda installs numpy 1.26.4",
    ]
    assert reasons[3:] == ["pandas 2.0 requires numpy>=1.26,<2, and conda installs numpy 1.26.4"]


def test_a_constraint_that_allows_a_present_package_is_none() -> None:
    limits = {"numpy": Limit(">=1.25", "", "-c limits.txt")}
    assert [pin.version for pin in beside("pandas", limits=limits).pins] == ["2.0"]
    assert not [it for it in explain(refused("pandas>=3", limits=limits)) if "limits.txt" in it]


def test_a_conflict_with_a_present_package_is_not_about_an_index() -> None:
    conflict = refused("numpy>=2.4")
    assert missing(conflict) == []
    assert not [it for it in explain(conflict) if "index" in it]


def test_the_conda_package_is_named_as_conda_names_it() -> None:
    torch = {"torch": Present("2.7.1", "pytorch")}
    assert explain(refused("torch>=2.8", present=torch)) == [
        "the command line requires torch>=2.8, and conda installs pytorch 2.7.1"
    ]


def test_one_file_by_its_address_is_not_what_conda_installs() -> None:
    place = "example.org/numpy-1.26.4-py3-none-any.whl"
    (reason,) = explain(refused(f"numpy @ https://somebody:secret@{place}#sha256={'0' * 64}"))
    assert reason == f"the command line requires numpy @ https://{place}, and conda installs numpy 1.26.4"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("version", "requested", "is_met"),
    [
        ("2.0.post1.dev0", "lib>=2", True),
        ("2.0.0rc1", "lib>=1", True),  # it is present, and pre-releases need not be allowed
        ("2.0.0rc1", "lib>=2", False),
        ("2.7.1+cu126", "lib==2.7.1", True),
        ("2.7.1+cu126", "lib==2.7.1+cpu", False),
        ("2.7.1", "lib===2.7.1", True),
        ("1!2.0", "lib<2", False),
        ("9e", "lib", True),
        ("9e", "lib>=1", False),
        ("9e", "lib!=1", False),
        ("9e", "lib===9e", False),
        ("1.0_3", "lib[x]", True),
        ("1.0_3", "lib[x]==1.0", False),
    ],
)
def test_a_version_written_by_conda_is_compared_as_pythons(version: str, requested: str, is_met: bool) -> None:
    projects: Projects = {"app": {"1.0": [requested]}}
    present = {"lib": Present(version, "lib")}
    for lines in (["app"], [requested], ["app", requested]):
        if is_met:
            assert [pin.name for pin in beside(lines, present, projects).pins] == ["app"] * ("app" in lines)
        else:
            with pytest.raises(Conflict) as caught:
                beside(lines, present, projects)
            assert f"and conda installs lib {version}" in " ".join(explain(caught.value))


def test_another_locked_version_of_a_present_package_is_not_restored() -> None:
    for version in ("1.26.4", "9e"):
        world = Drawn(FRAMES, ("pandas",))
        present = {"numpy": Present(version, "numpy")}
        pins = resolved(
            world._replace(projects={"pandas": {"1.0": ["numpy"]}}), present=present, locked={"numpy": "2.0"}
        )
        assert pins == {"pandas": "1.0"}


@pytest.mark.thorough
@settings(max_examples=examples(100), deadline=None)
@given(worlds(), st.data())
def test_a_present_package_is_the_only_version_of_its_project(world: Drawn, data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(world.projects)), min_size=1, max_size=3, unique=True))
    there = {name: data.draw(st.sampled_from(("1.0", "2.0", "3.0", "5.0"))) for name in names}
    single = world._replace(projects={**world.projects, **{name: {version: []} for name, version in there.items()}})
    pins = resolved(single)
    expected = None if pins is None else {name: version for name, version in pins.items() if name not in there}
    others = {name: versions for name, versions in world.projects.items() if name not in there}
    present = {name: Present(version, name) for name, version in there.items()}
    assert resolved(world._replace(projects=others), present=present) == expected


def the_only(found: Found) -> Pin:
    """The one pin of an answer."""
    (pin,) = found.pins
    return pin
