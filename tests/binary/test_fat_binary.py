"""Fat binaries in a stream, cut at any position, and in bytes in memory."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsolve.binary.fat_binary import DeviceTargets, fat_binaries_in, scan_fat_binaries, targets_of_code
from tests.laws import examples
from tests.scripts.wheels import MACHINE_CODE, MAGIC, PTX, code, fat_binary, noise

ARCHITECTURES = (35, 37, 50, 60, 61, 70, 75, 80, 86, 89, 90, 100, 103, 110, 120, 121)
CONFUSING = (b"", MAGIC, MAGIC[:3], MAGIC * 2, MAGIC + b"\2\0\x10\0", MAGIC + b"\1\0\x18\0" + bytes(8), b"\0" * 40)

entries = st.tuples(st.sampled_from([PTX, MACHINE_CODE]), st.sampled_from(ARCHITECTURES))
containers = st.lists(st.tuples(st.sampled_from(CONFUSING), st.lists(entries, max_size=5)), max_size=5)


def _cut(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    """``data`` in pieces of ``sizes``, which repeat."""
    place = number = 0
    while place < len(data):
        size = sizes[number % len(sizes)]
        yield data[place : place + size]
        place, number = place + size, number + 1


def _written(architectures: set[int]) -> tuple[str, ...]:
    return tuple(f"{number // 10}.{number % 10}" for number in sorted(architectures))


@settings(max_examples=examples(60), deadline=None)
@given(packed=containers, sizes=st.lists(st.integers(1, 200), min_size=1, max_size=4))
def test_packed_code_is_found_again(packed: list[tuple[bytes, list[tuple[int, int]]]], sizes: list[int]) -> None:
    data = b"".join(before + fat_binary(*(code(*entry) for entry in codes)) for before, codes in packed) + MAGIC
    wanted = {
        kind: {architecture for _, codes in packed for it, architecture in codes if it == kind} for kind in (1, 2)
    }
    found = scan_fat_binaries(_cut(data, sizes))
    assert found == DeviceTargets(_written(wanted[MACHINE_CODE]), _written(wanted[PTX]))


def test_code_that_resembles_a_container_is_ignored() -> None:
    inside = code(MACHINE_CODE, 80, fat_binary(code(MACHINE_CODE, 35)))
    assert scan_fat_binaries([noise(500), fat_binary(inside), noise(500, 1)]) == (("8.0",), ())


def test_an_unknown_container_version_ends_the_scan() -> None:
    data = fat_binary(code(MACHINE_CODE, 80), code(7, 90), code(MACHINE_CODE, 90))
    assert scan_fat_binaries([data, fat_binary(code(PTX, 70))]) == (("8.0",), ("7.0",))


def test_a_truncated_container_yields_its_complete_entries() -> None:
    data = fat_binary(code(MACHINE_CODE, 80), code(MACHINE_CODE, 90, bytes(5000)))
    assert scan_fat_binaries([data[:-100]]) == (("8.0", "9.0"), ())


def test_an_oversized_container_is_refused_before_it_is_allocated() -> None:
    head = fat_binary(code(MACHINE_CODE, 80))[:8] + struct.pack("<Q", (1 << 28) + 1)
    chunks = iter([noise(100) + head, bytes(1000), bytes(1000)])
    with pytest.raises(ValueError, match="a fat binary of 268435457 bytes is too large to be one"):
        scan_fat_binaries(chunks)
    assert len(list(chunks)) == 2


def test_the_number_of_containers_is_limited() -> None:
    chunks = iter([fat_binary(code(MACHINE_CODE, architecture)) for architecture in (70, 80, 90)])
    assert scan_fat_binaries(chunks, enough=2).sass == ("7.0", "8.0")
    assert len(list(chunks)) == 1


def test_a_library_without_device_code_has_no_targets() -> None:
    assert scan_fat_binaries([noise(1000)]) == ((), ())


@settings(max_examples=examples(60), deadline=None)
@given(packed=containers, before=st.integers(0, 40))
def test_code_in_memory_equals_code_in_the_stream(
    packed: list[tuple[bytes, list[tuple[int, int]]]], before: int
) -> None:
    data = b"".join(junk + fat_binary(*(code(*entry) for entry in codes)) for junk, codes in packed) + MAGIC
    found = list(fat_binaries_in(bytes(before) + data + fat_binary(code(PTX, 20)), before, before + len(data)))
    assert targets_of_code(piece for pieces in found for piece in pieces) == scan_fat_binaries([data])


def test_data_in_memory_is_not_mistaken_for_a_fat_binary() -> None:
    inside = code(MACHINE_CODE, 80, fat_binary(code(MACHINE_CODE, 35)))
    data = noise(500) + fat_binary(inside) + noise(500, 1)
    assert [sorted(it.target for it in found) for found in fat_binaries_in(data, 0, len(data))] == [["8.0"]]
