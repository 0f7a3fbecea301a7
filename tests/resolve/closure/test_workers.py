"""Threads beside the resolver."""

from __future__ import annotations

import time
from functools import partial
from threading import Thread

from envsolve.resolve.closure.workers import Aside


def test_what_is_done_aside_is_done_in_its_order_before_the_end() -> None:
    done: list[int] = []
    aside = Aside()
    aside.submit(partial(time.sleep, 0.05))
    for number in range(100):
        aside.submit(partial(done.append, number))
    assert not done
    aside.close()
    assert done == list(range(100))


def test_who_comes_too_late_is_not_served_and_harms_nobody() -> None:
    for _ in range(200):
        done: list[int] = []
        aside = Aside()
        other = Thread(target=partial(aside.submit, partial(done.append, 1)))
        other.start()
        aside.close()
        other.join()
        before = list(done)
        aside.submit(partial(done.append, 2))
        aside.close()
        assert done == before


def test_where_nothing_is_done_aside_there_is_nothing_to_wait_for() -> None:
    Aside().close()
