"""Which wheels a package index lists, in the words of the matrix: platforms, Python minors, glibc floors."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC
from pathlib import Path
from typing import TypeGuard

from packaging.version import InvalidVersion, Version
from pypi_simple import (
    NoSuchProjectError,
    ProjectPage,
    PyPISimple,
    UnsupportedContentTypeError,
    UnsupportedRepoVersionError,
)
from requests import RequestException, Session

from envsolve.releases.wheels import Listing, WheelFile, wheel_files
from scripts.matrix_refresh.cache import cached, store
from scripts.matrix_refresh.errors import RefreshError, without_credentials

_TIMEOUT = 60.0
_Listed = tuple[str, str, str | None]
"""Name, URL and SHA-256 of a file."""
_Listing = tuple[list[_Listed], dict[str, str]]
"""The wheels of a project, and the day (UTC) on which the first file of each version was uploaded, where known."""


class ShuffledShelf(Listing):
    """A shelf that hands out the wheels of a release in an order of chance: any of them may speak for the release.

    The same ``seed`` gives the same order, whoever asks first.
    """

    def __init__(self, wheels: Iterable[WheelFile], seed: int) -> None:
        super().__init__(wheels)
        self._seed = seed

    def wheels(self, project: str, version: Version, platform: str | None = None) -> list[WheelFile]:
        """The wheels of one release in random order, for one platform or for all."""
        found = super().wheels(project, version, platform)
        chance = random.Random(f"{self._seed} {project} {version} {platform}")  # noqa: S311 - a sample, no secret
        return chance.sample(found, len(found))


class Index:
    """A package index (PEP 503 or PEP 691); listings are cached in ``cache``, and only that is used when ``offline``.

    A password belongs in ``session``, not in ``endpoint``, where it would be ignored.
    """

    def __init__(self, endpoint: str, cache: Path, session: Session, *, offline: bool) -> None:
        endpoint = without_credentials(endpoint)
        self._endpoint = endpoint
        self._cache = cache / "listings" / re.sub(r"[^a-z0-9.]+", "-", endpoint.lower()).strip("-.")
        self._session = session
        self._offline = offline
        self._listings: dict[str, _Listing] = {}

    def wheels(self, project: str) -> list[WheelFile]:
        """Every wheel of ``project``. Raises RefreshError if the index, or offline the cache, has no answer."""
        files, _ = self._listing(project)
        return [wheel for name, url, sha256 in files for wheel in wheel_files(project, name, url, sha256)]

    def released(self, project: str) -> dict[str, str]:
        """The release day (UTC) of each version of ``project``, if the index has it. Raises RefreshError as above.

        That is the day when its first file was uploaded, of any kind, even if it was withdrawn since.
        """
        return self._listing(project)[1]

    def _listing(self, project: str) -> _Listing:
        if project not in self._listings:
            path = self._cache / f"{project}.json"
            if self._offline:
                listed = cached(path)
                if not _is_listing(listed):
                    raise RefreshError(f"the list of {project} wheels is not in the cache: run once without --offline")
            else:
                listed = self._fetched(project)
                store(path, listed)
            self._listings[project] = listed
        return self._listings[project]

    def _fetched(self, project: str) -> _Listing:
        client = PyPISimple(self._endpoint, session=self._session)
        try:
            page: ProjectPage = client.get_project_page(project, timeout=_TIMEOUT)
        except NoSuchProjectError:
            return [], {}
        except (RequestException, UnsupportedRepoVersionError, UnsupportedContentTypeError, ValueError) as error:
            raise RefreshError(f"the index did not list {project}: {error}") from error
        files = [
            (package.filename, without_credentials(package.url), (package.digests or {}).get("sha256"))
            for package in page.packages
            if package.package_type == "wheel" and not package.is_yanked
        ]
        return files, _first_days(page)


def _first_days(page: ProjectPage) -> dict[str, str]:
    days: dict[str, str] = {}
    for package in page.packages:
        if package.upload_time is None or package.version is None:
            continue
        with suppress(InvalidVersion):
            version, day = str(Version(package.version)), package.upload_time.astimezone(UTC).date().isoformat()
            days[version] = min(day, days.get(version, day))
    return days


def _is_listing(data: object) -> TypeGuard[_Listing]:
    """Whether a cached file contains a listing; anything else counts as not cached."""
    if not isinstance(data, list) or [type(part) for part in data] != [list, dict]:
        return False
    files, days = data
    return all(isinstance(day, str) for day in days.values()) and all(
        isinstance(it, list)
        and [type(part) for part in it[:2]] == [str, str]
        and len(it) == 3  # noqa: PLR2004 - name, URL, hash
        and isinstance(it[2], str | None)
        for it in files
    )
