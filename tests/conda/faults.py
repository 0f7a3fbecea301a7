"""What may go wrong with an answer of a channel, and what its files may be turned into."""

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
        """Whether it is about ``path``; ``*`` stands for anything, slashes too."""
        return fnmatchcase(path, self.pattern)


def garbled(content: bytes) -> bytes:
    """For ``alter``: what no program can unpack or read."""
    return bytes(byte ^ 0x5A for byte in content)


def halved(content: bytes) -> bytes:
    """For ``alter``: a file that ends too soon, though the server holds it to be whole."""
    return content[: len(content) // 2]


def no_json(content: bytes) -> bytes:
    """For ``alter``: a file that unpacks well and then is no JSON."""
    return _like(content, NOT_JSON)


def log_in(content: bytes) -> bytes:
    """For ``alter``: the page that a company's proxy sends in place of anything."""
    return _like(content, b"<!DOCTYPE html><html><title>Log in</title></html>")


def other_shard(content: bytes) -> bytes:
    """For ``alter``: a shard that can be read and that its hash is not true of."""
    shard = msgpack.unpackb(zstandard.decompress(content))
    for records in (shard["packages"], shard["packages.conda"]):
        for it in records.values():
            it["depends"] = [*it["depends"], "evil"]
    return zstandard.compress(msgpack.packb(shard))


def _like(content: bytes, new: bytes) -> bytes:
    return zstandard.compress(new) if content.startswith(_ZSTD_MAGIC) else new
