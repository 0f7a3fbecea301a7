"""What every framework's reader gives: rows of the matrix, each with the wheels it was read from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from packaging.version import Version

from envsolve.releases.wheels import Listing, WheelFile

Observation = dict[str, list[str]]
"""What a reader saw in one wheel, by name of the fact; ``read`` lists the members it looked into."""
Read = Callable[[WheelFile], Observation]
Value = str | list[str] | dict[str, str] | None
"""A field as TOML holds it; None says that the wheel was looked at and has no such thing."""


class ReadEvidence(NamedTuple):
    """A wheel that a row was read from, or what else; ``kind`` is one of EvidenceKind."""

    name: str
    reference: str
    sha256: str | None
    kind: str = "wheel"


class ReadRow(NamedTuple):
    """One ``[[release]]`` as its wheels have it.

    ``values`` are what the bytes say and win over the file; ``defaults`` follow from convention and only fill what the
    file leaves open.
    """

    values: Mapping[str, Value]
    defaults: Mapping[str, Value]
    evidence: tuple[ReadEvidence, ...]

    @property
    def key(self) -> tuple[str, ...]:
        """What names the row in its file."""
        return tuple(str(self.values[name]) for name in KEY)


KEY = ("version", "source", "platform", "build", "package")


class OpenWheel(Protocol):
    """A wheel that is open for reading. Its methods raise ReleaseError where bytes do not come or are no wheel."""

    file: WheelFile

    @property
    def members(self) -> Sequence[str]:
        """The names of all members."""

    def find(self, ending: str) -> str | None:
        """The member whose path ends with ``ending``; the shortest of several; None if there is none."""

    def may_read_deep(self) -> bool:
        """Whether libraries of hundreds of MB may be read; where not, the wheel counts as not fully read."""

    def text(self, ending: str) -> str | None:
        """The text of the member that ends with ``ending``, or None if there is none."""

    def content(self, member: str) -> bytes:
        """The whole content of ``member``."""

    def chunks(self, member: str) -> Iterator[bytes]:
        """The content of ``member`` piece by piece; who stops early leaves the rest of it unread."""


class Reader(Protocol):
    """How one framework's releases are read.

    ``edition`` changes whenever :meth:`observe` looks for something else. ``oldest`` bounds the releases that the
    matrix holds. ``projects`` are the names on the index; releases are the versions of ``releases_of``. ``name`` is
    what a maintainer types, ``endpoints`` the indexes it reads where they are not the default one.
    """

    name: str
    endpoints: tuple[str, ...]
    framework: str
    source: str
    edition: str
    oldest: Version
    projects: tuple[str, ...]
    releases_of: tuple[str, ...]

    def observe(self, wheel: OpenWheel) -> Observation:
        """What the matrix needs of one wheel."""

    def rows(self, version: Version, listing: Listing, read: Read) -> Iterable[ReadRow]:
        """The rows of one release; ``read`` observes a wheel, from the cache or from the index."""


def evidence_of(file: WheelFile, observation: Observation, *, build: str = "") -> ReadEvidence:
    """The evidence for what was read of one wheel; ``build`` keeps variants of one release apart."""
    parts = [file.project, str(file.version), build, file.platform or ""]
    name = "-".join(part.replace(".", "-").replace("+", "-") for part in parts if part)
    members = [member.removeprefix(_folder(file)) for member in observation["read"]]
    short = ["METADATA" if member.endswith(".dist-info/METADATA") else member for member in members]
    return ReadEvidence(name, f"{file.filename}: {', '.join(short)}", file.sha256)


def _folder(file: WheelFile) -> str:
    """Where wheels of old keep their packages."""
    name, version = file.filename.split("-")[:2]
    return f"{name}-{version}.data/purelib/"


def first(observation: Observation, fact: str) -> str | None:
    """The only value of a fact, or None if the wheel does not hold it."""
    values = observation.get(fact)
    return values[0] if values else None


def highest(tagged: str | None, needed: str | None) -> str | None:
    """The glibc of the tag, or the one a library asks for where that is more: old tags promise 2.5 and do not hold."""
    return max((floor for floor in (tagged, needed) if floor is not None), key=Version, default=None)
