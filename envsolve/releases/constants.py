"""Integers in instructions: the versions in a library whose functions only return them.

JAX's plugins have a function for each library's version at build time (``_versions.so``), which compiles to one
instruction: ``mov r32, imm32`` on x86-64 (Intel SDM, B8+r), ``movz`` and ``movk`` on AArch64 (Arm ARM, C6.2).
"""

from __future__ import annotations

import re
import struct
from itertools import pairwise

_MOV = re.compile(rb"(?=(?:[\xb8-\xbf]|\xc7[\xc0-\xc7])(.{4}))", re.DOTALL)
"""A lookahead, because bytes that look like an instruction by chance must not hide the one that begins inside them."""
_MOVZ, _MOVK, _WIDE = 0x52800000, 0x72800000, 0x7F800000


def constants(code: bytes, *, aarch64: bool) -> set[int]:
    """Return every integer that an instruction of ``code`` loads into a register.

    Many are chance, but none is missed.
    """
    return _of_aarch64(code) if aarch64 else {struct.unpack("<I", match[1])[0] for match in _MOV.finditer(code)}


def _of_aarch64(code: bytes) -> set[int]:
    words = [word for (word,) in struct.iter_unpack("<I", code[: len(code) // 4 * 4])]
    found = set()
    for word, following in pairwise([*words, 0]):
        if word & _WIDE != _MOVZ or (word >> 21) & 3:
            continue
        low = (word >> 5) & 0xFFFF
        found.add(low)
        if following & _WIDE == _MOVK and (following >> 21) & 3 == 1 and following & 31 == word & 31:
            found.add(low | ((following >> 5) & 0xFFFF) << 16)
    return found
