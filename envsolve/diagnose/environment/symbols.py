"""The symbols that a Linux library defines, and those it needs, by the library that they are expected from.

Tables are unpacked as a whole: PyTorch's libraries have a hundred thousand names, for which pyelftools takes seconds.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from envsolve.binary.elf import needed_versions, opened_elf

if TYPE_CHECKING:
    from elftools.elf.sections import Section

_SYMBOL = struct.Struct("<IBBHQQ")
"""Elf64_Sym: name, info, other, section, value, size."""
_WEAK = 2
_LARGEST = 64 * 1024 * 1024
"""Bytes of a symbol table; a larger one is damaged."""


class Symbols(NamedTuple):
    """``wanted`` are by the name of the library that must define them; "" for any library."""

    exported: frozenset[bytes]
    wanted: Mapping[str, frozenset[bytes]]


NONE = Symbols(frozenset(), {})


def read_symbols(path: Path) -> Symbols:
    """The dynamic symbols of a 64-bit Linux library. Raises UnreadableLibraryError."""
    with opened_elf(path) as elf:
        tables = {str(section["sh_type"]): section for section in elf.iter_sections() if _is_needed(section)}
        table = tables.get("SHT_DYNSYM")
        if table is None or elf.elfclass != 64 or not elf.little_endian:  # noqa: PLR2004 - bits
            return NONE
        names = elf.get_section(int(table["sh_link"])).data()
        numbers = _version_numbers(tables.get("SHT_GNU_versym"))
        libraries = {it.number: it.library for it in needed_versions(elf)}
        exported = set()
        wanted: dict[str, set[bytes]] = defaultdict(set)
        for place, (name, info, _, section, _, _) in enumerate(_SYMBOL.iter_unpack(_whole(table.data()))):
            text = names[name : names.index(b"\0", name)] if name else b""
            if not text:
                continue
            if section:
                exported.add(text)
            elif info >> 4 != _WEAK:
                number = numbers[place] if place < len(numbers) else 0
                wanted[libraries.get(number, "")].add(text)
    return Symbols(frozenset(exported), {library: frozenset(found) for library, found in wanted.items()})


def _is_needed(section: Section) -> bool:
    known = section["sh_type"] in ("SHT_DYNSYM", "SHT_GNU_versym")
    return known and int(section["sh_size"]) <= _LARGEST


def _whole(data: bytes) -> bytes:
    """The complete entries of a table."""
    return data[: len(data) // _SYMBOL.size * _SYMBOL.size]


def _version_numbers(section: Section | None) -> tuple[int, ...]:
    """The version number of each symbol, without the bit that hides it (``.gnu.version``)."""
    if section is None:
        return ()
    data = section.data()
    return tuple(number & 0x7FFF for (number,) in struct.iter_unpack("<H", data[: len(data) // 2 * 2]))


def defined_versions(path: Path) -> frozenset[str]:
    """The symbol versions that a library defines (``.gnu.version_d``). Raises UnreadableLibraryError."""
    from elftools.elf.gnuversions import GNUVerDefSection

    with opened_elf(path) as elf:
        sections = (it for it in elf.iter_sections("SHT_GNU_verdef") if isinstance(it, GNUVerDefSection))
        return frozenset(str(next(names).name) for section in sections for _, names in section.iter_versions())
