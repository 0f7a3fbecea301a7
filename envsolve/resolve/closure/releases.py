"""The versions of one project as the resolver sees them: which lie in a specifier, and what can be installed of each.

Sets of versions are the bits of a number, one bit for each position in ascending order. The versions that several
requirements admit are the ``&`` of their numbers.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.index.client import Direct
from envsolve.index.extended import ExtendedProject
from envsolve.index.fitting import Interpreter, Ranks
from envsolve.index.page import Project, RawFile
from envsolve.model.need import specifier_of
from envsolve.model.versions import LibcVersion, parsed_version


class Unfit(StrEnum):
    """Why no file of a version can be installed."""

    NO_FILE = "the index has no file for it"
    OTHER_PLATFORM = "it has no wheel for this Python and platform"
    NEWER_GLIBC = "its wheels need a newer glibc"
    OTHER_PYTHON = "it does not support this Python"
    TOO_NEW = "it was uploaded after the exclude-newer date"
    SOURCE_ONLY = "it has no wheel, only a source distribution"
    NEEDS_BUILD = "it has only a source distribution, which must be built to read its requirements"
    OTHER_HASHES = "none of its files has a required hash (--hash)"
    YANKED = "it was withdrawn (yanked)"
    PRERELEASE = "it is a pre-release, and no requirement allows pre-releases"
    UNREADABLE = "its requirements are invalid or contain a URL"


class Fit(NamedTuple):
    """What the target can install of one version: the file that an installer chooses, and all candidates."""

    best: RawFile
    files: tuple[RawFile, ...]
    is_yanked: bool


class Sources(IntEnum):
    """Which versions may be used as source distributions."""

    NONE = 0
    WITHOUT_WHEELS = 1
    """Only those without any wheel. One with a wheel for another Python or a newer glibc can be used with these."""
    ANY = 2


class Wanted(NamedTuple):
    """What files must fit. ``newest_upload`` is a time in RFC 3339, in UTC.

    ``hashes`` are the only allowed hashes of some projects, by project name. With ``as_if_built``, metadata that needs
    a build counts as empty until something is built. With ``prereleases``, a pre-release is as good as a final release.
    ``overridden`` are the projects on which packages' own requirements are replaced: with the extras that are added, or
    None if the requirement is dropped. Source distributions of projects in ``wheels_only`` do not count. ``pinned`` are
    the projects of which the user requires one exact version.
    """

    interpreter: Interpreter
    newest_upload: str | None = None
    sources: Sources = Sources.NONE
    hashes: Mapping[str, frozenset[tuple[str, str]]] = {}
    as_if_built: bool = False
    prereleases: bool = False
    overridden: Mapping[str, tuple[str, ...] | None] = {}
    wheels_only: frozenset[str] = frozenset()
    pinned: frozenset[str] = frozenset()


class Fitting:
    """Which files fit a target. Results are reused for files with the same tags."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self._python = Version(wanted.interpreter.full_version)
        self._supports: dict[str, bool] = {"": True}

    @cached_property
    def _ranks(self) -> Ranks:
        """Worked out when the first file is judged: a search makes a world for each Python and enters few of them."""
        return Ranks(self.wanted.interpreter)

    def of(self, project: str, files: tuple[RawFile, ...]) -> Fit | Unfit:
        """Return what can be installed of ``files``, all of one version of ``project``."""
        if not files:
            return Unfit.NO_FILE
        files = self._allowed(project, files)
        if not files:
            return Unfit.OTHER_HASHES
        ranked = [(rank, file) for file in files if (rank := self._rank(file)) is not None]
        old_enough = [(rank, file) for rank, file in ranked if self._is_old_enough(file)]
        fitting = [(rank, file) for rank, file in old_enough if self.supports(file[5])]
        if fitting:
            fitting.sort(key=lambda it: it[1][0])
            fitting.sort(key=lambda it: _build(it[1][0]), reverse=True)
            fitting.sort(key=lambda it: it[0])
            ordered = tuple(file for _, file in fitting)
            return Fit(ordered[0], ordered, all(file[6] is not None for file in ordered))
        if old_enough:
            return Unfit.OTHER_PYTHON
        return Unfit.TOO_NEW if ranked else self._unfit(files)

    def _unfit(self, files: tuple[RawFile, ...]) -> Unfit:
        """Why none of ``files`` is a wheel for the tags of the target. Those of other platforms are no reason."""
        if self.needed_glibc(files) is not None:
            return Unfit.NEWER_GLIBC
        if all(file[0].endswith(".whl") for file in files) or any(map(self.is_for_another_python, files)):
            return Unfit.OTHER_PLATFORM
        return Unfit.SOURCE_ONLY

    def needed_glibc(self, files: Iterable[RawFile]) -> LibcVersion | None:
        """Return the oldest glibc with which one of the wheels in ``files`` can be installed, or None if none can."""
        wheels = (file[0] for file in files if file[0].endswith(".whl") and self.supports(file[5]))
        return min((it for wheel in wheels if (it := self._ranks.needed_glibc(wheel)) is not None), default=None)

    def of_source(self, project: str, files: tuple[RawFile, ...]) -> Fit | Unfit:
        """Return what can be built of ``files``."""
        if project in self.wanted.wheels_only:
            return Unfit.SOURCE_ONLY
        files, there = self._allowed(project, files), bool(files)
        if there and not files:
            return Unfit.OTHER_HASHES
        if self.wanted.sources is not Sources.ANY and any(map(self.is_for_another_python, files)):
            return Unfit.OTHER_PLATFORM
        if self.wanted.sources is not Sources.ANY and self.needed_glibc(files) is not None:
            return Unfit.NEWER_GLIBC
        sources = [file for file in files if not file[0].endswith(".whl") and self._is_old_enough(file)]
        fitting = tuple(sorted((file for file in sources if self.supports(file[5])), reverse=True))
        return Fit(fitting[0], fitting, fitting[0][6] is not None) if fitting else Unfit.SOURCE_ONLY

    def _allowed(self, project: str, files: tuple[RawFile, ...]) -> tuple[RawFile, ...]:
        """The files with a required hash, or all if no hash is required."""
        allowed = self.wanted.hashes.get(project)
        return files if allowed is None else tuple(file for file in files if not allowed.isdisjoint(file[2]))

    def supports(self, requires_python: str | None) -> bool:
        """Whether the target's Python is in a range such as ``>=3.9``. An invalid range excludes nothing."""
        text = requires_python or ""
        if text not in self._supports:
            try:
                self._supports[text] = SpecifierSet(text).contains(self._python, prereleases=True)
            except ValueError:
                self._supports[text] = True
        return self._supports[text]

    def is_for_another_python(self, file: RawFile) -> bool:
        """Whether a file is a wheel for this platform and for some Python 3."""
        return file[0].endswith(".whl") and self._ranks.fits_another_python(file[0])

    def _rank(self, file: RawFile) -> int | None:
        return self._ranks.of_wheel(file[0]) if file[0].endswith(".whl") else None

    def _is_old_enough(self, file: RawFile) -> bool:
        """Whether a file is older than the limit. A file without an upload time may be too new."""
        limit = self.wanted.newest_upload
        return limit is None or (file[4] is not None and _moment(file[4]) <= _moment(limit))


def _build(file_name: str) -> tuple[int, str]:
    """The build tag of a wheel. The highest is preferred, and no tag is lower than any."""
    _, _, *tag, _, _, _ = file_name.split("-")
    digits = re.match(r"\d*", tag[0] if tag else "")
    assert digits is not None
    return int(digits[0] or -1), tag[0][digits.end() :] if tag else ""


def _moment(text: str) -> float:
    from datetime import datetime

    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return float("inf")


class Releases:
    """The versions of ``project`` for one target."""

    __slots__ = ("_fits", "_fitting", "_has_final", "_masks", "_order", "_parsed", "_source_fits", "project")

    def __init__(self, project: Project, fitting: Fitting) -> None:
        self.project = project
        self._fitting = fitting
        self._fits: dict[int, Fit | Unfit] = {}
        self._has_final: bool | None = None
        self._source_fits: dict[int, Fit | Unfit] = {}
        self._masks: dict[str, int] = {"": (1 << len(project.versions)) - 1}
        self._parsed = [it for it in map(parsed_version, project.versions) if it is not None]
        self._order: list[int] | None = None

    def mask(self, specifier: str) -> int:
        """Return the versions in ``specifier``, pre-releases included. Raises ValueError if it is not a specifier."""
        known = self._masks.get(specifier)
        if known is None:
            known = self._masks[specifier] = self._worked_out(specifier)
        return known

    def position(self, version: str) -> int | None:
        """Return the position of ``version``, however it is spelled, or None."""
        wanted = parsed_version(version)
        place = 0 if wanted is None else bisect_left(self._parsed, wanted)
        return place if self._parsed[place : place + 1] == [wanted] else None

    def version(self, position: int) -> str:
        """Return the version at ``position`` as the index writes it; "" if only a build could report it."""
        return self.project.versions[position]

    def first(self, version: str) -> int:
        """Return the first position that is not older than ``version``, whatever its local label."""
        wanted = parsed_version(version.partition("+")[0])
        return 0 if wanted is None else bisect_left(self._parsed, wanted)

    def fit(self, position: int) -> Fit | Unfit:
        """Return which wheels of the version at ``position`` can be installed."""
        found = self._fits.get(position)
        if found is None:
            found = self._fits[position] = self._fitting.of(self.project.name, self.project.files(position))
        return found

    def source_fit(self, position: int) -> Fit | Unfit:
        """Return which source of the version at ``position`` can be built."""
        found = self._source_fits.get(position)
        if found is None:
            files = self.project.files(position)
            found = self._source_fits[position] = self._fitting.of_source(self.project.name, files)
        return found

    def wheel_for_another_python(self, version: str) -> RawFile | None:
        """Return a wheel of ``version`` for the target's platform and some Python 3, or None."""
        position = self.position(version)
        files = () if position is None else self.project.files(position)
        return next(filter(self._fitting.is_for_another_python, files), None)

    def is_prerelease(self, position: int) -> bool:
        """Whether the version at ``position`` is a pre-release."""
        return self._parsed[position].is_prerelease

    @property
    def has_final(self) -> bool:
        """Whether any version is a final release."""
        if self._has_final is None:
            self._has_final = not all(map(self.is_prerelease, range(len(self.project.versions))))
        return self._has_final

    @property
    def own(self) -> int:
        """The versions that are on an index, and not elsewhere (see envsolve.index.extended)."""
        return self.mask("") if not isinstance(self.project, ExtendedProject) else self._own_of(self.project)

    def _own_of(self, project: ExtendedProject) -> int:
        return sum(1 << it for it, version in enumerate(project.versions) if not project.is_elsewhere(version))

    def newest_first(self, mask: int) -> Iterator[int]:
        """Yield the positions in ``mask``, the newest version first; of its builds, those on other indexes last.

        So that a build on another index is only looked up if there is no other.
        """
        own = self.own
        if not mask & ~own:
            return descending(mask)
        if self._order is None:
            versions, every = self.project.versions, descending(self.mask(""))
            self._order = sorted(every, key=lambda it: (self.first(versions[it]), own >> it & 1), reverse=True)
        return (it for it in self._order if mask >> it & 1)

    def newest(self, mask: int, *, prereleases: bool = False, source: bool = False) -> int | None:
        """Return the newest version in ``mask`` that is not yanked and can be installed.

        A pre-release is returned only with ``prereleases`` or if there is nothing else. With ``source``, it is the
        newest that can be built.
        """
        for wanted in (None,) if prereleases or not self.has_final else (False,):
            for position in self.newest_first(mask):
                if wanted is not None and self.is_prerelease(position) is not wanted:
                    continue
                fit = self.source_fit(position) if source else self.fit(position)
                if isinstance(fit, Fit) and not fit.is_yanked:
                    return position
        return None

    def newest_is_source(self, mask: int) -> bool:
        """Whether the newest final version in ``mask`` has only a source distribution that counts."""
        if self.project.name in self._fitting.wanted.wheels_only:
            return False
        newest = next((it for it in self.newest_first(mask) if not self.is_prerelease(it)), None)
        return newest is not None and self.fit(newest) is Unfit.SOURCE_ONLY

    def _worked_out(self, specifier: str) -> int:
        by_text = "===" in specifier
        versions: Sequence[Version | str] = self.project.versions if by_text else self._parsed
        admitted = specifier_of(specifier)
        found = admitted.filter(range(len(versions)), prereleases=True, key=versions.__getitem__)
        return sum(1 << position for position in found)


class DirectReleases(Releases):
    """The one version at the address of a requirement. Source is as good as a wheel, and its age does not count.

    If only a build could report the version, it meets every requirement.
    """

    __slots__ = ("_direct",)

    def __init__(self, project: Project, fitting: Fitting, direct: Direct) -> None:
        super().__init__(project, fitting)
        self._direct = direct

    def version(self, position: int) -> str:
        """See Releases."""
        return self._direct.version

    def fit(self, position: int) -> Fit | Unfit:
        """See Releases."""
        if self._direct.file.is_wheel:
            return super().fit(position)
        (file,) = self.project.files(0)
        supports = self._fitting.supports(self._direct.file.requires_python)
        return Fit(file, (file,), is_yanked=False) if supports else Unfit.OTHER_PYTHON

    def _worked_out(self, specifier: str) -> int:
        return super()._worked_out(specifier) if self._direct.version else self.mask("")


def descending(mask: int) -> Iterator[int]:
    """Yield the positions in ``mask``, the highest first."""
    while mask:
        position = mask.bit_length() - 1
        yield position
        mask &= ~(1 << position)
