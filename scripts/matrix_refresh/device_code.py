"""Which machine code and PTX a library holds: from an architecture list in its text, or from its fat binaries.

A fat binary is NVIDIA's container of device code inside a shared library. Its header is not documented; the fields
read here were taken from what cuobjdump prints of the same files and from the public description in
VivekPanyam/cudaparsers: magic 0xba55ed50, version 1, then one entry per architecture with kind (1 PTX, 2 ELF), sizes,
and the architecture as ``sm`` number.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

_MAGIC = struct.pack("<I", 0xBA55ED50)
_CONTAINER = struct.Struct("<IHHQ")
"""magic, version, header size, size of what follows."""
_ENTRY = struct.Struct("<HHIQ")
"""kind, version, header size, size of the code."""
_DETAILS = struct.Struct("<HHI")
"""At offset 24: minor and major version of what the code is written in (PTX ISA, or the form of the ELF), sm."""
_DETAILS_OFFSET = 24
_PTX, _MACHINE_CODE = 1, 2
_SMALLEST_ENTRY, _LARGEST_HEADER = 32, 4096
_LARGEST_CONTAINER = 1 << 28
"""A container is held in memory, in each thread, and is the code of one source file for all architectures: a few MB.
One of more than 256 MiB is no compiler's work."""
_FLAG = rb"(?:sm|compute)_\d{2,3}[af]?"
_FLAGS = re.compile(_FLAG + rb"(?:[ ;,]" + _FLAG + rb"){0,40}(?=\0)")
"""Up to the end of the string; its beginning may touch another one, linkers share their ends."""
_GLIBC = re.compile(rb"\0GLIBC_(2\.\d+)(?:\.\d+)?(?=\0)")
_TARGET = re.compile(r"(sm|compute)_(\d{1,2})(\d)([af]?)")


class DeviceTargets(NamedTuple):
    """Targets as the matrix writes them, oldest first: machine code (``8.6``, ``9.0a``) and PTX."""

    sass: tuple[str, ...]
    ptx: tuple[str, ...]


class Code(NamedTuple):
    """One piece of device code: PTX or machine code, ``86``, and for PTX the version of its ISA, ``8.4``."""

    is_ptx: bool
    architecture: int
    ptx_isa: str | None

    @property
    def target(self) -> str:
        """As the matrix writes it, ``8.6``."""
        return f"{self.architecture // 10}.{self.architecture % 10}"


def targets_of_flags(flags: Iterable[str], *, compute_is_both: bool = False) -> DeviceTargets:
    """From ``sm_80``, ``compute_90``, ... to targets.

    With ``compute_is_both`` (TensorFlow, XLA) ``compute_90`` stands for machine code and PTX, else for PTX alone.
    Raises ValueError for a flag of another form.
    """
    sass, ptx = set(), set()
    for flag in flags:
        match = _TARGET.fullmatch(flag)
        if match is None:
            raise ValueError(f"{flag!r} is not an architecture flag")
        target = f"{match[2]}.{match[3]}{match[4]}"
        if match[1] == "compute":
            ptx.add(target)
        if match[1] == "sm" or compute_is_both:
            sass.add(target)
    return DeviceTargets(_in_order(sass), _in_order(ptx))


def find_flags(chunks: Iterable[bytes]) -> list[str] | None:
    """The first list of architecture flags (``sm_70 sm_80 ...``) in a stream of bytes; None where it has none."""
    tail = b""
    for chunk in chunks:
        window = tail + chunk
        match = _FLAGS.search(window)
        if match is not None:
            return re.split(r"[ ;,]", match[0].decode())
        tail = window[-1024:]
    return None


class GlibcWatch:
    """Notes the newest symbol version of glibc (``GLIBC_2.17``) named in the bytes that pass by."""

    def __init__(self) -> None:
        self._found: set[str] = set()

    def passing(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """``chunks``, unchanged. Where the names stand differs: some tools move them to the end of a library."""
        tail = b""
        for chunk in chunks:
            window = tail + chunk
            self._found.update(version.decode() for version in _GLIBC.findall(window))
            tail = window[-32:]
            yield chunk

    @property
    def newest(self) -> str | None:
        """The newest version, or None where none was named."""
        return max(self._found, key=lambda version: [int(part) for part in version.split(".")], default=None)


def scan_fat_binaries(chunks: Iterable[bytes], *, enough: int | None = None) -> DeviceTargets:
    """The targets of all fat binaries in a stream of bytes, or of the first ``enough`` of them."""
    return targets_of_code(device_code(chunks, enough=enough))


def device_code(chunks: Iterable[bytes], *, enough: int | None = None) -> set[Code]:
    """Every kind of device code in a stream of bytes, or in the first ``enough`` of its fat binaries.

    Raises ValueError for a fat binary that is too large to be one.
    """
    return {code for container in islice(_containers(chunks), enough) for code in _entries(container)}


def targets_of_code(found: Iterable[Code]) -> DeviceTargets:
    """The targets of pieces of device code."""
    pieces = set(found)
    return DeviceTargets(
        _in_order({code.target for code in pieces if not code.is_ptx}),
        _in_order({code.target for code in pieces if code.is_ptx}),
    )


def _containers(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Each fat binary, header and code. The stream is held only as far as one of them reaches."""
    pieces = iter(chunks)
    held = b""
    position = 0
    while True:
        found = held.find(_MAGIC, position)
        if found < 0:
            held = held[max(position, len(held) - len(_MAGIC) + 1) :]
            position = 0
            piece = next(pieces, None)
            if piece is None:
                return
            held += piece
            continue
        held, position = held[found:], 0
        held = _filled(held, _CONTAINER.size, pieces)
        if len(held) < _CONTAINER.size:
            return
        _, version, header, size = _CONTAINER.unpack_from(held)
        if version != 1 or header != _CONTAINER.size:
            position = len(_MAGIC)
            continue
        if size > _LARGEST_CONTAINER:
            raise ValueError(f"a fat binary of {size} bytes is too large to be one")
        held = _filled(held, header + size, pieces)
        yield held[: header + size]
        held = held[header + size :]


def _filled(held: bytes, wanted: int, pieces: Iterator[bytes]) -> bytes:
    parts = [held]
    length = len(held)
    while length < wanted:
        piece = next(pieces, None)
        if piece is None:
            break
        parts.append(piece)
        length += len(piece)
    return b"".join(parts)


def _entries(container: bytes) -> Iterator[Code]:
    """Each piece of code in a fat binary."""
    position = _CONTAINER.size
    while position + _SMALLEST_ENTRY <= len(container):
        kind, _, header, size = _ENTRY.unpack_from(container, position)
        if kind not in (_PTX, _MACHINE_CODE) or not _SMALLEST_ENTRY <= header <= _LARGEST_HEADER:
            return
        minor, major, architecture = _DETAILS.unpack_from(container, position + _DETAILS_OFFSET)
        yield Code(kind == _PTX, architecture, f"{major}.{minor}" if kind == _PTX else None)
        position += header + size


def _in_order(targets: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(targets, key=lambda target: (*map(int, target.rstrip("af").split(".")), target)))
