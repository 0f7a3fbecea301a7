"""The environments that source is built in, one for all with the same requirements of their build.

Most builds require setuptools alone; installing it takes longer than asking it for the metadata of a package.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from build.env import DefaultIsolatedEnv


class BuildEnvironments:
    """Makes them as they are needed. Who has one closes it, which removes them.

    ``constraints`` bound the versions of what builds require.
    """

    def __init__(self, constraints: Sequence[str] = ()) -> None:
        self._constraints = constraints
        self._making = Lock()
        self._there: dict[tuple[frozenset[str], str], DefaultIsolatedEnv] = {}
        self._open = ExitStack()

    def of(self, requirements: Collection[str], constraint: str = "") -> DefaultIsolatedEnv:
        """One with ``requirements`` installed, within ``constraint`` too if there is one.

        Raises CalledProcessError, or an exception of pypa/build.
        """
        from build.env import DefaultIsolatedEnv

        wanted = (frozenset(requirements), constraint)
        with self._making:
            if wanted not in self._there:
                environment = self._open.enter_context(DefaultIsolatedEnv())
                environment.install(requirements, [*self._constraints, *([constraint] if constraint else [])])
                self._there[wanted] = environment
            return self._there[wanted]

    def close(self) -> None:
        """Remove them."""
        self._open.close()
