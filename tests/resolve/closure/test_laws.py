"""Laws that hold for every resolution, over random small worlds of packages.

    LAWS_TIMES=20 .venv-test/bin/python -m pytest tests/resolve/closure/test_laws.py

checks twenty times as many questions.
"""

from __future__ import annotations

from itertools import islice, permutations

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.laws import examples
from tests.resolve.closure.drawn import Drawn, Pins, resolved, worlds
from tests.resolve.closure.reference import is_met, reached, solutions

pytestmark = pytest.mark.thorough

often = settings(max_examples=examples(150), deadline=None)
sometimes = settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
"""Many worlds that are drawn have no answer, about which there is nothing to say."""


@often
@given(worlds())
def test_a_solution_is_found_exactly_if_one_exists(world: Drawn) -> None:
    assert (resolved(world) is not None) is any(True for _ in solutions(world))


@often
@given(worlds())
def test_a_solution_meets_every_requirement_without_unneeded_packages(world: Drawn) -> None:
    pins = resolved(world)
    assume(pins is not None)
    assert pins is not None
    assert is_met(world, pins)
    assert {name for name, _ in reached(world, pins)} == pins.keys()


@often
@given(worlds())
def test_no_version_could_be_newer_with_all_others_unchanged(world: Drawn) -> None:
    pins = resolved(world)
    assume(pins is not None)
    assert pins is not None
    newer = [{**pins, name: version} for name in pins for version in world.projects[name] if version > pins[name]]
    assert not [it for it in newer if is_met(world, it)]


@sometimes
@given(worlds())
def test_the_same_question_has_the_same_answer(world: Drawn) -> None:
    assert resolved(world) == resolved(world)


@sometimes
@given(worlds())
def test_the_order_of_the_lines_does_not_matter_without_conflicts(world: Drawn) -> None:
    pins = resolved(world)
    assume(pins is not None and is_newest(world, pins))
    assert all(resolved(world, requested=lines) == pins for lines in permutations(world.requested))


def is_newest(world: Drawn, pins: Pins) -> bool:
    """Whether every pin is the newest version."""
    return all(version == max(world.projects[name]) for name, version in pins.items())


@sometimes
@given(worlds(), st.data())
def test_a_valid_lock_is_unchanged(world: Drawn, data: st.DataObject) -> None:
    some = list(islice(solutions(world), 50))
    assume(some)
    locked = data.draw(st.sampled_from(some))
    assert resolved(world, locked=locked) == locked


@sometimes
@given(worlds(), st.data())
def test_upgrading_one_pin_of_a_lock_gives_a_solution(world: Drawn, data: st.DataObject) -> None:
    some = list(islice(solutions(world), 50))
    assume(some)
    locked = data.draw(st.sampled_from(some))
    gone = data.draw(st.sampled_from(sorted(locked)))
    pins = resolved(world, locked={name: version for name, version in locked.items() if name != gone})
    assert pins is not None
    assert is_met(world, pins)
