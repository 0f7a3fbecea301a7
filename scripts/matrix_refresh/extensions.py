"""What the wheels of packages with kernels hold: the GPUs that these are compiled for, and the CUDA that they load.

Of each release one wheel for x86-64 Linux is read. Its libraries are read as a stream; one of hundreds of MB only up to
the first few hundred of its fat binaries, since a compiler writes the code of every source file for the same GPUs. A
library that a later release has unchanged (name, size, CRC) is not read again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from envsolve.app.wheel_facts import libraries_in, together
from envsolve.binary.fat_binary import DeviceTargets
from envsolve.binary.streamed_library import StreamedLibrary, read_stream
from envsolve.releases.reader import Observation, Read
from envsolve.releases.wheels import Listing, WheelFile
from scripts.matrix_refresh.errors import RefreshError
from scripts.matrix_refresh.wheel import Wheel

EDITION = "extensions-2"
PLATFORM = "linux-64"
_LARGE = 200 << 20
"""Bytes of a library, compressed, from which on it is not read to its end."""
_ENOUGH = 60
"""Fat binaries of such a library that are read."""
_BRINGS = re.compile(r"nvidia-(?:cuda-runtime|cublas|cuda-nvrtc|cudnn|npp|cufft)|cuda-toolkit")
"""Packages that bring CUDA: who requires them needs none from the stack."""


class Extension(NamedTuple):
    """A package with kernels, and the libraries in its wheels that are read."""

    package: str
    libraries: re.Pattern[str]

    @property
    def edition(self) -> str:
        """Under what is kept of its wheels: other libraries are read afresh."""
        return f"{EDITION}-{hashlib.sha256(self.libraries.pattern.encode()).hexdigest()[:8]}"


class Facts(NamedTuple):
    """What a wheel holds: its targets, and the major of the CUDA that it loads and does not bring along.

    ``cuda`` is None where it loads none, or libraries of several, of which it takes the one that is there.
    ``linked_cuda`` is the major of a CUDA runtime that is part of it.
    """

    targets: DeviceTargets
    cuda: str | None
    linked_cuda: str | None = None


class Row(NamedTuple):
    """Releases in a row that hold the same, the oldest first.

    ``is_first``: there are older releases, which were not read and are taken to hold the same as these.
    """

    versions: tuple[Version, ...]
    facts: Facts
    files: tuple[WheelFile, ...]
    is_first: bool = False


def extensions_in(document: Mapping[str, Mapping[str, str]]) -> dict[str, Extension]:
    """The packages of ``extensions.toml`` by their names."""
    return {name: Extension(name, re.compile(row.get("libraries", ".*"))) for name, row in document.items()}


class Observer:
    """Reads wheels of one package; what an unchanged library holds is remembered."""

    def __init__(self, extension: Extension) -> None:
        self._extension = extension
        self._known: dict[tuple[int, int], StreamedLibrary] = {}

    def __call__(self, wheel: Wheel) -> Observation:
        """The targets and the CUDA of one wheel."""
        names = [name for name in libraries_in(wheel.members) if self._extension.libraries.fullmatch(name)]
        found = together([self._library(name, wheel) for name in names], wheel.members)
        return {
            "libraries": names,
            "sass": list(found.sass),
            "ptx": list(found.ptx),
            "cuda": list(map(str, found.cuda)),
            "linked": [] if found.linked_cuda is None else [str(found.linked_cuda)],
            "brings": list(_brought(wheel.text(".dist-info/METADATA") or "")),
        }

    def _library(self, name: str, wheel: Wheel) -> StreamedLibrary:
        size, mark = wheel.size(name), wheel.checksum(name)
        if (size, mark) not in self._known:
            self._known[size, mark] = read_stream(wheel.chunks(name), enough=_ENOUGH if size > _LARGE else None)
        return self._known[size, mark]


def _brought(metadata: str) -> Iterator[str]:
    """The packages with CUDA that a wheel requires without an extra."""
    for line in metadata.splitlines():
        if line.startswith("Requires-Dist:") and "extra ==" not in line:
            try:
                name = canonicalize_name(Requirement(line.partition(":")[2].strip()).name)
            except InvalidRequirement:
                continue
            if _BRINGS.match(name):
                yield name


def rows_of(extension: Extension, shelf: Listing, read: Read, *, newest: int) -> list[Row]:
    """The ``newest`` releases of a package, those in a row that hold the same together."""
    versions = sorted(shelf.versions(extension.package))
    wheels = [
        (version, file) for version in versions if (file := _wheel(extension.package, version, shelf)) is not None
    ]
    seen: list[tuple[Version, WheelFile, Facts]] = []
    for version, file in wheels[-newest:]:
        seen.append((version, file, _facts(read(file))))
    rows = [
        Row(tuple(it[0] for it in group), facts, tuple(it[1] for it in group))
        for facts, members in groupby(seen, key=lambda it: it[2])
        if (group := list(members))
    ]
    return [row._replace(is_first=row is rows[0] and len(wheels) > newest) for row in rows]


def _wheel(package: str, version: Version, shelf: Listing) -> WheelFile | None:
    """The wheel that is read: for x86-64 Linux, of the newest Python."""
    return next((it for it in shelf.wheels(package, version) if it.platform in (PLATFORM, None)), None)


def _facts(observation: Observation) -> Facts:
    majors = [] if observation["brings"] else observation["cuda"]
    linked = observation["linked"]
    return Facts(
        DeviceTargets.of(observation["sass"], observation["ptx"]),
        majors[0] if len(majors) == 1 else None,
        linked[0] if linked else None,
    )


def toml_of(extension: Extension, rows: Sequence[Row], today: str) -> str:
    """The file of a package in ``data/compat_matrix/extensions``. Raises RefreshError where nothing was found."""
    known = [row for row in rows if _says_something(row.facts)]
    if not known:
        raise RefreshError(f"no wheel of {extension.package} has kernels or loads CUDA")
    lines = [
        f"# Made by scripts/refresh_extensions.py from the wheels of {extension.package} for x86-64 Linux.",
        "",
        "schema_version = 1",
        f'updated = "{today}"',
    ]
    for row in known:
        lines += ["", *_evidence(extension, row, today)]
    for row, following in zip(rows, (*rows[1:], None), strict=True):
        if row in known:
            lines += ["", *_build(extension, row, following)]
    return "\n".join(lines) + "\n"


def _says_something(facts: Facts) -> bool:
    return bool(facts.targets.sass or facts.targets.ptx or facts.cuda or facts.linked_cuda)


def _evidence(extension: Extension, row: Row, today: str) -> Iterator[str]:
    first, last = row.versions[0], row.versions[-1]
    what = f"{len(row.versions)} wheels, {first} to {last}" if len(row.versions) > 1 else f"{row.files[0].filename}"
    yield f"[evidence.{_name(first)}]"
    yield 'kind = "wheel"'
    reference = f"{what}: fat binaries and names of CUDA libraries in {extension.libraries.pattern}"
    if row.is_first:
        reference += f"; releases before {first} were not read and are taken to hold the same"
    yield f"reference = {_quoted(reference)}"
    if len(row.versions) == 1 and row.files[0].sha256:
        yield f'sha256 = "{row.files[0].sha256}"'
    yield f'seen = "{today}"'


def _build(extension: Extension, row: Row, following: Row | None) -> Iterator[str]:
    yield "[[build]]"
    yield f'package = "{extension.package}"'
    yield f'versions = "{_specifier(row, following)}"'
    if row.facts.cuda is not None:
        yield f'cuda = "=={row.facts.cuda}.*"'
    if row.facts.linked_cuda is not None:
        yield f'linked_cuda = "{row.facts.linked_cuda}"'
    if row.facts.targets.sass:
        yield f"sass = {_listed(row.facts.targets.sass)}"
    if row.facts.targets.ptx:
        yield f"ptx = {_listed(row.facts.targets.ptx)}"
    yield f"evidence = {_listed([_name(row.versions[0])])}"


def _specifier(row: Row, following: Row | None) -> str:
    """From the first version of a row on up to the next row, or to the last one that was read.

    A release of which nothing could be read ends it, too.
    """
    first, last = row.versions[0], row.versions[-1]
    least = "" if row.is_first else f">={first},"
    if following is not None:
        return f"{least}<{following.versions[0]}"
    return f"{least}<={last}" if row.is_first or first != last else f"=={first}"


def _name(version: Version) -> str:
    return "v" + re.sub(r"[^0-9a-z]", "-", str(version))


def _quoted(text: str) -> str:
    return f"'{text}'"


def _listed(items: Iterable[str]) -> str:
    return "[" + ", ".join(f'"{it}"' for it in items) + "]"
