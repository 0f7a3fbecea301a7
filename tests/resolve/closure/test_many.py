"""Thousands of requirements on one project cost no more than the versions that they distinguish."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from envsolve.resolve.closure import resolve
from envsolve.resolve.closure.provider import Provider, Requirement
from envsolve.resolve.closure.shared import narrow
from tests.resolve.closure.drawn import Drawn, resolved

MANY = 5_000


@pytest.fixture
def most(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many requirements of one project were processed together, each time."""
    seen = []
    matches = Provider.find_matches

    def counting(
        self: Provider, identifier: str, requirements: dict[str, Iterable[Requirement]], incompatibilities: object
    ) -> object:
        lists = {name: list(it) for name, it in requirements.items()}
        seen.append(max(map(len, lists.values())))
        return matches(self, identifier, lists, incompatibilities)  # type: ignore[arg-type]

    monkeypatch.setattr(Provider, "find_matches", counting)
    return seen


@pytest.mark.thorough
@pytest.mark.parametrize("line", ["a>=1.0", "a>=1.0.{}", "a<=2.0.{}", "a!=9.{}", "a[x]>=1.0.{}"])
def test_requirements_that_allow_the_same_versions_are_merged(line: str, most: list[int]) -> None:
    world = Drawn({"a": {"1.0": [], "2.0": [], "3.0": []}}, tuple(line.format(number) for number in range(MANY)))
    pins = resolved(world)
    assert pins is not None
    assert list(pins) == ["a"]
    assert max(most) <= 6


@pytest.mark.thorough
def test_a_requirement_that_nothing_meets_is_not_lost(most: list[int]) -> None:
    world = Drawn({"a": {"1.0": []}}, (*(f"a>=0.{number}" for number in range(MANY)), "a>=2"))
    assert resolved(world) is None


def test_a_pin_among_ranges_still_admits_what_is_pinned_alone() -> None:
    world = Drawn({"a": {"1.0": [], "2.0rc1": [], "2.0": []}}, ("a>=2.0rc1", "a<2.0rc2,>=2.0rc1", "a==2.0rc1"))
    assert resolved(world) == {"a": "2.0rc1"}


def test_a_long_search_excludes_what_no_answer_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the searches that only explain an answer: without this they took the rest of the time limit."""
    narrowed = []

    def counting(provider: Provider, *rest: Any) -> bool:
        narrowed.append(provider)
        return narrow(provider, *rest)

    monkeypatch.setattr(resolve, "narrow", counting)
    one, two = ([f"{number}.0" for number in range(1, 40 * of + 1)] for of in (1, 2))
    world: dict[str, dict[str, list[str]]] = {
        "left": {it: [f"mid=={2 * number + 1}.0"] for number, it in enumerate(one)},
        "right": {it: [f"end=={it}"] for it in one},
        "mid": {it: [f"base=={it}"] for it in two},
        "end": {it: [f"base=={2 * number}.0"] for number, it in enumerate(one)},
        "base": {it: [] for it in two},
    }
    assert resolved(Drawn(world, ("left", "right"))) is None
    assert narrowed
    narrowed.clear()
    assert resolved(Drawn({"a": {"1.0": [], "2.0": ["a==1.0"]}}, ("a",))) == {"a": "1.0"}
    assert not narrowed
