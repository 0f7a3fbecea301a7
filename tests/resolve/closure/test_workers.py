"""Concurrent work of threads."""

from __future__ import annotations

import threading

import pytest

from envsolve.resolve.closure.workers import side_by_side


def test_results_are_in_the_order_of_the_items_with_limited_concurrency() -> None:
    at_work: set[int] = set()
    most: list[int] = []
    others = threading.Event()

    def work(number: int) -> int:
        at_work.add(number)
        most.append(len(at_work))
        others.wait(0.01 * (5 - number % 5))
        at_work.discard(number)
        return number * 2

    assert side_by_side(work, range(20), 3) == [number * 2 for number in range(20)]
    assert 1 < max(most) <= 3
    assert side_by_side(work, (), 3) == []


def test_an_error_in_a_thread_is_raised() -> None:
    def work(number: int) -> None:
        if number == 2:
            raise LookupError("two")

    with pytest.raises(LookupError, match="two"):
        side_by_side(work, range(4), 2)
