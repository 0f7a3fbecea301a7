"""A project's wheels on an index, in the terms of the matrix: platforms, Python minors, glibc floors."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from packaging.tags import Tag
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

_LEGACY_GLIBC = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}
"""PEP 600: the meaning of the older names."""
_MANYLINUX = re.compile(r"((?:many)?linux(?:1|2010|2014|_(\d+)_(\d+))?)_(x86_64|aarch64)")
"""``linux_x86_64``, which PyTorch's own index uses, promises nothing about glibc."""
_MACOS = re.compile(r"macosx_\d+_\d+_(arm64|x86_64|universal2|intel)")
_FILE_NAME = re.compile(r"[\w.+!-]{1,220}", re.ASCII)
"""No path separators: the name is part of a file name in the cache, whatever an index sends."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LINUX = {"x86_64": "linux-64", "aarch64": "linux-aarch64"}


class WheelFile(NamedTuple):
    """A wheel that an index lists.

    ``pythons`` are the CPython minors of its tags; empty for a wheel for any Python 3 (``py3``, stable ABI).
    ``platform`` is None for a wheel for any platform. A wheel for several platforms is listed once for each.
    """

    project: str
    version: Version
    filename: str
    url: str
    sha256: str | None
    platform: str | None
    pythons: tuple[str, ...]
    glibc: str | None


class Listing:
    """The wheels of several projects, without pre-releases, yanked files and free-threaded builds."""

    def __init__(self, wheels: Iterable[WheelFile]) -> None:
        self._wheels: dict[tuple[str, Version], list[WheelFile]] = defaultdict(list)
        for wheel in wheels:
            self._wheels[wheel.project, wheel.version].append(wheel)

    def on(self, platforms: Collection[str]) -> Listing:
        """Return those for ``platforms`` and those for any."""
        every = (wheel for of_release in self._wheels.values() for wheel in of_release)
        return Listing(it for it in every if it.platform is None or it.platform in platforms)

    def versions(self, project: str) -> list[Version]:
        """Return the versions of ``project`` with wheels, newest first."""
        return sorted({version for name, version in self._wheels if name == project}, reverse=True)

    def wheels(self, project: str, version: Version, platform: str | None = None) -> list[WheelFile]:
        """Return the wheels of one release for one platform or all, newest Python first.

        Of several for one Python, the one that pip prefers comes first: for the newer C library, then by build tag.
        """
        found = self._wheels.get((project, version), [])
        chosen = [wheel for wheel in found if platform is None or wheel.platform == platform]
        return sorted(chosen, key=_preference, reverse=True)

    def platforms(self, project: str, version: Version) -> list[str]:
        """Return the platforms of one release's wheels, sorted."""
        return sorted({wheel.platform for wheel in self.wheels(project, version) if wheel.platform is not None})


def pythons_of(wheels: Iterable[WheelFile]) -> list[str]:
    """Return the CPython minors of ``wheels``, oldest first."""
    return sorted({python for wheel in wheels for python in wheel.pythons}, key=_minor)


def glibc_of(wheels: Iterable[WheelFile]) -> str | None:
    """Return the lowest C library with which every Python has a wheel: the highest floor among the Pythons."""
    floors: dict[str, list[str]] = defaultdict(list)
    for wheel in wheels:
        for python in wheel.pythons or ("any",):
            if wheel.glibc is not None:
                floors[python].append(wheel.glibc)
    return max((min(of_python, key=Version) for of_python in floors.values()), key=Version, default=None)


def wheel_files(project: str, filename: str, url: str, sha256: str | None) -> Iterator[WheelFile]:
    """Yield a file for each platform; none for pre-releases, free-threaded Pythons and PyPy.

    A hash other than SHA-256 counts as none.
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
    """Whether a tag is for a CPython, or any Python 3, with its ordinary ABI."""
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
    """Newest Python first, then pip's preference among its wheels, then the name."""
    _, _, build, _ = parse_wheel_filename(wheel.filename)
    return max(map(_minor, wheel.pythons), default=()), Version(wheel.glibc or "0"), build, wheel.filename
