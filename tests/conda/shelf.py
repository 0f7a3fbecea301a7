"""One channel of the server: its files, made when they are first requested."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgpack
import zstandard

from scripts.channel_trimmer.channels import FILE_NAME, Record, Records, by_packing, read_records, repodata
from tests.conda.records import MadePackage

RECORDED = Path(__file__).parent / "channel"
RECORDED_CHANNELS = ("conda-forge", "nvidia", "pytorch")
_JSON, _ZSTD, _BINARY = "application/json", "application/zstd", "binary/octet-stream"
_CACHED = "public, max-age=1200"
_FOR_EVER = "public, max-age=31536000, immutable"


class File(NamedTuple):
    """A file ready to be sent."""

    body: bytes
    content_type: str
    caching: str = _CACHED

    @property
    def tag(self) -> str:
        """Its ETag, which follows from its bytes."""
        return f'"{sha256(self.body).hexdigest()[:32]}"'


class Shelf:
    """A channel under ``url``, with the subdirectories that were added to it.

    ``zst`` is whether repodata lie there packed too, ``sharded`` whether in shards too (CEP 16,
    https://github.com/conda/ceps/blob/main/cep-0016.md); plain JSON lies there always.
    """

    def __init__(self, url: str, *, zst: bool, sharded: bool) -> None:
        self.url = url
        self._zst = zst
        self._sharded = sharded
        self._parts: dict[str, dict[str, Record]] = {}
        self._packages: dict[str, bytes] = {}
        self._files: dict[str, Mapping[str, File]] = {}

    def add(self, *packages: MadePackage) -> None:
        """List packages in addition to earlier ones, each in the subdirectory of its record."""
        for it in packages:
            self._parts.setdefault(it.subdir, {})[it.file_name] = it.fields
            self._packages[f"{it.subdir}/{it.file_name}"] = it.content
            self._files.pop(it.subdir, None)

    def withdraw(self, file_name: str) -> None:
        """Remove a package from the list."""
        for subdir, records in self._parts.items():
            if records.pop(file_name, None) is not None:
                self._files.pop(subdir, None)

    def open(self, *subdirs: str) -> None:
        """Create these subdirectories, even if empty: rattler requires ``noarch``."""
        for subdir in subdirs:
            self._parts.setdefault(subdir, {})

    def file(self, path: str) -> File | None:
        """The file at ``path``, which is relative to the channel: ``linux-64/repodata.json.zst``."""
        if path in self._packages:
            return File(self._packages[path], _BINARY, _FOR_EVER)
        subdir, _, name = path.partition("/")
        if subdir not in self.subdirs():
            return None
        if subdir not in self._files:
            self._files[subdir] = self._made(subdir)
        return self._files[subdir].get(name)

    def subdirs(self) -> frozenset[str]:
        """The subdirectories of the channel."""
        return frozenset(self._parts)

    def records(self, subdir: str) -> Records:
        """The packages in one subdirectory."""
        return self._parts[subdir]

    def _made(self, subdir: str) -> Mapping[str, File]:
        plain = repodata(subdir, self.records(subdir))
        files = {"repodata.json": File(plain, _JSON)}
        if self._zst:
            files["repodata.json.zst"] = File(_packed(plain), _ZSTD)
        return {**files, **shards(subdir, self.records(subdir))} if self._sharded else files


class RecordedShelf(Shelf):
    """A channel as it is recorded in ``channel/``; nothing can be added to it."""

    def __init__(self, url: str, name: str, *, zst: bool, sharded: bool) -> None:
        super().__init__(url, zst=zst, sharded=sharded)
        self._name = name

    def subdirs(self) -> frozenset[str]:
        """The parts that were recorded."""
        return frozenset(path.name for path in (RECORDED / self._name).iterdir())

    def records(self, subdir: str) -> Records:
        """What was recorded of one part."""
        return _recorded(RECORDED / self._name / subdir / FILE_NAME)


def shards(subdir: str, records: Records) -> Mapping[str, File]:
    """The index of shards, and for each package name its shard, by their paths below the subdirectory."""
    named: dict[str, dict[str, Record]] = {}
    for file_name, it in records.items():
        named.setdefault(it["name"], {})[file_name] = it
    packed = {name: _shard(of_name) for name, of_name in named.items()}
    index = {
        "info": {"subdir": subdir, "base_url": "./", "shards_base_url": "./shards/"},
        "repodata_version": 1,
        "removed": [],
        "shards": {name: sha256(shard).digest() for name, shard in packed.items()},
    }
    files = {"repodata_shards.msgpack.zst": File(_packed(msgpack.packb(index)), _ZSTD)}
    for shard in packed.values():
        files[f"shards/{sha256(shard).hexdigest()}.msgpack.zst"] = File(shard, _ZSTD, _FOR_EVER)
    return files


def _shard(records: Records) -> bytes:
    """Hashes are bytes there, where repodata has digits."""
    parts = {
        packing: {file_name: {**it, **_digests(it)} for file_name, it in part.items()}
        for packing, part in by_packing(records).items()
    }
    return _packed(msgpack.packb({**parts, "removed": []}))


def _digests(of: Record) -> dict[str, bytes]:
    found = {"md5": of.get("md5"), "sha256": of.get("sha256")}
    return {kind: bytes.fromhex(digits) for kind, digits in found.items() if digits is not None}


def _packed(content: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=1).compress(content)


@cache
def _recorded(path: Path) -> Records:
    return read_records(path)
