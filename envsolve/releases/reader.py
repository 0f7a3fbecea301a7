"""The interface of a framework's reader: rows of the matrix, each with the wheels it was read from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from packaging.version import Version

from envsolve.releases.requirements import CudaReleases, header
from envsolve.releases.wheels import Listing, WheelFile, glibc_of, pythons_of

Observation = dict[str, list[str]]
"""The facts read from one wheel, by name. ``read`` lists the members that were read."""
Read = Callable[[WheelFile], Observation]
Value = str | list[str] | dict[str, str] | None
"""A field as in TOML. None means that the wheel was read and does not have the field."""


class ReadEvidence(NamedTuple):
    """A wheel or another source that a row was read from. ``kind`` is one of EvidenceKind."""

    name: str
    reference: str
    sha256: str | None
    kind: str = "wheel"


class ReadRow(NamedTuple):
    """A ``[[release]]`` row as read from its wheels.

    ``values`` are read from the files and replace those in the matrix file. ``defaults`` follow from convention, and
    only fill what the matrix file leaves open.
    """

    values: Mapping[str, Value]
    defaults: Mapping[str, Value]
    evidence: tuple[ReadEvidence, ...]

    @property
    def key(self) -> tuple[str, ...]:
        """The values that identify the row in its file."""
        return tuple(str(self.values[name]) for name in KEY)


KEY = ("version", "source", "platform", "build", "package")


class OpenWheel(Protocol):
    """A wheel that is open for reading. Methods raise ReleaseError if bytes cannot be read or are not a wheel."""

    file: WheelFile

    @property
    def members(self) -> Sequence[str]:
        """Return the names of all members."""

    def find(self, ending: str) -> str | None:
        """Return the member whose path ends with ``ending``, the shortest if several do, or None."""

    def may_read_deep(self) -> bool:
        """Whether libraries of hundreds of MB may be read. If not, the wheel counts as not fully read."""

    def text(self, ending: str) -> str | None:
        """Return the text of the member that ends with ``ending``, or None if there is none."""

    def content(self, member: str) -> bytes:
        """Return the whole content of ``member``."""

    def chunks(self, member: str) -> Iterator[bytes]:
        """Yield the content of ``member`` in pieces. If the caller stops early, the rest is not read."""


class Reader(ABC):
    """How one framework's releases are read.

    ``edition`` changes whenever :meth:`observe` looks for something else. ``oldest`` is the oldest release in the
    matrix. The versions of the projects ``releases_of`` are the releases; those ``beside`` are read as well. ``name``
    is what a maintainer types, ``endpoints`` are the indexes to read if not the default one.
    """

    name: str
    framework: str
    edition: str
    oldest: Version
    releases_of: tuple[str, ...]
    beside: tuple[str, ...] = ()
    endpoints: tuple[str, ...] = ()
    source: str = "pypi"

    def __init__(self, cuda_releases: CudaReleases) -> None:
        self._cuda_releases = cuda_releases

    @property
    def projects(self) -> tuple[str, ...]:
        """Every project to read, by its name on the index."""
        return (*self.releases_of, *self.beside)

    @abstractmethod
    def observe(self, wheel: OpenWheel) -> Observation:
        """Return what the matrix needs of one wheel."""

    @abstractmethod
    def rows(self, version: Version, listing: Listing, read: Read) -> Iterator[ReadRow]:
        """Yield the rows of one release. ``read`` observes a wheel, from the cache or from the index."""

    def values(self, wheels: list[WheelFile], build: str, seen: Observation) -> dict[str, Value]:
        """Return the fields that every row has: names, Pythons and glibc."""
        file = wheels[0]
        return {
            "version": str(file.version),
            "source": self.source,
            "platform": file.platform,
            "build": build,
            "package": file.project,
            "pythons": pythons_of(wheels),
            "glibc": _highest(glibc_of(wheels), first(seen, "glibc")),
        }


class ReaderOfSingleWheels(Reader):
    """Reads a framework whose wheels each are a build of it: a row for every platform of each project."""

    def rows(self, version: Version, listing: Listing, read: Read) -> Iterator[ReadRow]:
        """Yield the rows of one release."""
        for project in self.releases_of:
            for platform in listing.platforms(project, version):
                wheels = listing.wheels(project, version, platform)
                yield self.row(wheels, read(wheels[0]))

    @abstractmethod
    def row(self, wheels: list[WheelFile], seen: Observation) -> ReadRow:
        """Return the row of one release on one platform. ``wheels`` are those for all Pythons."""


def requirements_of(wheel: OpenWheel) -> Observation:
    """Return the lines of Requires-Dist in the metadata of a wheel."""
    return {"requires": header(wheel.text(".dist-info/METADATA") or "", "Requires-Dist")}


def code_of(seen: Observation) -> dict[str, Value]:
    """Return the fields of the machine code and the PTX that were seen; none if they were not read."""
    return {"sass": seen["sass"], "ptx": seen["ptx"] or None} if "sass" in seen else {}


def evidence_of(file: WheelFile, observation: Observation, *, build: str = "") -> ReadEvidence:
    """Return the evidence for what was read of one wheel. ``build`` separates variants of one release."""
    parts = [file.project, str(file.version), build, file.platform or ""]
    name = "-".join(part.replace(".", "-").replace("+", "-") for part in parts if part)
    members = [member.removeprefix(_folder(file)) for member in observation["read"]]
    short = ["METADATA" if member.endswith(".dist-info/METADATA") else member for member in members]
    return ReadEvidence(name, f"{file.filename}: {', '.join(short)}", file.sha256)


def _folder(file: WheelFile) -> str:
    """The directory of packages in old wheels."""
    name, version = file.filename.split("-")[:2]
    return f"{name}-{version}.data/purelib/"


def first(observation: Observation, fact: str) -> str | None:
    """Return the only value of a fact, or None if the wheel does not have it."""
    values = observation.get(fact)
    return values[0] if values else None


def _highest(tagged: str | None, needed: str | None) -> str | None:
    """Return the glibc of the tag, or of a library if it requires more, because old tags promise 2.5 and break it."""
    return max((floor for floor in (tagged, needed) if floor is not None), key=Version, default=None)
