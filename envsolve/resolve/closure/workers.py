"""Threads that wait for indexes, so that the resolver does not have to."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from envsolve.errors import OutsideError

if TYPE_CHECKING:
    from concurrent.futures import Future

Item = TypeVar("Item")
Made = TypeVar("Made")
_AT_FIRST = 8
_AT_LEAST = 4
_WORK = 0.0008
"""Seconds of processing for a page and its metadata (measured: 0.5 to 2 ms)."""
Job = Callable[[], object]
_ARENA_MAX = -8


def _with_little_memory() -> None:
    """Make all threads share two heaps.

    glibc gives each thread its own heap (mallopt(3), M_ARENA_MAX). 48 threads that unpack a page each left 220 MB
    behind; with two heaps it is 110 MB, in the same time (measured on 411 packages).
    """
    if sys.platform != "linux":
        return
    import ctypes

    with suppress(OSError, AttributeError):  # a C library without mallopt
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 2)


class Workers:
    """At most ``most`` threads, started as jobs arrive.

    A job that fails because of an index is dropped and retried on use.

    The number of threads depends on the duration of the fastest job. If an index answers at once, threads only compete
    for the interpreter, and a few are enough. If every answer takes its time, many threads wait at once.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._allowed = min(_AT_FIRST, most)
        self._quickest = float("inf")
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._threads = 0
        self._idle = 0
        self._lock = Lock()
        self.failure: Exception | None = None
        """An unexpected exception in a job, which is a bug."""

    def submit(self, job: Job) -> None:
        """Run ``job`` when a thread is free."""
        if not self._threads:
            _with_little_memory()
        self._jobs.put(job)
        self._start_one()

    def close(self) -> None:
        """Accept no further jobs. Running jobs end by themselves."""
        with self._lock:
            self._allowed = 0
            with suppress(Empty):  # a thread may take the last job in between
                while True:
                    self._jobs.get_nowait()
            for _ in range(self._threads):
                self._jobs.put(None)

    def _start_one(self) -> bool:
        """Start a thread if jobs are waiting and the limit allows it."""
        with self._lock:
            if self._idle >= self._jobs.qsize() or self._threads >= self._allowed:
                return False
            self._threads += 1
        Thread(target=self._work, daemon=True).start()
        return True

    def _work(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
            job = self._jobs.get()
            with self._lock:
                self._idle -= 1
            if job is None:
                return
            start = perf_counter()
            try:
                job()
            except OutsideError:
                continue
            except Exception as error:  # noqa: BLE001 - raised by whoever closes: nothing catches it in a thread
                self.failure = error
            self._learn(perf_counter() - start)

    def _learn(self, seconds: float) -> None:
        """Allow as many threads as answers can be awaited while one is processed."""
        if seconds < self._quickest:
            with self._lock:
                self._quickest = seconds
                if self._allowed:
                    self._allowed = min(self._most, max(_AT_LEAST, int(seconds / _WORK)))
        while self._start_one():
            pass


def side_by_side(work: Callable[[Item], Made], items: Iterable[Item], most: int) -> list[Made]:
    """Return the results of ``work`` for each item, with up to ``most`` running at a time. Raises what ``work`` raises.

    An interrupt does not wait for any of them, as a ThreadPoolExecutor would: a server may take a minute to answer.
    """
    from concurrent.futures import Future

    workers = Workers(most)
    made: list[Future[Made]] = []
    try:
        for item in items:
            made.append(Future())
            workers.submit(partial(_settle, made[-1], work, item))
        return [it.result() for it in made]
    finally:
        workers.close()


def _settle(future: Future[Made], work: Callable[[Item], Made], item: Item) -> None:
    try:
        future.set_result(work(item))
    except BaseException as error:  # noqa: BLE001 - raised by who waits for it
        future.set_exception(error)
