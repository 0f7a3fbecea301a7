"""DLLs for x86-64 Windows without code: headers, imports and delay-loaded imports."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

_ALIGNED = 0x200
_PAGE = 0x1000


def tiny_dll(
    imports: Sequence[str] = (), delayed: Sequence[str] = (), sections: Mapping[str, bytes] | None = None
) -> bytes:
    """A DLL that needs ``imports`` at once and ``delayed`` later, one function of each; with more ``sections``."""
    parts = {".idata": b"", **(sections or {})}
    base = _PAGE
    needed, place = _imports(imports, base), base
    later = _delayed(delayed, base + len(needed))
    parts[".idata"] = needed + later
    headers, raw, content = b"", 2 * _ALIGNED, b""
    for name, body in parts.items():
        padded = body + bytes(-len(body) % _ALIGNED)
        size = (max(len(body), 1), place, len(padded), raw)
        headers += struct.pack("<8s6I2HI", name.encode(), *size, 0, 0, 0, 0, 0x40000040)
        place += (len(padded) + _PAGE) // _PAGE * _PAGE
        raw += len(padded)
        content += padded
    directories = [(0, 0)] * 16
    directories[1] = (base, len(needed)) if imports else (0, 0)
    directories[13] = (base + len(needed), len(later)) if delayed else (0, 0)
    optional = struct.pack("<HBB5I", 0x20B, 14, 0, 0, len(content), 0, 0, _PAGE)
    optional += struct.pack(
        "<Q2I6H4I2H4Q2I",
        0x180000000,
        _PAGE,
        _ALIGNED,
        6,
        0,
        0,
        0,
        6,
        0,
        0,
        place,
        2 * _ALIGNED,
        0,
        3,
        0,
        *[0x1000] * 4,
        0,
        16,
    )
    optional += b"".join(struct.pack("<2I", *it) for it in directories)
    file_header = struct.pack("<2H3I2H", 0x8664, len(parts), 0, 0, 0, len(optional), 0x2022)
    dos = b"MZ".ljust(60, b"\0") + struct.pack("<I", 64)
    return (dos + b"PE\0\0" + file_header + optional + headers).ljust(2 * _ALIGNED, b"\0") + content


def _imports(names: Sequence[str], base: int) -> bytes:
    """The import directory: a descriptor of 20 bytes each, then names and tables."""
    if not names:
        return b""
    table, rest = b"", base + 20 * (len(names) + 1)
    data = b""
    for name in names:
        thunks, function, text = rest + len(data), 0, name.encode() + b"\0"
        function = thunks + 32
        data += struct.pack("<4Q", function, 0, function, 0) + b"\0\0start\0\0"
        table += struct.pack("<5I", thunks, 0, 0, rest + len(data), thunks + 16)
        data += text + bytes(-len(text) % 8)
    return table + bytes(20) + data


def _delayed(names: Sequence[str], base: int) -> bytes:
    """The directory of delay-loaded imports: a descriptor of 32 bytes each, then names and tables."""
    if not names:
        return b""
    table, rest, data = b"", base + 32 * (len(names) + 1), b""
    for name in names:
        thunks, text = rest + len(data), name.encode() + b"\0"
        function = thunks + 32
        data += struct.pack("<4Q", function, 0, function, 0) + b"\0\0start\0\0"
        table += struct.pack("<8I", 1, rest + len(data), 0, thunks + 16, thunks, 0, 0, 0)
        data += text + bytes(-len(text) % 8)
    return table + bytes(32) + data
