"""Facts from a Linux library: its name and machine, what it needs, and where the loader searches for that.

Like the loader, this reads the segments and not the sections, which a library may lack. Only some kilobytes are read,
even of a gigabyte: headers, the dynamic segment, and the strings it points to.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from envsolve.binary.unreadable import Damage, UnreadableLibraryError, unreadable
from envsolve.boundary.files import open_regular

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

MAGIC = b"\x7fELF"
_HEADER_SIZE = {1: 52, 2: 64}
"""Bytes of the file header by EI_CLASS."""
_NO_DEFAULT_DIRECTORIES = 0x800
"""DF_1_NODEFLIB."""
_STRING_TAGS = {"DT_NEEDED": "needed", "DT_RPATH": "rpath", "DT_RUNPATH": "runpath", "DT_SONAME": "soname"}


class Abi(NamedTuple):
    """The processor and word size of code: ``EM_X86_64`` and 64. A process can only load code of one of them."""

    machine: str
    bits: int


class NeededVersion(NamedTuple):
    """A symbol version that a library needs from another: ``GLIBC_2.28`` of libc.so.6, and its number for symbols."""

    library: str
    version: str
    number: int


class SharedLibrary(NamedTuple):
    """The dynamic segment of a library. ``rpath`` and ``runpath`` are as written; None if there is none.

    ``size`` is that of the file in bytes, ``whole_size`` the smallest possible size by its tables.
    """

    path: Path
    abi: Abi
    soname: str | None
    needed: tuple[str, ...]
    rpath: str | None
    runpath: str | None
    no_default_directories: bool
    size: int
    whole_size: int

    @property
    def is_truncated(self) -> bool:
        """Whether the file ends before data that its own tables list."""
        return self.size < self.whole_size


def read_library(path: Path, *, abi: Abi | None = None, truncated: bool = False) -> SharedLibrary:
    """The library at ``path``; if ``abi`` is given, it must match.

    Raises UnreadableLibraryError, also for a truncated file unless ``truncated`` allows it. The loader of glibc maps a
    truncated library if its dynamic segment is there, and the process dies when it reads beyond the end.
    """
    try:
        with open_regular(path) as file:
            library = _read(path, file, abi)
    except OSError as error:
        raise unreadable(path, error) from error
    if library.is_truncated and not truncated:
        raise _truncated(library.path, library.size, library.whole_size)
    return library


def read_needed_versions(path: Path) -> tuple[NeededVersion, ...]:
    """The symbol versions that the library needs from others (``.gnu.version_r``), in order; raises as read_library."""
    with opened_elf(path) as elf:
        return tuple(needed_versions(elf))


def needed_versions(elf: ELFFile) -> Iterator[NeededVersion]:
    """The symbol versions that an opened library needs from others, in order."""
    from elftools.elf.gnuversions import GNUVerNeedSection

    for section in elf.iter_sections("SHT_GNU_verneed"):
        assert isinstance(section, GNUVerNeedSection)
        for library, versions in section.iter_versions():
            for it in versions:
                yield NeededVersion(str(library.name), str(it.name), int(it["vna_other"]))


@contextmanager
def opened_elf(path: Path) -> Iterator[ELFFile]:
    """The library at ``path`` for pyelftools, whose errors become UnreadableLibraryError."""
    from elftools.elf.elffile import ELFFile

    try:
        with open_regular(path) as file:
            check_header(path, file)
            with _judged(path):
                yield ELFFile(file)
    except OSError as error:
        raise unreadable(path, error) from error


def check_header(path: Path, file: BinaryIO) -> int:
    """The size of the file in bytes. Raises UnreadableLibraryError if its header is not that of a library."""
    size = os.fstat(file.fileno()).st_size
    head = file.read(5)
    if not head:
        raise UnreadableLibraryError(path, Damage.EMPTY, "is empty")
    if head[:4] != MAGIC[: len(head)]:
        raise UnreadableLibraryError(path, Damage.NO_LIBRARY, f"is not a library: it begins with {head[:4]!r}")
    wanted = _HEADER_SIZE.get(head[4] if len(head) > 4 else 2)  # noqa: PLR2004 - the byte after the magic
    if wanted is None:
        raise UnreadableLibraryError(path, Damage.NO_LIBRARY, "is not a library: unknown word size")
    if size < wanted:
        raise _truncated(path, size, wanted)
    return size


@contextmanager
def _judged(path: Path, size: int = 0, whole: int = 0) -> Iterator[None]:
    """Turn what pyelftools raises into UnreadableLibraryError: contradicting tables are the fault of the file."""
    from elftools.common.exceptions import ELFError

    try:
        yield
    except (ELFError, ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        if size < whole:
            raise _truncated(path, size, whole) from error
        reason = f"is not a library: {str(error) or type(error).__name__}"
        raise UnreadableLibraryError(path, Damage.NO_LIBRARY, reason) from error


def _read(path: Path, file: BinaryIO, abi: Abi | None) -> SharedLibrary:
    from elftools.elf.elffile import ELFFile

    size = check_header(path, file)
    with _judged(path):
        elf = ELFFile(file)
        found = Abi(str(elf["e_machine"]), elf.elfclass)
        if abi is not None and found != abi:
            detail = f"is for {found.machine}, {found.bits} bit, not for {abi.machine}, {abi.bits} bit"
            raise UnreadableLibraryError(path, Damage.OTHER_MACHINE, detail)
        whole = max(_table_end(elf, "e_ph"), _table_end(elf, "e_sh"))
        if size < _table_end(elf, "e_ph"):
            raise _truncated(path, size, whole)
        segments = _segments(elf)
        if not segments:
            raise UnreadableLibraryError(path, Damage.NO_LIBRARY, "is not a library: it has nothing to load")
        whole = max([whole, *(it.end for it in segments)])
    with _judged(path, size, whole):
        tags = _dynamic_tags(elf, segments)
    return _described(path, found, tags, size, whole)


class _Segment(NamedTuple):
    type: str
    offset: int
    size: int

    @property
    def end(self) -> int:
        """The offset in the file after its last byte."""
        return self.offset + self.size


def _table_end(elf: ELFFile, table: str) -> int:
    """The offset after the table of program headers, ``e_ph``, or section headers, ``e_sh``; 0 if there is none."""
    count = int(elf[f"{table}num"])
    return int(elf[f"{table}off"]) + count * int(elf[f"{table}entsize"]) if count else 0


def _segments(elf: ELFFile) -> list[_Segment]:
    """The program headers. Only these: to find the dynamic segment, pyelftools would read every section."""
    from elftools.common.utils import struct_parse

    start, step = int(elf["e_phoff"]), int(elf["e_phentsize"])
    headers = (
        struct_parse(elf.structs.Elf_Phdr, elf.stream, stream_pos=start + number * step)
        for number in range(int(elf["e_phnum"]))
    )
    return [_Segment(str(it["p_type"]), int(it["p_offset"]), int(it["p_filesz"])) for it in headers]


def _dynamic_tags(elf: ELFFile, segments: list[_Segment]) -> dict[str, list[str | int]]:
    """The relevant entries by their tag: strings as strings, flags as numbers."""
    from elftools.elf.dynamic import Dynamic

    found: dict[str, list[str | int]] = defaultdict(list)
    place = next((it for it in segments if it.type == "PT_DYNAMIC"), None)
    if place is None:
        return found
    for tag in Dynamic(elf.stream, elf, None, place.offset, place.size == 0).iter_tags():
        name = str(tag.entry.d_tag)
        if name in _STRING_TAGS:
            found[name].append(str(getattr(tag, _STRING_TAGS[name])))
        elif name == "DT_FLAGS_1":
            found[name].append(int(tag.entry.d_val))
    return found


def _described(path: Path, abi: Abi, tags: dict[str, list[str | int]], size: int, whole: int) -> SharedLibrary:
    def first(name: str) -> str | None:
        return str(tags[name][0]) if name in tags else None

    flags = int(tags["DT_FLAGS_1"][0]) if "DT_FLAGS_1" in tags else 0
    return SharedLibrary(
        path=path,
        abi=abi,
        soname=first("DT_SONAME"),
        needed=tuple(map(str, tags["DT_NEEDED"])),
        rpath=first("DT_RPATH"),
        runpath=first("DT_RUNPATH"),
        no_default_directories=bool(flags & _NO_DEFAULT_DIRECTORIES),
        size=size,
        whole_size=whole,
    )


def _truncated(path: Path, size: int, whole: int) -> UnreadableLibraryError:
    detail = f"ends after {size} bytes, but its tables require {whole}"
    return UnreadableLibraryError(path, Damage.TRUNCATED, detail)
