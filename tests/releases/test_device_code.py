"""Architecture lists, wherever the stream of bytes is split, and the required C library."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envsolve.releases.device_code import GlibcWatch, LibraryWatch, find_flags, targets_of_flags
from tests.laws import examples
from tests.scripts.wheels import noise


def _cut(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    """``data`` in pieces of ``sizes``, which are repeated."""
    place = number = 0
    while place < len(data):
        size = sizes[number % len(sizes)]
        yield data[place : place + size]
        place, number = place + size, number + 1


@settings(max_examples=examples(60), deadline=None)
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
def test_other_text_is_not_a_list_of_architectures(text: bytes) -> None:
    assert find_flags([text]) is None


def test_nothing_is_read_after_the_list() -> None:
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


@settings(max_examples=examples(40), deadline=None)
@given(sizes=st.lists(st.integers(1, 60), min_size=1, max_size=4))
def test_the_newest_symbol_version_of_glibc_is_collected(sizes: list[int]) -> None:
    data = b"\0GLIBC_2.2.5\0GLIBC_2.17\0GLIBC_2.9\0xGLIBC_2.40\0GLIBC_2.41x\0GLIBCXX_3.4\0" + noise(200)
    watch = GlibcWatch()
    assert b"".join(watch.passing(_cut(data, sizes))) == data
    assert watch.newest == "2.17"


def test_without_symbol_versions_there_is_none() -> None:
    watch = GlibcWatch()
    assert list(watch.passing([noise(500)])) == [noise(500)]
    assert watch.newest is None


def test_a_library_split_between_chunks_is_found() -> None:
    watch = LibraryWatch()
    assert list(watch.passing([b"\0libcudnn", b".so.9\0"])) == [b"\0libcudnn", b".so.9\0"]
    assert watch.majors == {"cudnn": ["9"]}
