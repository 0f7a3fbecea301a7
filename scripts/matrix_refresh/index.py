"""Which wheels a package index lists, in the words of the matrix: platforms, Python minors, glibc floors."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC
from pathlib import Path
from typing import NamedTuple, TypeGuard

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version
from pypi_simple import (
    NoSuchProjectError,
    ProjectPage,
    PyPISimple,
    UnsupportedContentTypeError,
    UnsupportedRepoVersionError,
)
from requests import RequestException, Session

from scripts.matrix_refresh.cache import keep, kept
from scripts.matrix_refresh.errors import RefreshError, without_credentials

_LEGACY_GLIBC = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}
"""PEP 600: what the older names stand for."""
_MANYLINUX = re.compile(r"((?:many)?linux(?:1|2010|2014|_(\d+)_(\d+))?)_(x86_64|aarch64)")
"""``linux_x86_64`` alone, which PyTorch's own index has, promises nothing about glibc."""
_MACOS = re.compile(r"macosx_\d+_\d+_(arm64|x86_64|universal2|intel)")
_TIMEOUT = 60.0
_FILE_NAME = re.compile(r"[\w.+!-]{1,220}", re.ASCII)
"""No separator of paths: the name is part of a file's name in the cache, whatever an index sends."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_Listed = tuple[str, str, str | None]
"""Name, URL and SHA-256 of a file."""
_Listing = tuple[list[_Listed], dict[str, str]]
"""The wheels of a project, and the day (UTC) on which the first file of each version was uploaded, where known."""
_LINUX = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}


class WheelFile(NamedTuple):
    """One wheel that an index lists.

    ``pythons`` are the CPython minors of its tags; empty for a wheel of any Python 3 (``py3``, stable ABI).
    ``platform`` is None for a wheel of any platform; a wheel for several platforms stands on the shelf once for each.
    """

    project: str
    version: Version
    filename: str
    url: str
    sha256: str | None
    platform: str | None
    pythons: tuple[str, ...]
    glibc: str | None


class Shelf:
    """The wheels of several projects; pre-releases, withdrawn files and free-threaded builds are left out."""

    def __init__(self, wheels: Iterable[WheelFile]) -> None:
        self._wheels: dict[tuple[str, Version], list[WheelFile]] = defaultdict(list)
        for wheel in wheels:
            self._wheels[wheel.project, wheel.version].append(wheel)

    def versions(self, project: str) -> list[Version]:
        """The versions of ``project`` that have wheels, newest first."""
        return sorted({version for name, version in self._wheels if name == project}, reverse=True)

    def wheels(self, project: str, version: Version, platform: str | None = None) -> list[WheelFile]:
        """The wheels of one release, newest Python first; of one platform, or of all.

        Of several for one Python the one that pip prefers comes first: for the newer C library, then by build tag.
        """
        found = self._wheels.get((project, version), [])
        chosen = [wheel for wheel in found if platform is None or wheel.platform == platform]
        return sorted(chosen, key=_preference, reverse=True)

    def platforms(self, project: str, version: Version) -> list[str]:
        """The platforms one release has wheels for, sorted."""
        return sorted({wheel.platform for wheel in self.wheels(project, version) if wheel.platform is not None})


class ShuffledShelf(Shelf):
    """A shelf that hands out the wheels of a release in an order of chance: any of them may speak for the release.

    The same ``seed`` gives the same order, whoever asks first.
    """

    def __init__(self, wheels: Iterable[WheelFile], seed: int) -> None:
        super().__init__(wheels)
        self._seed = seed

    def wheels(self, project: str, version: Version, platform: str | None = None) -> list[WheelFile]:
        """The wheels of one release in an order of chance; of one platform, or of all."""
        found = super().wheels(project, version, platform)
        chance = random.Random(f"{self._seed} {project} {version} {platform}")  # noqa: S311 - a sample, no secret
        return chance.sample(found, len(found))


def pythons_of(wheels: Iterable[WheelFile]) -> list[str]:
    """The CPython minors that ``wheels`` were shipped for, oldest first."""
    return sorted({python for wheel in wheels for python in wheel.pythons}, key=_minor)


def glibc_of(wheels: Iterable[WheelFile]) -> str | None:
    """The lowest C library that some wheel of each Python runs on: the highest floor among the Pythons."""
    floors: dict[str, list[str]] = defaultdict(list)
    for wheel in wheels:
        for python in wheel.pythons or ("any",):
            if wheel.glibc is not None:
                floors[python].append(wheel.glibc)
    return max((min(of_python, key=Version) for of_python in floors.values()), key=Version, default=None)


class Index:
    """A package index (PEP 503 or PEP 691); listings are kept under ``cache`` and alone used when ``offline``.

    A password belongs into ``session``, not into ``endpoint``: it would not be used.
    """

    def __init__(self, endpoint: str, cache: Path, session: Session, *, offline: bool) -> None:
        endpoint = without_credentials(endpoint)
        self._endpoint = endpoint
        self._cache = cache / "listings" / re.sub(r"[^a-z0-9.]+", "-", endpoint.lower()).strip("-.")
        self._session = session
        self._offline = offline
        self._listings: dict[str, _Listing] = {}

    def wheels(self, project: str) -> list[WheelFile]:
        """Every wheel of ``project``. Raises RefreshError where the index, or offline the cache, does not answer."""
        files, _ = self._listing(project)
        return [wheel for name, url, sha256 in files for wheel in _wheel_files(project, name, url, sha256)]

    def released(self, project: str) -> dict[str, str]:
        """The day (UTC) on which each version of ``project`` was released, as far as the index says. Errors as above.

        That is when its first file was uploaded, of whatever kind, even if it was withdrawn since.
        """
        return self._listing(project)[1]

    def _listing(self, project: str) -> _Listing:
        if project not in self._listings:
            path = self._cache / f"{project}.json"
            if self._offline:
                listed = kept(path)
                if not _is_listing(listed):
                    raise RefreshError(f"the list of {project} wheels is not in the cache: run once without --offline")
            else:
                listed = self._asked(project)
                keep(path, listed)
            self._listings[project] = listed
        return self._listings[project]

    def _asked(self, project: str) -> _Listing:
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


def _is_listing(kept: object) -> TypeGuard[_Listing]:
    """Whether a kept file holds a listing; anything else counts as not kept."""
    if not isinstance(kept, list) or [type(part) for part in kept] != [list, dict]:
        return False
    files, days = kept
    return all(isinstance(day, str) for day in days.values()) and all(
        isinstance(it, list)
        and [type(part) for part in it[:2]] == [str, str]
        and len(it) == 3  # noqa: PLR2004 - name, URL, hash
        and isinstance(it[2], str | None)
        for it in files
    )


def _wheel_files(project: str, filename: str, url: str, sha256: str | None) -> Iterator[WheelFile]:
    """One for each platform; none of what the matrix does not hold: pre-releases, free-threaded Pythons, PyPy.

    A hash of another form than SHA-256 counts as none.
    """
    if not _FILE_NAME.fullmatch(filename):
        return
    sha256 = sha256.lower() if sha256 is not None and _SHA256.fullmatch(sha256.lower()) else None
    try:
        _, version, _, tags = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return
    ours = [tag for tag in tags if _is_ours(tag)]
    if version.is_prerelease or not ours:
        return
    pythons = tuple(sorted({p for tag in ours if (p := _python(tag.interpreter, tag.abi))}, key=_minor))
    tagged: dict[str | None, list[str]] = defaultdict(list)
    for tag in {tag.platform for tag in ours}:
        for platform in _platforms(tag):
            tagged[platform].append(tag)
    for platform, names in tagged.items():
        glibc = min((floor for floor in map(_glibc, names) if floor is not None), key=Version, default=None)
        yield WheelFile(project, version, filename, url, sha256, platform, pythons, glibc)


def _is_ours(tag: Tag) -> bool:
    """Whether a tag names a CPython, or any Python 3, with its ordinary ABI."""
    if tag.interpreter.startswith("py3"):
        return True
    return tag.interpreter.startswith("cp") and not (tag.abi.startswith("cp") and tag.abi.endswith("t"))


def _platforms(tag: str) -> tuple[str | None, ...]:
    if tag == "any":
        return (None,)
    if match := _MANYLINUX.fullmatch(tag):
        return (_LINUX[match[4]],)
    if match := _MACOS.fullmatch(tag):
        return {"arm64": ("osx-arm64",), "universal2": ("osx-64", "osx-arm64")}.get(match[1], ("osx-64",))
    return ("win-64",) if tag == "win_amd64" else ()


def _glibc(tag: str) -> str | None:
    match = _MANYLINUX.fullmatch(tag)
    if match is None:
        return None
    return f"{match[2]}.{match[3]}" if match[2] else _LEGACY_GLIBC.get(match[1])


def _python(interpreter: str, abi: str) -> str | None:
    match = re.fullmatch(r"cp(\d)(\d+)", interpreter)
    return None if match is None or abi == "abi3" else f"{match[1]}.{match[2]}"


def _minor(python: str) -> tuple[int, ...]:
    return tuple(int(part) for part in python.split("."))


def _preference(wheel: WheelFile) -> tuple[object, ...]:
    """Newest Python first, then as pip chooses among its wheels, then by name."""
    _, _, build, _ = parse_wheel_filename(wheel.filename)
    return max(map(_minor, wheel.pythons), default=()), Version(wheel.glibc or "0"), build, wheel.filename
