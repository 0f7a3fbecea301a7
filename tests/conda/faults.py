"""Possible faults in an answer of a channel, and replacements for its files."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgpack
import zstandard

NOT_JSON = b'{"info": [nonsense'
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


class Fault(NamedTuple):
    """How the server answers paths that match ``pattern``; see :meth:`ChannelServer.fault`."""

    pattern: str
    status: int | None = None
    retry_after: int | str | None = None
    reset: bool = False
    cut: bool = False
    stall: float = 0.0
    redirect: str | None = None
    alter: Callable[[bytes], bytes] | None = None

    def meets(self, path: str) -> bool:
        """Whether it applies to ``path``; ``*`` matches anything, slashes too."""
        return fnmatchcase(path, self.pattern)


def garbled(content: bytes) -> bytes:
    """For ``alter``: data that no program can unpack or read."""
    return bytes(byte ^ 0x5A for byte in content)


def halved(content: bytes) -> bytes:
    """For ``alter``: a truncated file, which the server presents as complete."""
    return content[: len(content) // 2]


def no_json(content: bytes) -> bytes:
    """For ``alter``: a file that unpacks and then is not JSON."""
    return _like(content, NOT_JSON)


def log_in(content: bytes) -> bytes:
    """For ``alter``: the page that a company's proxy sends instead."""
    return _like(content, b"<!DOCTYPE html><html><title>Log in</title></html>")


def other_shard(content: bytes) -> bytes:
    """For ``alter``: a readable shard that does not match its hash."""
    shard = msgpack.unpackb(zstandard.decompress(content))
    for records in (shard["packages"], shard["packages.conda"]):
        for it in records.values():
            it["depends"] = [*it["depends"], "evil"]
    return zstandard.compress(msgpack.packb(shard))


def _like(content: bytes, new: bytes) -> bytes:
    return zstandard.compress(new) if content.startswith(_ZSTD_MAGIC) else new
