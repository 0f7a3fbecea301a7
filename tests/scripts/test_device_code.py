"""Architecture lists and fat binaries, wherever the stream of bytes is cut."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scripts.matrix_refresh.device_code import (
    DeviceTargets,
    GlibcWatch,
    find_flags,
    scan_fat_binaries,
    targets_of_flags,
)
from tests.scripts.wheels import MACHINE_CODE, MAGIC, PTX, code, fat_binary, noise

ARCHITECTURES = (35, 37, 50, 60, 61, 70, 75, 80, 86, 89, 90, 100, 103, 110, 120, 121)
CONFUSING = (b"", MAGIC, MAGIC[:3], MAGIC * 2, MAGIC + b"\2\0\x10\0", MAGIC + b"\1\0\x18\0" + bytes(8), b"\0" * 40)

entries = st.tuples(st.sampled_from([PTX, MACHINE_CODE]), st.sampled_from(ARCHITECTURES))
containers = st.lists(st.tuples(st.sampled_from(CONFUSING), st.lists(entries, max_size=5)), max_size=5)


def _cut(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    """``data`` in pieces of ``sizes``, which begin anew at their end."""
    place = number = 0
    while place < len(data):
        size = sizes[number % len(sizes)]
        yield data[place : place + size]
        place, number = place + size, number + 1


def _written(architectures: set[int]) -> tuple[str, ...]:
    return tuple(f"{number // 10}.{number % 10}" for number in sorted(architectures))


@settings(max_examples=60, deadline=None)
@given(packed=containers, sizes=st.lists(st.integers(1, 200), min_size=1, max_size=4))
def test_what_was_packed_is_scanned_back(packed: list[tuple[bytes, list[tuple[int, int]]]], sizes: list[int]) -> None:
    data = b"".join(before + fat_binary(*(code(*entry) for entry in held)) for before, held in packed) + MAGIC
    wanted = {kind: {architecture for _, held in packed for it, architecture in held if it == kind} for kind in (1, 2)}
    found = scan_fat_binaries(_cut(data, sizes))
    assert found == DeviceTargets(_written(wanted[MACHINE_CODE]), _written(wanted[PTX]))


def test_code_that_looks_like_a_container_is_no_container() -> None:
    inside = code(MACHINE_CODE, 80, fat_binary(code(MACHINE_CODE, 35)))
    assert scan_fat_binaries([noise(500), fat_binary(inside), noise(500, 1)]) == (("8.0",), ())


def test_a_container_of_another_make_ends_where_it_is_not_understood() -> None:
    data = fat_binary(code(MACHINE_CODE, 80), code(7, 90), code(MACHINE_CODE, 90))
    assert scan_fat_binaries([data, fat_binary(code(PTX, 70))]) == (("8.0",), ("7.0",))


def test_a_library_that_ends_within_a_container_gives_what_is_there() -> None:
    data = fat_binary(code(MACHINE_CODE, 80), code(MACHINE_CODE, 90, bytes(5000)))
    assert scan_fat_binaries([data[:-100]]) == (("8.0", "9.0"), ())


def test_a_container_that_is_too_large_is_refused_before_it_is_filled() -> None:
    head = fat_binary(code(MACHINE_CODE, 80))[:8] + struct.pack("<Q", (1 << 28) + 1)
    chunks = iter([noise(100) + head, bytes(1000), bytes(1000)])
    with pytest.raises(ValueError, match="a fat binary of 268435457 bytes is too large to be one"):
        scan_fat_binaries(chunks)
    assert len(list(chunks)) == 2


def test_after_enough_containers_nothing_more_is_asked_for() -> None:
    chunks = iter([fat_binary(code(MACHINE_CODE, architecture)) for architecture in (70, 80, 90)])
    assert scan_fat_binaries(chunks, enough=2).sass == ("7.0", "8.0")
    assert len(list(chunks)) == 1


def test_a_library_without_device_code_has_no_targets() -> None:
    assert scan_fat_binaries([noise(1000)]) == ((), ())


@settings(max_examples=60, deadline=None)
@given(
    flags=st.lists(
        st.sampled_from(["sm_75", "sm_80", "sm_90a", "sm_120", "compute_90", "sm_100f"]), min_size=1, max_size=40
    ),
    separator=st.sampled_from(" ;,"),
    before=st.sampled_from([b"", b"\0", b"getArchFlags", b"sm_\0", b"cuda\0compute_", noise(700)]),
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=4),
)
def test_the_list_of_architectures_is_found_across_the_borders_of_chunks(
    flags: list[str], separator: str, before: bytes, sizes: list[int]
) -> None:
    data = before + separator.join(flags).encode() + b"\0more text"
    assert find_flags(_cut(data, sizes)) == flags


@pytest.mark.parametrize("text", [b"", b"sm_80", b"sm_80 sm_90 and so on\0", b"sm_9\0", b"compute\0sm_\0", noise(5000)])
def test_text_that_is_no_list_of_architectures_is_none(text: bytes) -> None:
    assert find_flags([text]) is None


def test_behind_the_list_nothing_is_read() -> None:
    chunks = iter([noise(100), b"\0sm_80 sm_90\0", b"unread"])
    assert find_flags(chunks) == ["sm_80", "sm_90"]
    assert list(chunks) == [b"unread"]


def test_compute_is_ptx_for_pytorch_and_both_for_tensorflow() -> None:
    flags = ["sm_120", "sm_90a", "sm_86", "compute_90"]
    assert targets_of_flags(flags) == (("8.6", "9.0a", "12.0"), ("9.0",))
    assert targets_of_flags(flags, compute_is_both=True) == (("8.6", "9.0", "9.0a", "12.0"), ("9.0",))


@pytest.mark.parametrize("flag", ["8.6", "sm_8", "sm_86x", "gfx906", ""])
def test_a_flag_of_another_form_is_an_error(flag: str) -> None:
    with pytest.raises(ValueError, match="is not an architecture flag"):
        targets_of_flags([flag])


@settings(max_examples=40, deadline=None)
@given(sizes=st.lists(st.integers(1, 60), min_size=1, max_size=4))
def test_the_newest_symbol_version_of_glibc_is_noted_in_passing(sizes: list[int]) -> None:
    data = b"\0GLIBC_2.2.5\0GLIBC_2.17\0GLIBC_2.9\0xGLIBC_2.40\0GLIBC_2.41x\0GLIBCXX_3.4\0" + noise(200)
    watch = GlibcWatch()
    assert b"".join(watch.passing(_cut(data, sizes))) == data
    assert watch.newest == "2.17"


def test_where_no_symbol_version_is_named_there_is_none() -> None:
    watch = GlibcWatch()
    assert list(watch.passing([noise(500)])) == [noise(500)]
    assert watch.newest is None
