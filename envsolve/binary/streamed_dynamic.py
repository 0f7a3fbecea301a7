"""Find the names of needed libraries and symbols in an ELF file that is read as a stream.

The segments are listed at the beginning, but the dynamic one is after the code. When it arrives, the data it points to
have passed. It says which of the names that were seen are needed (DT_NEEDED, and DT_SYMTAB for symbols). See the System
V ABI, chapters 4 and 5.
"""

from __future__ import annotations

import struct

_HEADER = struct.Struct("<4s5B7x2HI3QI3H")
"""The header of 64-bit files of little-endian processors: all that have a CUDA toolkit."""
_SEGMENT = struct.Struct("<2I6Q")
_ENTRY = struct.Struct("<2Q")
_SYMBOL = struct.Struct("<I2BH2Q")
_64_BIT, _LITTLE_ENDIAN = 2, 1
_LOAD, _DYNAMIC = 1, 2
_EXECUTABLE = 1
_NEEDED, _STRING_TABLE, _SYMBOL_TABLE = 1, 5, 6
_TABLES = (4, _STRING_TABLE, 7, 12, 23, 25, 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFE)
"""The tags with the address of a table: the nearest one after the symbols is their end, since their number is not
given.
"""
_UNDEFINED, _WEAK = 0, 2
_LONGEST_BEGINNING = 1 << 16
_LONGEST_SEGMENT = 1 << 20
_SYMBOLS_WITHIN = 16 << 20
"""Linkers put the symbols in this many bytes at the beginning of a file; those of libtorch_cuda, the largest, take 8
MB.
"""


class DynamicSegment:
    """The dynamic segment of a file, whose bytes are passed to it in order."""

    def __init__(self) -> None:
        self._beginning: bytearray | None = bytearray()
        """The first bytes, until the list of segments is complete; None afterwards."""
        self._loads: list[tuple[int, int, int]] = []
        """Offset in the file, address and size of each loaded segment."""
        self.code = 0
        """The start of the code, 0 if unknown: linkers put the names of the dynamic segment before it."""
        self._start = self._end = 0
        self._content = bytearray()
        self._head = bytearray()
        """The first bytes, which contain the symbols; empty for another kind of file."""
        self._position = 0

    def show(self, chunk: bytes) -> None:
        """Process the next bytes."""
        start, self._position = self._position, self._position + len(chunk)
        if self._beginning is not None:
            self._beginning += chunk
            self._read_segments(self._beginning)
        if start < self._end and self._start < self._position:
            self._content += chunk[max(self._start - start, 0) : self._end - start]
        if start < _SYMBOLS_WITHIN and (self._beginning is not None or self._end):
            self._head += chunk[: _SYMBOLS_WITHIN - start]

    @property
    def needed(self) -> frozenset[int] | None:
        """The offsets of the names of needed libraries; None if the file does not say, or is not read far enough."""
        table, entries = self._strings
        return None if table is None else frozenset(table + value for tag, value in entries if tag == _NEEDED)

    def symbols(self, *, defined: bool) -> frozenset[int]:
        """The offsets of the names of the symbols that the file defines, or needs from other libraries.

        Empty if they are not known.
        """
        table, entries = self._strings
        start = next((self._offset(value) for tag, value in entries if tag == _SYMBOL_TABLE), None)
        if table is None or start is None:
            return frozenset()
        others = (self._offset(value) for tag, value in entries if tag in _TABLES)
        end = min((it for it in others if it is not None and it > start), default=start)
        whole = self._head[start : start + (min(end, len(self._head)) - start) // _SYMBOL.size * _SYMBOL.size]
        found = ((table + name, info >> 4, section) for name, info, _, section, *_ in _SYMBOL.iter_unpack(whole))
        if defined:
            return frozenset(place for place, _, section in found if section != _UNDEFINED)
        return frozenset(place for place, binding, section in found if section == _UNDEFINED and binding != _WEAK)

    @property
    def _strings(self) -> tuple[int | None, list[tuple[int, int]]]:
        """The offset of the names, and the entries of the segment."""
        if not self._content or len(self._content) < self._end - self._start:
            return None, []
        entries = list(_ENTRY.iter_unpack(self._content[: len(self._content) // _ENTRY.size * _ENTRY.size]))
        return next((self._offset(value) for tag, value in entries if tag == _STRING_TABLE), None), entries

    def _offset(self, address: int) -> int | None:
        found = (offset + address - start for offset, start, size in self._loads if start <= address < start + size)
        return next(found, None)

    def _read_segments(self, beginning: bytearray) -> None:
        if len(beginning) < _HEADER.size:
            return
        magic, bits, order, *_, place, _, _, _, size, count = _HEADER.unpack_from(beginning)
        end = place + count * size
        if (magic, bits, order, size) != (
            b"\x7fELF",
            _64_BIT,
            _LITTLE_ENDIAN,
            _SEGMENT.size,
        ) or end > _LONGEST_BEGINNING:
            self._beginning = None
            return
        if end > len(beginning):
            return
        segments = (_SEGMENT.unpack_from(beginning, place + number * size) for number in range(count))
        for kind, flags, offset, address, _, length, *_ in segments:
            if kind == _LOAD:
                self._loads.append((offset, address, length))
                self.code = self.code or (offset if flags & _EXECUTABLE else 0)
            elif kind == _DYNAMIC and length <= _LONGEST_SEGMENT:
                self._start, self._end = offset, offset + length
        self._content += beginning[self._start : self._end]
        self._beginning = None
