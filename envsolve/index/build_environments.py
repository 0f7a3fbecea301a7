"""The environments that source distributions are built in, one for all with the same requirements of their build.

Most builds require setuptools alone; installing it takes longer than asking it for the metadata of a package.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import ExitStack
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from build.env import DefaultIsolatedEnv


class BuildEnvironments:
    """Makes them as they are needed. Who has one closes it, which removes them."""

    def __init__(self) -> None:
        self._making = Lock()
        self._there: dict[frozenset[str], DefaultIsolatedEnv] = {}
        self._open = ExitStack()

    def of(self, requirements: Collection[str]) -> DefaultIsolatedEnv:
        """One with ``requirements`` installed. Raises CalledProcessError, or an exception of pypa/build."""
        from build.env import DefaultIsolatedEnv

        wanted = frozenset(requirements)
        with self._making:
            if wanted not in self._there:
                environment = self._open.enter_context(DefaultIsolatedEnv())
                environment.install(wanted)
                self._there[wanted] = environment
            return self._there[wanted]

    def close(self) -> None:
        """Remove them."""
        self._open.close()
