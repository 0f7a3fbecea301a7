"""Facts about CUDA in the wheels of an index, read from remote files and cached by digest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from envsolve.binary.package_facts import PackageFacts, facts_in
from envsolve.errors import OutsideError
from envsolve.index.fetch import Fetcher
from envsolve.index.one_index import Shelf
from envsolve.index.store import decoded, encoded
from envsolve.model.package import PackageFile
from envsolve.resolve.closure.workers import side_by_side

if TYPE_CHECKING:
    from envsolve.index.wheel_member import RemoteWheel

_BUCKET = "wheel_facts"
_EDITION = 7
"""Increased when something else is read."""
_AT_ONCE = 4
_MORE_THAN_A_NAMESPACE = 300
"""The size in compressed bytes up to which ``__init__.py`` of a shared namespace may differ between packages."""


class Reading(NamedTuple):
    """How to read a wheel: libraries up to ``budget`` compressed bytes in total, smallest first.

    With ``named``, only libraries with CUDA or a GPU in their path.
    """

    file: PackageFile
    budget: int
    named: bool


class _Cached(NamedTuple):
    """The facts read from a wheel, and how it was read."""

    facts: PackageFacts
    budget: int
    named: bool

    def answers(self, reading: Reading) -> bool:
        """Whether another reading would find nothing more."""
        if self.facts.unread == 0 and not self.named:
            return True
        return (self.budget, self.named) == (reading.budget, reading.named)


class WheelReader:
    """Reads wheels over ``fetcher`` and caches their facts on ``shelf``. Fetches nothing if ``offline``."""

    def __init__(self, fetcher: Fetcher, shelf: Shelf, *, offline: bool = False) -> None:
        self._fetcher, self._shelf, self._offline = fetcher, shelf, offline

    def read(self, readings: Iterable[Reading], progress: Callable[[str], None]) -> list[PackageFacts | None]:
        """The facts about each wheel; None if it cannot be read. ``progress`` gets the name of each file."""
        return side_by_side(lambda it: self._facts(it, progress), readings, _AT_ONCE)

    def _facts(self, reading: Reading, progress: Callable[[str], None]) -> PackageFacts | None:
        cached = _cached(self._shelf, reading.file)
        if cached is not None and cached.answers(reading):
            return cached.facts
        if self._offline:
            return None if cached is None else cached.facts
        from envsolve.index.wheel_member import BrokenArchiveError, RemoteWheel  # the cache needs no zipfile

        progress(reading.file.name)
        try:
            with RemoteWheel(self._fetcher, reading.file) as wheel:
                found = facts_in(wheel.members, wheel.chunks, reading.budget, named=reading.named)
                found = found._replace(modules=tuple(_modules_in(wheel)))
        except (BrokenArchiveError, OutsideError, ValueError):  # the installer will report it
            return None
        key = _key(reading.file)
        if key is not None:
            self._shelf.write(_BUCKET, key, encoded(_Cached(found, reading.budget, reading.named)))
        return found


def _modules_in(wheel: RemoteWheel) -> Iterator[tuple[str, int]]:
    """The Python packages in a wheel, each with the checksum of its first file; without namespaces."""
    for name, size in wheel.members.items():
        module, _, file = name.partition("/")
        if file == "__init__.py" and size >= _MORE_THAN_A_NAMESPACE:
            yield module, wheel.checksums[name]


def known_facts(shelf: Shelf, file: PackageFile) -> PackageFacts | None:
    """The cached facts about ``file``, which may be incomplete; None if there are none."""
    cached = _cached(shelf, file)
    return None if cached is None else cached.facts


def _cached(shelf: Shelf, file: PackageFile) -> _Cached | None:
    key = _key(file)
    return None if key is None else decoded(shelf.read(_BUCKET, key), _Cached)


def _key(file: PackageFile) -> str | None:
    digest = dict(file.hashes).get("sha256")
    return None if digest is None else f"{_EDITION} {digest}"
