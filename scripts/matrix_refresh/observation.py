"""The facts from each wheel, cached on disk: an interrupted run resumes, and offline runs are possible."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TypeGuard

import requests

from envsolve.releases.errors import ReleaseError
from envsolve.releases.reader import Observation
from envsolve.releases.wheels import WheelFile
from scripts.matrix_refresh.cache import cached, store
from scripts.matrix_refresh.errors import RefreshError
from scripts.matrix_refresh.wheel import Wheel

_HELD_BACK = "held back"
"""The fact that a large library was left unread; a deep run reads such a wheel again."""

Observe = Callable[[Wheel], Observation]


class Observations:
    """Reads wheels with ``observe`` and caches the results; a new ``edition`` of observe reads everything again.

    ``wheels_read`` and ``transferred`` (bytes) count requests to the index, not reads of the cache.
    """

    def __init__(
        self,
        cache: Path,
        edition: str,
        observe: Observe,
        session: requests.Session,
        *,
        offline: bool = False,
        deep: bool = False,
        fresh: bool = False,
    ) -> None:
        self._cache = cache / "wheels" / edition
        self._observe = observe
        self._session = session
        self._offline = offline
        self._deep = deep
        self._fresh = fresh
        self._counting = threading.Lock()
        self._reading: defaultdict[Path, threading.Lock] = defaultdict(threading.Lock)
        self._read_fresh: set[Path] = set()
        self.wheels_read = 0
        self.transferred = 0

    def read(self, file: WheelFile) -> Observation:
        """The facts about ``file``, from the cache or from its bytes. A wheel of two releases is read once.

        Raises RefreshError if neither is available, or if ``observe`` finds an unknown form (ValueError).
        """
        path = self._cache / f"{file.filename}.{(file.sha256 or 'unhashed')[:16]}.json"
        with self._counting:
            reading = self._reading[path]
        with reading:
            return self._read(file, path)

    def _read(self, file: WheelFile, path: Path) -> Observation:
        known = None if self._fresh and path not in self._read_fresh else cached(path)
        if _is_observation(known) and not (self._deep and _HELD_BACK in known):
            return known
        if self._offline:
            raise RefreshError(f"{file.filename} is not in the cache: run once without --offline")
        try:
            wheel = Wheel(file, self._session, deep=self._deep)
        except ReleaseError as error:
            raise RefreshError(str(error)) from error
        with wheel:
            try:
                observation = self._observe(wheel)
            except ReleaseError as error:
                raise RefreshError(str(error)) from error
            except ValueError as error:
                raise RefreshError(f"{file.filename}: {error}") from error
            finally:
                self._count(wheel.transferred)
            observation["read"] = list(dict.fromkeys(wheel.read))
            if wheel.held_back:
                observation[_HELD_BACK] = ["a large library"]
        store(path, observation)
        self._read_fresh.add(path)
        return observation

    def _count(self, transferred: int) -> None:
        with self._counting:
            self.wheels_read += 1
            self.transferred += transferred


def _is_observation(known: object) -> TypeGuard[Observation]:
    """Whether a cached file contains facts, each a list of strings; anything else counts as not cached."""
    return (
        isinstance(known, dict)
        and "read" in known
        and all(isinstance(values, list) and all(isinstance(it, str) for it in values) for values in known.values())
    )
