"""Environments for builds. Builds with the same requirements share one.

Most builds require only setuptools, and its installation takes longer than the metadata of a package.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from build.env import DefaultIsolatedEnv


class BuildEnvironments:
    """Makes the environments on demand. Call :meth:`close` to remove them.

    ``constraints`` limit the versions of build requirements.
    """

    def __init__(self, constraints: Sequence[str] = ()) -> None:
        self._constraints = constraints
        self._making = Lock()
        self._there: dict[tuple[frozenset[str], str], DefaultIsolatedEnv] = {}
        self._open = ExitStack()

    def of(self, requirements: Collection[str], constraint: str = "") -> DefaultIsolatedEnv:
        """An environment with ``requirements`` installed, within ``constraint`` if it is not empty.

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
