"""A lock as a value: what is installed, file by file, and what that choice rests on.

Every format is read into one and written from one. Not every format can hold all of it: ``HOLDS`` says what each does,
and ``read(write(lock)) == lock.restricted_to(format)``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from envsolve.boundary.display import one_line
from envsolve.index.page import version_of
from envsolve.lockfile.sound_pins import STRONG, sound_url
from envsolve.model.names import is_name, normalized
from envsolve.model.package import PackageFile, Pin


class Content(StrEnum):
    """What some formats hold and others do not, in words for the documentation."""

    ADDRESSES = "the names, addresses, sizes and upload times of files"
    REQUIREMENTS = "what each package requires"
    PYTHONS = "which versions of Python each package is for"
    DEFAULT_INDEX = "which index is asked where a package names none, and in which order the others are"


HOLDS: Mapping[str, frozenset[Content]] = {
    "requirements": frozenset({Content.DEFAULT_INDEX}),
    "dockerfile": frozenset({Content.DEFAULT_INDEX}),
    "pylock": frozenset({Content.ADDRESSES, Content.REQUIREMENTS, Content.PYTHONS}),
}
"""What the formats of a Python lock hold beside names, versions, digests, markers, reasons and :class:`Made`."""


class LockedFramework(NamedTuple):
    """One framework of a stack: its name in envsolve, and its version, package, source and build in the matrix."""

    framework: str
    version: str
    package: str
    source: str
    build: str


class Stack(NamedTuple):
    """The frameworks that a lock is built around, and what they need of a machine.

    ``capabilities`` are the compute capabilities that it was made for, () for the CPU. ``machines`` says in words which
    machines those are. What the CPU does without is None.
    """

    frameworks: tuple[LockedFramework, ...]
    capabilities: tuple[str, ...] = ()
    minimum_driver: str | None = None
    cuda: str | None = None
    cudnn: str | None = None
    machines: str = ""


class Made(NamedTuple):
    """How envsolve came to a lock: its version, the command, and what shaped the answer beside the indexes.

    ``request`` are the requirements as asked for, ``exclude_newer`` the moment after which uploads do not count.
    ``matrix_date`` is that of the compatibility matrix, None where no framework was asked for; ``own_matrix`` says that
    it is not the one that envsolve ships.
    """

    envsolve_version: str
    command: str = ""
    request: tuple[str, ...] = ()
    matrix_date: str | None = None
    own_matrix: bool = False
    exclude_newer: str | None = None
    notes: tuple[str, ...] = ()


class Open(NamedTuple):
    """An entry that leaves something to be decided, which ``reason`` says; ``name`` is None where it tells none."""

    reason: str
    name: str | None = None


class Lock(NamedTuple):
    """A lock of Python packages.

    ``pins`` are sorted by name; a name may come more than once, under different markers. Of a pin ``index_url`` is ""
    where the lock does not say which index it is from. ``python`` is the full version ``3.11.7`` and ``glibc`` the
    newest that may be needed, where the lock says so. ``made`` and ``stack`` are None for a lock of another tool, and
    ``stack`` where no framework was asked for.

    ``default_index`` is where a package comes from that says nothing else, and ``default_is_plain`` says that an
    installer looks there without being told; ``indexes`` are those beside it, in their order. ``requires_python`` is
    what another tool's lock says of its Pythons. ``exported_from`` is the name of the file that it was read from before
    it was written as this one. ``open`` is what the file leaves open, so that it is no whole lock.
    """

    pins: tuple[Pin, ...]
    platform: str = ""
    python: str = ""
    glibc: str | None = None
    stack: Stack | None = None
    made: Made | None = None
    default_index: str = ""
    default_is_plain: bool = True
    indexes: tuple[str, ...] = ()
    requires_python: str = ""
    exported_from: str | None = None
    open: tuple[Open, ...] = ()

    @property
    def versions(self) -> dict[str, str]:
        """The version of each package, by name."""
        return {pin.name: pin.version for pin in self.pins}

    def restricted_to(self, format_name: str) -> Lock:
        """What a file in one of the formats of ``HOLDS`` says of this lock."""
        holds = HOLDS[format_name]
        plain = Content.DEFAULT_INDEX in holds and self.default_is_plain
        pins = (_restricted(pin, holds, self.default_index if plain else None) for pin in sorted_pins(self.pins))
        lock = self._replace(pins=tuple(pins))
        if Content.DEFAULT_INDEX not in holds:
            return lock._replace(default_index="", default_is_plain=True, indexes=())
        lock = lock._replace(default_index="" if plain else self.default_index)
        return lock if Content.PYTHONS in holds else lock._replace(requires_python="")

    def with_requirers(self) -> Lock:
        """The same with ``via`` and ``requires`` of its pins each completed by the other.

        Some formats say what a package requires, others what requires a package.
        """
        names = {pin.name for pin in self.pins}
        requires: dict[str, set[str]] = {name: set() for name in names}
        via: dict[str, set[str]] = {name: set() for name in names}
        for pin in self.pins:
            for name in names.intersection(pin.requires):
                via[name].add(pin.name)
            words = (source.partition("[")[0] for source in pin.via)
            for name in names.intersection(normalized(word) for word in words if is_name(word)):
                requires[name].add(pin.name)
        pins = (
            pin._replace(
                requires=tuple(sorted(requires[pin.name].union(pin.requires))),
                via=pin.via or tuple(sorted(via[pin.name])),
            )
            for pin in self.pins
        )
        return self._replace(pins=tuple(pins))


def sorted_pins(pins: Iterable[Pin]) -> list[Pin]:
    """``pins`` in the order of every lock: by name, those of one name as they are."""
    return sorted(pins, key=lambda pin: pin.name)


def strong_digests(pin: Pin) -> tuple[str, ...]:
    """The digests of all files of ``pin`` that prove what they are, as ``sha256:0a...``, sorted."""
    files = pin.files if pin.index_url is not None else pin.files[:1]
    return tuple(sorted({f"{kind}:{digest}" for file in files for kind, digest in file.hashes if kind in STRONG}))


def bare_files(digests: Iterable[str]) -> tuple[PackageFile, ...]:
    """Files of which no more than a digest is known, ``sha256:0a...``, each once and sorted."""
    split = (it.partition(":") for it in sorted(set(digests)))
    return tuple(PackageFile("", "", ((kind, digest),)) for kind, _, digest in split)


def moment(text: str) -> str | None:
    """A moment as RFC 3339 has it, in UTC; None for what is none, as nothing depends on it."""
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            return None
        return found.astimezone(UTC).isoformat()[: -len("+00:00")] + "Z"
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=64)
def is_specifier(versions: str) -> bool:
    """Whether ``versions`` is a range: old packages say ``>=2.7.*``, for which readers refuse a whole pylock.toml."""
    try:
        return bool(SpecifierSet(versions))
    except InvalidSpecifier:
        return False


def file_name_in(url: str) -> str:
    """The last part of the path of an address."""
    return url.partition("#")[0].partition("?")[0].rpartition("/")[2]


def version_in(name: str, url: str) -> str:
    """The version in the address of a file of ``name``; "" where it says none."""
    return version_of(name, file_name_in(url)) or ""


def _restricted(pin: Pin, holds: Collection[Content], unsaid_index: str | None) -> Pin:
    keeps_pythons = Content.PYTHONS in holds
    pin = pin._replace(
        via=tuple(sorted({one_line(it) for it in pin.via})),
        because=tuple(map(one_line, pin.because)),
        requires=tuple(sorted(pin.requires)) if Content.REQUIREMENTS in holds else (),
        requires_python=pin.requires_python if keeps_pythons and is_specifier(pin.requires_python or "") else None,
        unknown_extras=(),
    )
    if pin.index_url is None:
        return _direct(pin, holds)
    files = tuple(_files(pin)) if Content.ADDRESSES in holds else bare_files(strong_digests(pin))
    return pin._replace(files=files, index_url="" if pin.index_url == unsaid_index else sound_url(pin.index_url))


def _direct(pin: Pin, holds: Collection[Content]) -> Pin:
    """A package that is given by its address, which every format holds; the version of a wheel's not every one."""
    url = sound_url(pin.files[0].url)
    file = _file(pin.files[0])._replace(name=file_name_in(url))
    if Content.ADDRESSES in holds:
        return pin._replace(files=(file,), version=pin.version if file.is_wheel else version_in(pin.name, url))
    bare = file._replace(size=None, upload_time=None)
    return pin._replace(files=(bare,), version=version_in(pin.name, url))


def _files(pin: Pin) -> Iterator[PackageFile]:
    """Wheels, then the one source distribution that a pylock.toml has room for."""
    sdists = [file for file in pin.files if not file.is_wheel]
    yield from map(_file, (*(it for it in pin.files if it.is_wheel), *sdists[:1]))


def _file(file: PackageFile) -> PackageFile:
    uploaded = None if file.upload_time is None else moment(file.upload_time)
    hashes = tuple(sorted((kind, digest) for kind, digest in file.hashes if kind in STRONG))
    return PackageFile(file.name, sound_url(file.url), hashes, file.size, uploaded)
