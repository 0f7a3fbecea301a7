"""How old the versions of a project are."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from envsolve.resolve.closure.releases import Releases, descending

_SECONDS_OF_A_DAY = 86400


def days_of(releases: Releases) -> list[float]:
    """Return the first day on which each version or a higher one existed.

    A version without a date is as old as the next. One that is on another index is as old as its version on this one:
    the other is not queried for that.

    So a late patch of an old line does not look new, and a pre-release is as old as the version after it.
    """
    found: list[float] = []
    day, own = float("inf"), releases.own
    for position in descending(releases.mask("")):
        if own >> position & 1 and not releases.is_prerelease(position):
            day = min([day, *_uploads(releases, position)])
        found.append(day)
    found.reverse()
    versions = enumerate(releases.project.versions)
    return [found[it if own >> it & 1 else releases.first(version)] for it, version in versions]


def _uploads(releases: Releases, position: int) -> Iterator[float]:
    for file in releases.project.files(position):
        if file[4] is not None:
            try:
                yield datetime.fromisoformat(file[4]).timestamp() / _SECONDS_OF_A_DAY
            except ValueError:
                continue
