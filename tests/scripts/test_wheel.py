"""One remote wheel: how little of it is transferred, and every way it may fail."""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Callable

import pytest
import requests
from packaging.version import Version

from envsolve.releases.errors import ReleaseError
from envsolve.releases.wheels import WheelFile
from scripts.matrix_refresh.wheel import Wheel
from tests.scripts.served import Failure, ServedIndex
from tests.scripts.wheels import BuiltFile, noise, wheel

MEGABYTE = 1 << 20
NAME = "thing-1.0-cp312-cp312-manylinux_2_28_x86_64.whl"
Open = Callable[[], Wheel]


@pytest.fixture(scope="module")
def built() -> BuiltFile:
    return wheel(
        "thing",
        "1.0",
        {
            "thing/large.so": noise(24 * MEGABYTE),
            "thing/version.py": "cuda = '12.8'\n",
            "thing/vendored/other-1.0.dist-info/METADATA": "Name: other\n",
            "thing/after.so": noise(2 * MEGABYTE, 1),
        },
        requires=["numpy"],
    )


@pytest.fixture
def opened(index: ServedIndex, session: requests.Session, built: BuiltFile) -> Open:
    index.add(built)
    file = WheelFile("thing", Version("1.0"), NAME, index.url(NAME), None, "linux-64", ("3.12",), "2.28")
    return lambda: Wheel(file, session)


@pytest.mark.thorough
def test_small_members_of_a_large_wheel_are_cheap(opened: Open, index: ServedIndex) -> None:
    with opened() as thing:
        assert thing.text("thing/version.py") == "cuda = '12.8'\n"
        assert "Name: thing\n" in (thing.text(".dist-info/METADATA") or "")
    assert index.sent[NAME] < 200_000


def test_stopping_early_leaves_the_rest_of_a_member_unread(opened: Open, index: ServedIndex) -> None:
    with opened() as thing:
        beginning = next(thing.chunks("thing/large.so"))
        assert thing.text("thing/version.py")
    assert noise(24 * MEGABYTE).startswith(beginning)
    assert index.sent[NAME] < 10 * MEGABYTE, "what the kernel holds between both ends, and no more"


def test_it_counts_transferred_bytes(opened: Open, index: ServedIndex) -> None:
    with opened() as thing:
        assert len(thing.content("thing/after.so")) == 2 * MEGABYTE
        assert thing.transferred == pytest.approx(index.sent[NAME], abs=100)


def test_it_lists_its_members_and_those_that_were_read(opened: Open) -> None:
    with opened() as thing:
        thing.text("version.py")
        assert thing.read == ["thing/version.py"]
        assert thing.members[:2] == ["thing/large.so", "thing/version.py"]


def test_the_member_with_the_shortest_path_is_read(opened: Open) -> None:
    with opened() as thing:
        assert thing.find(".dist-info/METADATA") == "thing-1.0.dist-info/METADATA"
        assert thing.find("nothing.so") is None
        assert thing.text("nothing.py") is None


def test_a_library_is_not_text(opened: Open) -> None:
    with (
        opened() as thing,
        pytest.raises(ReleaseError, match=r"thing/large\.so cannot be read: its large\.so is too large"),
    ):
        thing.text("large.so")


@pytest.mark.thorough
def test_a_member_that_would_fill_the_memory_is_not_decompressed(index: ServedIndex, session: requests.Session) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.so", "w") as member:
        for _ in range(257):
            member.write(bytes(MEGABYTE))
    index.add(BuiltFile(NAME, packed.getvalue()))
    file = WheelFile("thing", Version("1.0"), NAME, index.url(NAME), None, "linux-64", ("3.12",), "2.28")
    with (
        Wheel(file, session) as thing,
        pytest.raises(ReleaseError, match=rf"^{NAME}: a\.so cannot be read: its a\.so is too large$"),
    ):
        thing.content("a.so")


@pytest.mark.thorough
def test_a_busy_server_is_queried_again_when_it_says_so(opened: Open, index: ServedIndex) -> None:
    index.failures[NAME] = "busy-once"
    started = time.monotonic()
    with opened() as thing:
        assert thing.text("version.py")
    assert time.monotonic() - started >= 1


@pytest.mark.parametrize("failure", ["no-ranges", "missing", "forbidden"])
def test_an_invalid_wheel_is_one_clear_error(failure: Failure, opened: Open, index: ServedIndex) -> None:
    index.failures[NAME] = failure
    with pytest.raises(ReleaseError, match=f"{NAME} cannot be read: "):
        opened()
    assert index.sent[NAME] < 10 * MEGABYTE


def test_a_lost_connection_is_one_clear_error(opened: Open, index: ServedIndex) -> None:
    index.failures[NAME] = "cut"
    with opened() as thing, pytest.raises(ReleaseError, match=r"thing/large\.so cannot be read: "):
        thing.content("thing/large.so")


def test_bytes_that_are_no_wheel_are_one_clear_error(opened: Open, index: ServedIndex) -> None:
    index.add(BuiltFile(NAME, b"<html>not a wheel</html>"))
    with pytest.raises(ReleaseError, match=f"{NAME} cannot be read: "):
        opened()


def test_a_damaged_member_is_one_clear_error(opened: Open, index: ServedIndex, built: BuiltFile) -> None:
    middle = built.content.index(b"thing/version.py") + len(b"thing/version.py")
    damaged = built.content[:middle] + b"\xff" * 8 + built.content[middle + 8 :]
    index.add(BuiltFile(NAME, damaged))
    with opened() as thing, pytest.raises(ReleaseError, match=r"thing/version\.py cannot be read: "):
        thing.text("thing/version.py")
