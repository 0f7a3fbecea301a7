"""What was read of each wheel, kept on disk: a run that was broken off resumes, and one without a network works."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import requests

from scripts.matrix_refresh.errors import RefreshError
from scripts.matrix_refresh.index import WheelFile
from scripts.matrix_refresh.wheel import Wheel

Observation = dict[str, list[str]]
"""What a reader saw in one wheel, by name of the fact; ``read`` lists the members it looked into."""

_HELD_BACK = "held back"
"""The fact that a large library was left unread; a deep run reads such a wheel again."""

Observe = Callable[[Wheel], Observation]
Read = Callable[[WheelFile], Observation]


class Observations:
    """Reads wheels with ``observe`` and remembers; ``edition`` names what observe looks for, a new one reads anew."""

    def __init__(
        self,
        cache: Path,
        edition: str,
        observe: Observe,
        session: requests.Session,
        *,
        offline: bool = False,
        deep: bool = False,
        anew: bool = False,
    ) -> None:
        self._cache = cache / "wheels" / edition
        self._observe = observe
        self._session = session
        self._offline = offline
        self._deep = deep
        self._anew = anew

    def read(self, file: WheelFile) -> Observation:
        """What is known of ``file``: from the cache, or from its bytes. Raises RefreshError where neither answers."""
        kept = self._cache / f"{file.filename}.{(file.sha256 or 'unhashed')[:16]}.json"
        if kept.exists() and not self._anew:
            observation: Observation = json.loads(kept.read_text(encoding="utf-8"))
            if not (self._deep and _HELD_BACK in observation):
                return observation
        if self._offline:
            raise RefreshError(f"{file.filename} is not in the cache: run once without --offline")
        with Wheel(file, self._session, deep=self._deep) as wheel:
            observation = self._observe(wheel)
            observation["read"] = list(dict.fromkeys(wheel.read))
            if wheel.held_back:
                observation[_HELD_BACK] = ["a large library"]
        _write(kept, json.dumps(observation, indent=1))
        return observation


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
