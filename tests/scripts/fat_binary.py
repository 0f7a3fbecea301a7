"""Fat binaries like those of NVIDIA's tools, as far as the refresh reads them: for fixtures."""

from __future__ import annotations

import struct


def fat_binary(
    sass: tuple[int, ...],
    ptx: tuple[int, ...] = (),
    *,
    isa: tuple[int, int] = (8, 4),
    form: tuple[int, int] = (1, 7),
    flags: int = 0x11,
) -> bytes:
    """A container with machine code for ``sass`` (86 for 8.6) and PTX for ``ptx``, written in version ``isa``.

    ``form`` is that of the machine code; ``flags`` say that it is for one architecture or family (0x100000, 0x200000).
    """
    entries = b"".join(_entry(2, form, number, flags) for number in sass)
    entries += b"".join(_entry(1, isa, number, 0x11) for number in ptx)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries


def _entry(kind: int, version: tuple[int, int], architecture: int, flags: int) -> bytes:
    code = b"code"
    header = struct.pack("<HHIQQHHIQQ", kind, 0x101, 64, len(code), 0, version[1], version[0], architecture, 0, flags)
    return header.ljust(64, b"\0") + code
