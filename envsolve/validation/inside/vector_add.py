"""The kernel of the driver probe: an addition of two vectors of 65,536 numbers, in PTX, which the driver compiles.

Every driver for these GPUs can read PTX of such an old version and target, and it runs on every newer GPU (release
notes of the PTX ISA). Every ptxas from 11.8 to 13.5 compiles these pairs for every GPU that it knows.
"""

from __future__ import annotations

import struct
from array import array

BLOCKS = 256
THREADS = 256
COUNT = BLOCKS * THREADS
SIZE = COUNT * 4
"""Bytes of one vector of 32-bit floats."""
POISON = 0xFF
"""The value of every byte of the sum before the kernel runs: as floats these are NaN, which no sum here is."""

ENTRY = b"vector_add"
PTX_PAIRS = (((5, 0), "4.0", "sm_50"), ((3, 5), "3.2", "sm_35"), ((0, 0), "3.0", "sm_30"))
"""The first compute capability, the PTX version, and the target."""

_PTX = """\
.version {version}
.target {target}
.address_size 64
.visible .entry vector_add(.param .u64 left, .param .u64 right, .param .u64 sum)
{{
    .reg .u32 %block, %threads, %thread, %index;
    .reg .u64 %left, %right, %sum, %offset;
    .reg .f32 %x, %y;
    mov.u32 %block, %ctaid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %thread, %tid.x;
    mad.lo.u32 %index, %block, %threads, %thread;
    mul.wide.u32 %offset, %index, 4;
    ld.param.u64 %left, [left];
    ld.param.u64 %right, [right];
    ld.param.u64 %sum, [sum];
    add.u64 %left, %left, %offset;
    add.u64 %right, %right, %offset;
    add.u64 %sum, %sum, %offset;
    ld.global.f32 %x, [%left];
    ld.global.f32 %y, [%right];
    add.f32 %x, %x, %y;
    st.global.f32 [%sum], %x;
    ret;
}}
"""


def ptx_for(capability: tuple[int, int]) -> bytes:
    """The kernel for a GPU of this compute capability, with a zero byte at the end for the driver."""
    version, target = next((version, target) for least, version, target in PTX_PAIRS if capability >= least)
    return _PTX.format(version=version, target=target).encode("ascii") + b"\0"


class Vectors:
    """The vectors and their sums.

    All numbers are multiples of a half below 2**20, so that every sum is exact in 32 bits. Each round starts at another
    offset of the same vectors: no memory cell gets the same number twice in a row.
    """

    def __init__(self) -> None:
        left = array("f", [(index * 40503 & 0xFFFFF) * 0.5 for index in range(COUNT)])
        right = array("f", [(index * 30011 & 0xFFFFF) * 0.5 - 262144.0 for index in range(COUNT)])
        total = array("f", map(float.__add__, left, right))
        self._twice = [vector.tobytes() * 2 for vector in (left, right, total)]

    def of_round(self, number: int) -> tuple[bytes, bytes, bytes]:
        """Left, right and their sum for this round, as bytes."""
        start = number * 257 % COUNT * 4
        left, right, total = (vector[start : start + SIZE] for vector in self._twice)
        return left, right, total


def difference(found: bytes, expected: bytes) -> dict[str, object] | None:
    """How the kernel's output differs from the expected one; None if it does not.

    ``untouched`` is whether all of it is still the poison.
    """
    if found == expected:
        return None
    wrong = [place for place in range(0, SIZE, 4) if found[place : place + 4] != expected[place : place + 4]]
    first = wrong[0]
    bits = found[first : first + 4]
    return {
        "mismatches": len(wrong),
        "untouched": found == bytes([POISON]) * SIZE,
        "first": {
            "index": first // 4,
            "expected": struct.unpack("=f", expected[first : first + 4])[0],
            "found": str(struct.unpack("=f", bits)[0]),
            "bits": "0x{:08x}".format(struct.unpack("=I", bits)[0]),
        },
    }
