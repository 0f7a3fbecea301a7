"""Threads that wait for indexes, so that the resolver does not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread

from envsolve.errors import OutsideError

Job = Callable[[], None]
_ARENA_MAX = -8


def _with_little_memory() -> None:
    """Have all threads share two heaps.

    glibc gives each thread one of its own (mallopt(3), M_ARENA_MAX), and 48 threads that unpack a page each left 220 MB
    behind; with two it is 110 MB, in the same time (measured on 411 packages).
    """
    if sys.platform != "linux":
        return
    import ctypes

    with suppress(OSError, AttributeError):  # a C library without it
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 2)


class Workers:
    """At most ``most`` threads, started as jobs come. A job that an index fails is dropped: whoever needs it asks."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._threads: list[Thread] = []
        self._waiting = 0
        self._lock = Lock()
        self.failure: Exception | None = None
        """What went wrong in a job that should not have: a mistake of the program."""

    def submit(self, job: Job) -> None:
        """Do ``job`` when a thread is free."""
        with self._lock:
            if not self._threads:
                _with_little_memory()
            self._waiting += 1
            if self._waiting > 0 and len(self._threads) < self._most:
                thread = Thread(target=self._work, daemon=True)
                self._threads.append(thread)
                thread.start()
        self._jobs.put(job)

    def close(self) -> None:
        """Take no further jobs; those that run end by themselves."""
        with self._lock:
            self._most = 0
            while not self._jobs.empty():
                self._jobs.get_nowait()
            for _ in self._threads:
                self._jobs.put(None)

    def _work(self) -> None:
        while True:
            with self._lock:
                self._waiting -= 1
            job = self._jobs.get()
            if job is None:
                return
            try:
                job()
            except OutsideError:
                pass
            except Exception as error:  # noqa: BLE001 - told by whoever closes: a thread has nobody to raise to
                self.failure = error
