"""What the wheels of an index hold of CUDA: read from their bytes, at a distance, and kept by their digest."""

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
"""A new one where something else is read."""
_AT_ONCE = 4
_MORE_THAN_A_NAMESPACE = 300
"""Bytes, packed: a package that several share has a few lines in its ``__init__.py``, which may differ."""


class Reading(NamedTuple):
    """How a wheel is read: its libraries up to ``budget`` bytes in the archive, smallest first.

    With ``named`` only those are read whose path speaks of CUDA or of a GPU.
    """

    file: PackageFile
    budget: int
    named: bool


class _Kept(NamedTuple):
    """What was read of a wheel, and how."""

    facts: PackageFacts
    budget: int
    named: bool

    def answers(self, reading: Reading) -> bool:
        """Whether another reading would find no more."""
        if self.facts.unread == 0 and not self.named:
            return True
        return (self.budget, self.named) == (reading.budget, reading.named)


class WheelReader:
    """Reads wheels over ``fetcher``, and keeps what they hold on ``shelf``. Nothing is fetched ``offline``."""

    def __init__(self, fetcher: Fetcher, shelf: Shelf, *, offline: bool = False) -> None:
        self._fetcher, self._shelf, self._offline = fetcher, shelf, offline

    def read(self, readings: Iterable[Reading], progress: Callable[[str], None]) -> list[PackageFacts | None]:
        """What each wheel holds; None if it cannot be read. ``progress`` hears the name of a file."""
        return side_by_side(lambda it: self._facts(it, progress), readings, _AT_ONCE)

    def _facts(self, reading: Reading, progress: Callable[[str], None]) -> PackageFacts | None:
        kept = _kept(self._shelf, reading.file)
        if kept is not None and kept.answers(reading):
            return kept.facts
        if self._offline:
            return None if kept is None else kept.facts
        from envsolve.index.wheel_member import BrokenArchiveError, RemoteWheel  # a cache needs no zipfile

        progress(reading.file.name)
        try:
            with RemoteWheel(self._fetcher, reading.file) as wheel:
                found = facts_in(wheel.members, wheel.chunks, reading.budget, named=reading.named)
                found = found._replace(modules=tuple(_modules_in(wheel)))
        except (BrokenArchiveError, OutsideError, ValueError):  # whoever installs it will hear of it
            return None
        key = _key(reading.file)
        if key is not None:
            self._shelf.write(_BUCKET, key, encoded(_Kept(found, reading.budget, reading.named)))
        return found


def _modules_in(wheel: RemoteWheel) -> Iterator[tuple[str, int]]:
    """The Python packages that a wheel installs, each with the checksum of its first file; not namespaces."""
    for name, size in wheel.members.items():
        module, _, file = name.partition("/")
        if file == "__init__.py" and size >= _MORE_THAN_A_NAMESPACE:
            yield module, wheel.checksums[name]


def known_facts(shelf: Shelf, file: PackageFile) -> PackageFacts | None:
    """What was read of ``file`` before, as far as it was; None if it was not."""
    kept = _kept(shelf, file)
    return None if kept is None else kept.facts


def _kept(shelf: Shelf, file: PackageFile) -> _Kept | None:
    key = _key(file)
    return None if key is None else decoded(shelf.read(_BUCKET, key), _Kept)


def _key(file: PackageFile) -> str | None:
    digest = dict(file.hashes).get("sha256")
    return None if digest is None else f"{_EDITION} {digest}"
