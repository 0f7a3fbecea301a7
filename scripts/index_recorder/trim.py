"""Choose the files of a page to record: all that a resolution may reach, and enough others for a realistic history."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from packaging.version import Version

from scripts.index_recorder.source import Listed


class Measure(NamedTuple):
    """How many files of a page to record in addition to those that resolutions reach.

    ``newest`` counts releases, ``oldest`` and ``odd`` files: the first ones, and those that are yanked or whose names
    today's standards do not allow.
    """

    newest: int
    oldest: int = 2
    odd: int = 3


def trimmed(page: list[Listed], reached: Iterable[Version], measure: Measure) -> list[Listed]:
    """The files of ``page`` to record, in its order: wheels that targets accept, and source distributions."""
    versions = sorted({it.version for it in page if it.version is not None}, reverse=True)
    newest = {*reached, *versions[: measure.newest]}
    names = {it.file.name for it in page if it.version in newest and (it.targets or _is_source(it))}
    names |= {it.file.name for it in page[: measure.oldest]}
    names |= {it.file.name for it in [it for it in page if it.version is None][-measure.odd :]}
    names |= {it.file.name for it in [it for it in page if it.file.yanked is not None][-measure.odd :]}
    return [it for it in page if it.file.name in names]


def _is_source(listed: Listed) -> bool:
    return listed.version is not None and not listed.is_wheel
