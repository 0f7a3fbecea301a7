"""Integers in instructions: every loaded one is found, on both kinds of processors."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from envsolve.releases.constants import constants
from tests.scripts.wheels import constant

VERSIONS = st.integers(min_value=1000, max_value=0xFFFFFF)


@given(VERSIONS, st.binary(max_size=40), st.binary(max_size=40))
def test_x86_64_loads_are_found_anywhere(number: int, before: bytes, after: bytes) -> None:
    assert number in constants(before + constant(number) + after, aarch64=False)


@given(VERSIONS, st.lists(st.just(0xD503201F), max_size=8))
def test_aarch64_loads_of_one_or_two_instructions_are_found(number: int, no_ops: list[int]) -> None:
    code = b"".join(struct.pack("<I", word) for word in no_ops) + constant(number, aarch64=True)
    assert number in constants(code, aarch64=True)


def test_a_load_into_another_register_is_not_merged() -> None:
    one, other = constant(0x12345, aarch64=True), constant(0x12345, aarch64=True, register=3)
    assert 0x12345 not in constants(one[:4] + other[4:], aarch64=True)


def test_truncated_code_is_skipped() -> None:
    assert constants(b"\xb8\x01", aarch64=False) == set()
    assert constants(b"\xb8\x01", aarch64=True) == set()
