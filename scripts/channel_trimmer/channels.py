"""Conda channels in a directory, as ``CHANNEL/SUBDIR/repodata.json.zst``: read and written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypedDict

import zstandard

FILE_NAME = "repodata.json.zst"
_LEVEL = 19


class Record(TypedDict, total=False):
    """A channel's record of one package, as far as it is read or made here; other keys are preserved."""

    name: str
    version: str
    build: str
    build_number: int
    subdir: str
    depends: list[str]
    constrains: list[str]
    md5: str
    sha256: str
    size: int
    timestamp: int
    noarch: str
    license: str
    track_features: str


class Place(NamedTuple):
    """Part of a channel: ``conda-forge`` and ``linux-64``."""

    channel: str
    subdir: str

    def __str__(self) -> str:
        return f"{self.channel}/{self.subdir}"


Records = Mapping[str, Record]
"""The records of one place by the names of their files."""
Channels = Mapping[Place, Records]


def read(directory: Path) -> Channels:
    """The channels in ``directory``."""
    paths = sorted(directory.glob(f"*/*/{FILE_NAME}"))
    return {Place(path.parent.parent.name, path.parent.name): read_records(path) for path in paths}


def read_records(path: Path) -> Records:
    """The records of one file."""
    with path.open("rb") as file:
        document = json.loads(zstandard.ZstdDecompressor().stream_reader(file).read())
    return {**document["packages"], **document["packages.conda"]}


def write(directory: Path, channels: Channels) -> Iterator[Path]:
    """Write each part of each channel, compressed, and yield its path."""
    for place, records in channels.items():
        path = directory / place.channel / place.subdir / FILE_NAME
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(zstandard.ZstdCompressor(level=_LEVEL).compress(repodata(place.subdir, records)))
        yield path


def repodata(subdir: str, records: Records) -> bytes:
    """``repodata.json`` of these records; the same records give the same bytes."""
    document = {"info": {"subdir": subdir}, **by_packing(records), "removed": [], "repodata_version": 1}
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()


def by_packing(records: Records) -> dict[str, dict[str, Record]]:
    """The records as in repodata and shards: those of ``.tar.bz2`` files, and those of ``.conda`` files."""
    parts: dict[str, dict[str, Record]] = {"packages": {}, "packages.conda": {}}
    for name in sorted(records):
        parts["packages.conda" if name.endswith(".conda") else "packages"][name] = records[name]
    return parts
