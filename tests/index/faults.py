"""Possible faults in an answer, and bodies that no client should accept."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import NamedTuple

from tests.index.shelf import JSON_TYPE

GARBAGE = b"\x00\xff<html <a href=<a hreff='\xfe'>" * 50
INVALID_JSON = b'{"meta": {"api-version": "1.1"}, "name": "numpy", "files": [{"filename": '
WRONG_SHAPES = (
    b"[]",
    b"null",
    b'"a page"',
    b'{"meta": {"api-version": "1.1"}, "name": "numpy"}',
    b'{"meta": {"api-version": "1.1"}, "name": "numpy", "files": {"a": 1}}',
    b'{"meta": {"api-version": "1.1"}, "name": "numpy", "files": [null, 7, []]}',
    b'{"meta": {"api-version": "1.1"}, "name": "numpy", "files": [{"filename": 1, "url": 2, "hashes": 3}]}',
    b'{"meta": {"api-version": "1.1"}, "name": "numpy", "files": [{"filename": "numpy-1-py3-none-any.whl"}]}',
    b'{"meta": {"api-version": "2.0"}, "name": "numpy", "files": []}',
)
"""Valid JSON, and no page; the last is a page of a version that is yet to come."""


class Fault(NamedTuple):
    """How the server answers paths that match ``pattern``; see :meth:`IndexServer.fault`."""

    pattern: str
    status: int | None = None
    retry_after: int | str | None = None
    cut: bool = False
    stall: float = 0.0
    body: bytes | None = None
    content_type: str = JSON_TYPE
    encoding: str | None = None
    redirect: str | None = None
    alter: Callable[[bytes], bytes] | None = None
    caching: str | None = None

    def meets(self, path: str) -> bool:
        """Whether it applies to ``path``; ``*`` matches anything, slashes too."""
        return fnmatchcase(path, self.pattern)


def halved(content: bytes) -> bytes:
    """For ``alter``: a truncated file, which the server presents as complete."""
    return content[: len(content) // 2]


def tampered(content: bytes) -> bytes:
    """For ``alter``: metadata with one more requirement, which does not match its hash."""
    return b"Requires-Dist: evil\n" + content


def large_page(size: int = 50_000_000) -> bytes:
    """A valid page of ``size`` bytes without files."""
    page = json.dumps({"meta": {"api-version": "1.1"}, "name": "numpy", "files": []}).encode()
    return page.ljust(size)


def gzip_bomb(size: int = 200_000_000) -> bytes:
    """Spaces that are ``size`` bytes when unpacked and a thousandth of that compressed; send with encoding gzip."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    blanks = b" " * 1_000_000
    return b"".join([*(packer.compress(blanks) for _ in range(size // len(blanks))), packer.flush()])
