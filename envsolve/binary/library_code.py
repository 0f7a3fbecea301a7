"""Which GPUs a library on disk has code for, read from its fat binaries without reading the code.

Compilers put fat binaries into separate sections, ``.nv_fatbin`` and, for code that is linked on the device,
``__nv_relfatbin``; in a DLL names end after eight letters. Only these sections are read, through a memory map: about 10
ms for a library of a gigabyte whose headers are in memory. NVIDIA libraries with code in another form (cuFFT, the
heuristics of cuDNN) show little or none.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterator
from pathlib import Path

from envsolve.binary.elf import opened_elf
from envsolve.binary.fat_binary import CommonCode, fat_binaries_in
from envsolve.binary.unreadable import unreadable
from envsolve.boundary.files import open_regular
from envsolve.model.capability import CodeTarget, DeviceCode

_SECTIONS = (".nv_fatb", "__nv_rel")
"""The beginnings of the names of the sections."""


def read_device_code(path: Path) -> DeviceCode:
    """The machine code and PTX in the library at ``path``; both empty if it has no fat binary.

    Raises UnreadableLibraryError.
    """
    code = CommonCode()
    sections = _sections(path)
    if sections:
        with open_regular(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if sys.platform != "win32":
                data.madvise(mmap.MADV_RANDOM)  # reading ahead at each header would read all of the code
            for start, end in sections:
                for codes in fat_binaries_in(data, start, min(end, len(data))):
                    code.add(codes)
    targets = code.targets
    return DeviceCode(tuple(map(CodeTarget.parse, targets.sass)), tuple(map(CodeTarget.parse, targets.ptx)))


def _sections(path: Path) -> list[tuple[int, int]]:
    """The sections with fat binaries: the offset of the first byte, and the one after the last."""
    try:
        with open_regular(path) as file:
            is_dll = file.read(2) == b"MZ"
    except OSError as error:
        raise unreadable(path, error) from error
    return list(_dll_sections(path) if is_dll else _elf_sections(path))


def _elf_sections(path: Path) -> Iterator[tuple[int, int]]:
    with opened_elf(path) as elf:
        for section in elf.iter_sections("SHT_PROGBITS"):
            if section.name.startswith(_SECTIONS):
                start = int(section["sh_offset"])
                yield start, start + int(section["sh_size"])


def _dll_sections(path: Path) -> Iterator[tuple[int, int]]:
    from envsolve.binary.dll import opened_dll

    with opened_dll(path) as dll:
        for section in dll.sections:
            if section.Name.rstrip(b"\0").decode("ascii", "replace").startswith(_SECTIONS):
                yield section.PointerToRawData, section.PointerToRawData + section.SizeOfRawData
