"""Read ``/etc/ld.so.cache``: which file the loader of glibc uses for a name that is on no search path.

The format is in ``sysdeps/generic/dl-cache.h`` of glibc: an optional table of the old form, ``ld.so-1.7.0``, then
``glibc-ld.so.cache1.1`` with a table of names, files and flags, and since 2.33 an extension with the names of the
subdirectories of ``glibc-hwcaps`` that entries are for.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.files import FileError, read_bytes

_LONGEST = 64 * 1024 * 1024
"""Bytes of a cache; that of a desktop has 100,000."""
_OLD_MAGIC = b"ld.so-1.7.0\0"
_OLD_HEADER, _OLD_ENTRY = 16, 12
_MAGIC = b"glibc-ld.so.cache1.1"
_HEADER = struct.Struct("<20sIIB3xI12x")
"""magic, number of entries, length of the strings, flags, offset of the extension."""
_ENTRY = struct.Struct("<iIIIQ")
"""flags, offsets of the name and of the file, oldest kernel, hwcap."""
_EXTENSION_MAGIC = 0xEAA42174
_SECTION = struct.Struct("<IIII")
"""tag, flags, offset, size."""
_HWCAPS_TAG = 1
_IS_EXTENSION = 1 << 62
"""A flag in ``hwcap``: the lower half is then an index into the list of subdirectories (DL_CACHE_HWCAP_EXTENSION)."""

FLAGS = {("EM_X86_64", 64): 0x0303, ("EM_AARCH64", 64): 0x0A03, ("EM_386", 32): 0x0003}
"""The flags of the entries of an ABI: FLAG_ELF_LIBC6 and the machine."""


class CacheEntry(NamedTuple):
    """A library that ldconfig found; ``hwcaps`` is the subdirectory of glibc-hwcaps it is from, if any."""

    name: str
    path: Path
    flags: int
    hwcaps: str | None


def read_cache(path: Path) -> tuple[CacheEntry, ...]:
    """Every entry in order; none if there is no such file or it has another form, as for the loader."""
    try:
        content = read_bytes(path, _LONGEST) or b""
        return tuple(_entries(content[_start(content) :]))
    except (FileError, struct.error, IndexError, ValueError):
        return ()


def chosen_files(entries: Sequence[CacheEntry], flags: int, hwcaps: Sequence[str]) -> Mapping[str, Path]:
    """The chosen file for each name: of an entry with these ``flags``, from the first of ``hwcaps``.

    Entries for the legacy subdirectories (``tls``, ``haswell``), which glibc 2.37 removed, are skipped.
    """
    rank = {name: place for place, name in enumerate(hwcaps)} | {None: len(hwcaps)}
    chosen: dict[str, tuple[int, Path]] = {}
    for entry in entries:
        if entry.flags != flags or entry.hwcaps not in rank:
            continue
        place = rank[entry.hwcaps]
        if entry.name not in chosen or place < chosen[entry.name][0]:
            chosen[entry.name] = (place, entry.path)
    return {name: path for name, (_, path) in chosen.items()}


def _start(content: bytes) -> int:
    """The start of the table in the current form: after the old one, at a multiple of eight."""
    if not content.startswith(_OLD_MAGIC):
        return 0
    (count,) = struct.unpack_from("<I", content, len(_OLD_MAGIC))
    end = _OLD_HEADER + int(count) * _OLD_ENTRY
    return (end + 7) // 8 * 8


def _entries(table: bytes) -> Iterator[CacheEntry]:
    magic, count, _, _, extension = _HEADER.unpack_from(table)
    if magic != _MAGIC:
        raise ValueError("not a cache of libraries")
    subdirectories = list(_subdirectories(table, extension))
    for number in range(count):
        flags, name, path, _, hwcap = _ENTRY.unpack_from(table, _HEADER.size + number * _ENTRY.size)
        hwcaps = None
        if hwcap & _IS_EXTENSION:
            hwcaps = subdirectories[hwcap & 0xFFFFFFFF]
        elif hwcap:
            hwcaps = f"legacy {hwcap:#x}"
        yield CacheEntry(_text(table, name), Path(_text(table, path)), flags, hwcaps)


def _subdirectories(table: bytes, extension: int) -> Iterator[str]:
    """The names of subdirectories of glibc-hwcaps in the extension."""
    if not extension:
        return
    magic, count = struct.unpack_from("<II", table, extension)
    if magic != _EXTENSION_MAGIC:
        return
    for number in range(count):
        tag, _, offset, size = _SECTION.unpack_from(table, extension + 8 + number * _SECTION.size)
        if tag == _HWCAPS_TAG:
            for (name,) in struct.iter_unpack("<I", table[offset : offset + size]):
                yield _text(table, name)


def _text(table: bytes, offset: int) -> str:
    return table[offset : table.index(b"\0", offset)].decode("utf-8", "surrogateescape")
