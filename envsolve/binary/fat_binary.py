"""Which GPUs the device code in a file is for: fat binaries, found in a stream of bytes or in bytes in memory.

A fat binary is NVIDIA's container of device code inside a library. Its header is not documented. The fields read here
come from comparing with the output of cuobjdump and from the public description in VivekPanyam/cudaparsers: magic
0xba55ed50, version 1, then one entry per architecture with kind (1 PTX, 2 ELF), sizes, the architecture as ``sm``
number, and flags. One flag says that the code is architecture-specific (``9.0a``), another that it is family-specific
(``12.0f``). cuobjdump 13 lists the former as such (sm_90a, sm_100a, sm_103a and sm_120a of sgl-kernel 0.3.21 and
transformer-engine-cu12 2.20.2) and not the latter: its flag is on the code that vLLM 0.21 and Transformer Engine 2.20
request as 10.0f and 12.0f.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from mmap import mmap
from typing import NamedTuple

_MAGIC = struct.pack("<I", 0xBA55ED50)
_CONTAINER = struct.Struct("<IHHQ")
"""magic, version, header size, size of what follows."""
_ENTRY = struct.Struct("<HHIQ")
"""kind, version, header size, size of the code."""
_DETAILS = struct.Struct("<HHI")
"""At offset 24: minor and major version of the code's format (PTX ISA or ELF form), sm."""
_DETAILS_OFFSET = 24
_FLAGS = struct.Struct("<Q")
_FLAGS_OFFSET = 40
_ARCHITECTURE_SPECIFIC, _FAMILY_SPECIFIC = 0x100000, 0x200000
_PTX, _MACHINE_CODE, _INTERMEDIATE = 1, 2, 8
_FIRST_OF_NEW_FORM = 100
_STRAY = 100
"""A target counts if it is in at least one in this many fat binaries. The rarest real one of cuBLASLt 12.8, 6.1, is in
one of 36.
"""
_DEFAULT = {(False, 52), (True, 52)}
"""The code of a file compiled without an explicit target, in CUDA 11 and 12 (nvcc --help, --gpu-architecture)."""
_NEWEST = 999
"""Architectures have two or three digits; a longer number is damage."""
_ISA_OF_CUDA_9, _LAST_OF_CUDA_9 = 6, 2
_ISA_OF_CUDA_12, _LAST_IN_STEP = 8, 5
_SMALLEST_ENTRY, _LARGEST_HEADER = 32, 4096
_LARGEST_CONTAINER = 1 << 28
"""A container of a stream is kept in memory, in each thread. It has the code of one source file for all architectures:
a few MB. No compiler writes one of more than 256 MiB.
"""


class DeviceTargets(NamedTuple):
    """Targets in the form of the matrix, oldest first: machine code (``8.6``, ``9.0a``) and PTX."""

    sass: tuple[str, ...]
    ptx: tuple[str, ...]

    @classmethod
    def of(cls, sass: Iterable[str], ptx: Iterable[str]) -> DeviceTargets:
        """The given targets in order, each once."""
        return cls(_in_order(sass), _in_order(ptx))


class Code(NamedTuple):
    """One piece of device code: PTX or machine code, ``86``, and the version of its PTX ISA or ELF form, ``(8, 4)``."""

    is_ptx: bool
    architecture: int
    form: tuple[int, int]
    feature_set: str = ""

    @property
    def target(self) -> str:
        """The target in the form of the matrix, ``8.6`` or ``9.0a``."""
        return f"{self.architecture // 10}.{self.architecture % 10}{self.feature_set}"

    @property
    def ptx_cuda(self) -> tuple[int, int] | None:
        """The toolkit that wrote this PTX; drivers of this CUDA and newer compile it. None for machine code.

        PTX ISA 7.n is of CUDA 11.n, 8.n of 12.n up to 8.5 (also that of 12.6), 8.6 to 8.8 of 12.7 to 12.9, 9.n of 13.n,
        and before these 6.0 to 6.2 of 9.0 to 9.2, 6.3 to 6.5 of 10.0 to 10.2 (PTX ISA, release notes).
        """
        isa, minor = self.form
        if not self.is_ptx or isa < _ISA_OF_CUDA_9:
            return None
        if isa == _ISA_OF_CUDA_9:
            return (10, minor - 3) if minor > _LAST_OF_CUDA_9 else (9, minor)
        return isa + 4, minor + 1 if isa == _ISA_OF_CUDA_12 and minor > _LAST_IN_STEP else minor

    @property
    def cuda_major(self) -> int | None:
        """The major version of the CUDA whose compiler wrote it; None if its form does not say.

        Machine code for capabilities below 10.0 has form 1.8 from CUDA 13 on and 1.7 before; for 10.0 and newer it is
        1.8 in CUDA 12.9, too (wheels of warp-lang 1.19, CuPy 14.2, xformers 0.0.35, ctranslate2 4.8).
        """
        if self.ptx_cuda is not None:
            return self.ptx_cuda[0]
        return 13 if not self.is_ptx and self.form >= (1, 8) and self.architecture < _FIRST_OF_NEW_FORM else None


class CommonCode:
    """The code that is common to the fat binaries of a library, each of which belongs to one source file.

    A target that only a stray fat binary has says nothing about the rest: one of the 2918 in cuBLASLt 12.8 contains PTX
    for 5.2, with which the library would seem to run on every future GPU.
    """

    def __init__(self) -> None:
        self.every: set[Code] = set()
        """All pieces, including strays."""
        self._counted: Counter[Code] = Counter()
        self._of_default: Counter[Code] = Counter()
        self._total = self._defaults = 0

    def add(self, codes: set[Code]) -> None:
        """Add the code of one fat binary."""
        self.every |= codes
        targets = {it._replace(form=(0, 0)) for it in codes}
        is_default = {(it.is_ptx, it.architecture) for it in codes} == _DEFAULT
        (self._of_default if is_default else self._counted).update(targets)
        self._defaults += is_default
        self._total += 1

    @property
    def targets(self) -> DeviceTargets:
        """The targets without strays and without those of a few files compiled without a target.

        The rest does not run there.
        """
        are_few = self._defaults * 2 < self._total
        counted = self._counted if are_few else self._counted + self._of_default
        return targets_of_code(
            code for code, times in counted.items() if times * _STRAY >= self._total and code.architecture <= _NEWEST
        )


def scan_fat_binaries(chunks: Iterable[bytes], *, enough: int | None = None) -> DeviceTargets:
    """The targets of all fat binaries in a stream of bytes, or of the first ``enough`` of them."""
    return targets_of_code(device_code(chunks, enough=enough))


def device_code(chunks: Iterable[bytes], *, enough: int | None = None) -> set[Code]:
    """All device code in a stream of bytes, or in the first ``enough`` of its fat binaries.

    Raises ValueError for a fat binary of an impossible size.
    """
    return {code for container in streamed_fat_binaries(chunks, enough=enough) for code in container}


def streamed_fat_binaries(chunks: Iterable[bytes], *, enough: int | None = None) -> Iterator[set[Code]]:
    """The code of each fat binary in a stream of bytes, or of the first ``enough`` of them.

    Fat binaries with only intermediate code, which is linked into others on the machine (LTO), are skipped. Raises
    ValueError for a fat binary of an impossible size.
    """
    found = (set(_entries(container, 0, len(container))) for container in _streamed(chunks))
    yield from islice((it for it in found if it), enough)


def fat_binaries_in(data: bytes | mmap, start: int, end: int) -> Iterator[set[Code]]:
    """The code of each fat binary between two offsets of ``data``. Only headers are read, not the code between them."""
    while (start := data.find(_MAGIC, start, end)) >= 0 and start + _CONTAINER.size <= end:
        _, version, header, size = _CONTAINER.unpack_from(data, start)
        if version != 1 or header != _CONTAINER.size:
            start += len(_MAGIC)
            continue
        behind = start + header + size
        yield set(_entries(data, start, min(behind, end)))
        start = min(behind, end)


def targets_of_code(found: Iterable[Code]) -> DeviceTargets:
    """The targets of pieces of device code."""
    pieces = set(found)
    return DeviceTargets.of(
        {code.target for code in pieces if not code.is_ptx},
        {code.target for code in pieces if code.is_ptx},
    )


def _streamed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Each fat binary, header and code. The stream is buffered only as far as one of them reaches."""
    pieces = iter(chunks)
    data = b""
    position = 0
    while True:
        found = data.find(_MAGIC, position)
        if found < 0:
            data = data[max(position, len(data) - len(_MAGIC) + 1) :]
            position = 0
            piece = next(pieces, None)
            if piece is None:
                return
            data += piece
            continue
        data, position = data[found:], 0
        data = _filled(data, _CONTAINER.size, pieces)
        if len(data) < _CONTAINER.size:
            return
        _, version, header, size = _CONTAINER.unpack_from(data)
        if version != 1 or header != _CONTAINER.size:
            position = len(_MAGIC)
            continue
        if size > _LARGEST_CONTAINER:
            raise ValueError(f"a fat binary of {size} bytes is too large to be one")
        data = _filled(data, header + size, pieces)
        yield data[: header + size]
        data = data[header + size :]


def _filled(data: bytes, wanted: int, pieces: Iterator[bytes]) -> bytes:
    parts = [data]
    length = len(data)
    while length < wanted:
        piece = next(pieces, None)
        if piece is None:
            break
        parts.append(piece)
        length += len(piece)
    return b"".join(parts)


def _entries(data: bytes | mmap, start: int, end: int) -> Iterator[Code]:
    """Each piece of code in the fat binary between two offsets."""
    position = start + _CONTAINER.size
    while position + _SMALLEST_ENTRY <= end:
        kind, _, header, size = _ENTRY.unpack_from(data, position)
        if kind not in (_PTX, _MACHINE_CODE, _INTERMEDIATE) or not _SMALLEST_ENTRY <= header <= _LARGEST_HEADER:
            return
        minor, major, architecture = _DETAILS.unpack_from(data, position + _DETAILS_OFFSET)
        has_flags = _FLAGS_OFFSET + _FLAGS.size <= min(header, end - position)
        flags = _FLAGS.unpack_from(data, position + _FLAGS_OFFSET)[0] if has_flags else 0
        if kind != _INTERMEDIATE:
            yield Code(kind == _PTX, architecture, (major, minor), _feature_set(flags))
        position += header + size


def _feature_set(flags: int) -> str:
    if flags & _ARCHITECTURE_SPECIFIC:
        return "a"
    return "f" if flags & _FAMILY_SPECIFIC else ""


def _in_order(targets: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(targets), key=lambda target: (*map(int, target.rstrip("af").split(".")), target)))
