"""All of it together: list, read in parallel, compare, write."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from packaging.version import Version
from requests import Session

from envsolve.errors import MatrixError
from envsolve.matrix import Matrix
from envsolve.releases.errors import ReleaseError
from envsolve.releases.frameworks import readers
from envsolve.releases.reader import KEY, Reader, ReadRow
from envsolve.releases.wheels import Listing, WheelFile
from scripts.matrix_refresh.credentials import endpoint_of
from scripts.matrix_refresh.errors import RefreshError
from scripts.matrix_refresh.index import Index
from scripts.matrix_refresh.observation import Observations
from scripts.matrix_refresh.toml_file import MatrixFile
from scripts.matrix_refresh.wheel import new_session

WORKERS = 4
"""Wheels read at the same time: enough to hide the network's delays, few enough to be no burden."""
_TO_BE_FILLED = re.compile(rf"[^:]+: release(\[\d+\]\.(?!({'|'.join(KEY)}):)\w+)?: is missing")
"""A mistake that a refresh can fix: a missing field that does not identify a row, or missing rows."""


class Settings(NamedTuple):
    """Where to read and how."""

    matrix: Path
    cache: Path
    endpoint: str
    offline: bool = False
    deep: bool = False
    fresh: bool = False
    workers: int = WORKERS


class FrameworkRead(NamedTuple):
    """What was read of one framework, and the wheels that could not be.

    ``failed`` are the versions of those; ``wheels_read`` and ``transferred`` (bytes) are what was read from the index.
    """

    rows: tuple[ReadRow, ...]
    failures: tuple[str, ...]
    failed: frozenset[Version] = frozenset()
    wheels_read: int = 0
    transferred: int = 0


def _first_of(mistakes: Sequence[str]) -> str:
    more = f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
    return f"{mistakes[0]}{more}" if mistakes else ""


class Refresh:
    """One run over one index."""

    def __init__(self, settings: Settings, session: Session | None = None) -> None:
        endpoint = endpoint_of(settings.endpoint)
        self.settings = settings._replace(endpoint=endpoint.url)
        self._session = session or new_session()
        self._session.auth = endpoint.auth
        self._indexes: dict[str, Index] = {}
        try:
            self.readers = readers(Matrix(settings.matrix))
        except MatrixError as error:
            raise RefreshError(_first_of(error.cause) or error.message) from error

    def reader(self, framework: str) -> Reader:
        """The reader of one framework. Raises RefreshError for one that has none."""
        if framework not in self.readers:
            raise RefreshError(f"{framework} has no reader; those that have: {', '.join(sorted(self.readers))}")
        return self.readers[framework]

    def file(self, reader: Reader) -> MatrixFile:
        """The file of a reader's framework. Raises RefreshError where envsolve itself would call it wrong.

        Fields that are missing are what a refresh is for, and rows: a new framework begins without.
        """
        try:
            Matrix(self.settings.matrix).framework(reader.framework, None)
        except MatrixError as error:
            mistakes = [mistake for mistake in error.cause if not _TO_BE_FILLED.match(mistake)]
            if mistakes or not error.cause:
                raise RefreshError(_first_of(mistakes) or error.message) from error
        return MatrixFile(self.settings.matrix / f"{reader.framework}.toml")

    @property
    def default_readers(self) -> list[str]:
        """Those that read the default index; one with an index of its own is used when it is named."""
        return sorted(name for name, reader in self.readers.items() if not reader.endpoints)

    def refuse_own_index(self, names: Iterable[str]) -> None:
        """Raise RefreshError where one of the readers has an index of its own and would not read one that was named."""
        own = [name for name in names if self.reader(name).endpoints]
        if own:
            raise RefreshError(f"{', '.join(own)} has an index of its own: leave --index-url out")

    def wheels(self, reader: Reader) -> list[WheelFile]:
        """What the index lists of a reader's projects."""
        return [
            wheel
            for endpoint in reader.endpoints or (self.settings.endpoint,)
            for project in reader.projects
            for wheel in self._index(endpoint).wheels(project)
        ]

    def _index(self, endpoint: str) -> Index:
        if endpoint not in self._indexes:
            settings = self.settings
            self._indexes[endpoint] = Index(endpoint, settings.cache, self._session, offline=settings.offline)
        return self._indexes[endpoint]

    def versions(self, reader: Reader, shelf: Listing) -> list[Version]:
        """The releases that the matrix holds, newest first. Raises RefreshError where the index has none."""
        found = {version for project in reader.releases_of for version in shelf.versions(project)}
        if not found:
            raise RefreshError(f"the index has no wheel of {', '.join(reader.releases_of)}")
        return sorted((version for version in found if version >= reader.oldest), reverse=True)

    def released(self, reader: Reader) -> dict[str, str]:
        """The day on which each version was released, where the index says it.

        Of several projects the first that has the version counts. PyTorch's own index gets builds later: it says none.
        """
        days: dict[str, str] = {}
        for project in reversed(reader.releases_of) if not reader.endpoints else ():
            days |= self._index(self.settings.endpoint).released(project)
        return days

    def read(
        self, reader: Reader, shelf: Listing, versions: Sequence[Version], progress: Callable[[str], None]
    ) -> FrameworkRead:
        """The rows of ``versions``; a release whose wheels cannot be read is named and left as it is."""
        settings = self.settings
        observations = Observations(
            settings.cache,
            reader.edition,
            reader.observe,
            self._session,
            offline=settings.offline,
            deep=settings.deep,
            fresh=settings.fresh,
        )

        def rows_of(version: Version) -> list[ReadRow] | str:
            try:
                rows = list(reader.rows(version, shelf, observations.read))
            except ReleaseError as error:
                return str(error)
            except (ValueError, LookupError) as error:
                reason = f"the reader cannot use its wheels or their cached facts: {error!r}"
                return f"{reader.framework} {version}: {reason}"
            progress(f"{reader.framework} {version}")
            return rows

        pool = ThreadPoolExecutor(settings.workers)
        try:
            results = list(pool.map(rows_of, versions))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        return FrameworkRead(
            tuple(row for result in results if not isinstance(result, str) for row in result),
            tuple(result for result in results if isinstance(result, str)),
            frozenset(version for version, result in zip(versions, results, strict=True) if isinstance(result, str)),
            observations.wheels_read,
            observations.transferred,
        )
