"""The ranks of wheel tags against packaging.tags, which lists every tag of a target in order."""

from __future__ import annotations

import itertools
import random

import pytest
from packaging import tags

from envsolve.index.fitting import Interpreter, Ranks, platform_tags
from envsolve.model.host import Platform
from envsolve.model.versions import LibcVersion

_TARGETS = [
    Interpreter((3, 11, 7), Platform.LINUX_64, LibcVersion(2, 35)),
    Interpreter((3, 9, 0), Platform.LINUX_AARCH64, LibcVersion(2, 28)),
    Interpreter((3, 14, 1), Platform.WIN_64),
    Interpreter((3, 12, 0), Platform.OSX_ARM64),
]


@pytest.mark.parametrize("target", _TARGETS, ids=lambda target: f"{target.platform}-{target.full_version}")
def test_tags_are_ranked_as_packaging_orders_them(target: Interpreter) -> None:
    expected = list(dict.fromkeys(_tags_of(target)))
    ranks = Ranks(target)
    named = [f"a-1-{tag}.whl" for tag in expected]
    ranked = [ranks.of_wheel(name) for name in named]
    assert None not in ranked
    assert ranked == sorted(rank for rank in ranked if rank is not None)
    assert len(set(ranked)) == len(ranked)


@pytest.mark.parametrize("target", _TARGETS, ids=lambda target: f"{target.platform}-{target.full_version}")
def test_no_other_tag_fits(target: Interpreter) -> None:
    known = set(map(str, _tags_of(target)))
    parts = [sorted({part for tag in known for part in [tag.split("-")[place]]}) for place in range(3)]
    more = (
        ["cp27", "cp399", "pp311"],
        ["cp27mu", "cp311t", "abi4"],
        ["win32", "macosx_99_0_arm64", "musllinux_1_2_x86_64"],
    )
    drawn = itertools.product(*(ours + theirs for ours, theirs in zip(parts, more, strict=True)))
    ranks = Ranks(target)
    for tag in _some(list(map("-".join, drawn))):
        assert (ranks.of_wheel(f"a-1-{tag}.whl") is not None) == (tag in known), tag


def test_the_best_tag_of_a_wheel_counts() -> None:
    ranks = Ranks(_TARGETS[0])
    several = ranks.of_wheel("a-1-cp311-cp311-manylinux_2_17_x86_64.manylinux_2_28_x86_64.whl")
    assert several == ranks.of_wheel("a-1-cp311-cp311-manylinux_2_28_x86_64.whl")


def test_a_wheel_for_a_newer_glibc_does_not_fit() -> None:
    assert Ranks(_TARGETS[0]).of_wheel("a-1-cp311-cp311-manylinux_2_39_x86_64.whl") is None


def _tags_of(target: Interpreter) -> list[tags.Tag]:
    minor = target.python[1]
    platforms = list(platform_tags(target))
    cpython = tags.cpython_tags((3, minor), [f"cp3{minor}"], platforms)
    return [*cpython, *tags.compatible_tags((3, minor), f"cp3{minor}", platforms)]


def _some(names: list[str]) -> list[str]:
    return random.Random(0).sample(names, min(len(names), 3000))  # noqa: S311 - a choice of examples
