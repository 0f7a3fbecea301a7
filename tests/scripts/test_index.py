"""The files of an index, in the terms of the matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
import requests
from packaging.version import Version

from envsolve.releases.wheels import Listing, WheelFile, glibc_of, pythons_of
from scripts.matrix_refresh.errors import RefreshError
from scripts.matrix_refresh.index import Index
from tests.scripts.served import Failure, ServedIndex
from tests.scripts.wheels import BuiltFile


def _listed(index: ServedIndex, session: requests.Session, cache: Path, *names: str) -> list[WheelFile]:
    index.add(*(BuiltFile(name, name.encode()) for name in names))
    return Index(index.endpoint, cache, session, offline=False).wheels("thing")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("tags", "platforms", "pythons", "glibc"),
    [
        ("cp312-cp312-manylinux_2_28_x86_64", ["linux-64"], ["3.12"], "2.28"),
        ("cp310-cp310-manylinux_2_17_x86_64.manylinux2014_x86_64", ["linux-64"], ["3.10"], "2.17"),
        ("cp37-cp37m-manylinux1_x86_64", ["linux-64"], ["3.7"], "2.5"),
        ("cp27-cp27mu-manylinux2010_x86_64", ["linux-64"], ["2.7"], "2.12"),
        ("cp312-cp312-manylinux_2_28_aarch64", ["linux-aarch64"], ["3.12"], "2.28"),
        ("cp312-cp312-win_amd64", ["win-64"], ["3.12"], None),
        ("cp39-none-macosx_10_9_x86_64", ["osx-64"], ["3.9"], None),
        ("cp312-none-macosx_11_0_arm64", ["osx-arm64"], ["3.12"], None),
        ("cp312-cp312-macosx_11_0_universal2", ["osx-64", "osx-arm64"], ["3.12"], None),
        ("cp39.cp310-none-win_amd64", ["win-64"], ["3.9", "3.10"], None),
        ("cp38-abi3-manylinux2014_x86_64", ["linux-64"], [], "2.17"),
        ("py3-none-manylinux_2_27_x86_64", ["linux-64"], [], "2.27"),
        ("py2.py3-none-any", [None], [], None),
    ],
)
def test_tags_of_a_wheel_give_its_platforms_pythons_and_c_library(
    tags: str,
    platforms: list[str | None],
    pythons: list[str],
    glibc: str | None,
    index: ServedIndex,
    session: requests.Session,
    tmp_path: Path,
) -> None:
    found = _listed(index, session, tmp_path, f"thing-1.0-{tags}.whl")
    assert sorted(wheel.platform or "" for wheel in found) == [platform or "" for platform in platforms]
    assert {(wheel.pythons, wheel.glibc) for wheel in found} == {(tuple(pythons), glibc)}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name",
    [
        "thing-1.0rc1-cp312-cp312-win_amd64.whl",
        "thing-1.0.dev3-cp312-cp312-win_amd64.whl",
        "thing-1.0-cp313-cp313t-win_amd64.whl",
        "thing-1.0-pp39-pypy39_pp73-win_amd64.whl",
        "thing-1.0-py2-none-any.whl",
        "thing-1.0-cp312-cp312-win_arm64.whl",
        "thing-1.0-cp312-cp312-win32.whl",
        "thing-1.0-cp312-cp312-linux_ppc64le.whl",
        "thing-1.0-cp312-cp312-musllinux_1_2_x86_64.whl",
        "thing-1.0-cp312-cp312-manylinux_2_28_ppc64le.whl",
        "thing-1.0-not-a-wheel-of-any-standard.whl",
        "thing-1.0.tar.gz",
    ],
)
@pytest.mark.parametrize("form", ["json", "html"])
def test_wheels_outside_of_the_matrix_are_left_out(
    name: str, form: Literal["json", "html"], index: ServedIndex, session: requests.Session, tmp_path: Path
) -> None:
    index.form = form
    wheel_name = "thing-1.0-cp312-cp312-win_amd64.whl"
    assert [wheel.filename for wheel in _listed(index, session, tmp_path, name, wheel_name)] == [wheel_name]


@pytest.mark.parametrize("form", ["json", "html"])
def test_withdrawn_files_are_left_out(
    form: Literal["json", "html"], index: ServedIndex, session: requests.Session, tmp_path: Path
) -> None:
    index.form = form
    index.add(BuiltFile("thing-2.0-cp312-cp312-win_amd64.whl", b"broken"), yanked=True)
    found = _listed(index, session, tmp_path, "thing-1.0-cp312-cp312-win_amd64.whl")
    assert [wheel.version for wheel in found] == [Version("1.0")]


def test_both_formats_of_a_listing_agree(index: ServedIndex, session: requests.Session, tmp_path: Path) -> None:
    names = ("thing-1.0-cp312-cp312-win_amd64.whl", "thing-1.0+local.1-cp312-cp312-manylinux_2_28_x86_64.whl")
    as_json = _listed(index, session, tmp_path, *names)
    index.form = "html"
    assert _listed(index, session, tmp_path, *names) == as_json
    assert all(wheel.sha256 and wheel.url == index.url(wheel.filename) for wheel in as_json)


def test_offline_uses_the_last_listing(index: ServedIndex, session: requests.Session, tmp_path: Path) -> None:
    online = _listed(index, session, tmp_path, "thing-1.0-cp312-cp312-win_amd64.whl")
    assert Index(index.endpoint, tmp_path, session, offline=True).wheels("thing") == online
    assert index.requests["thing"] == 1


def test_a_version_has_the_date_of_its_first_file(
    index: ServedIndex, session: requests.Session, tmp_path: Path
) -> None:
    index.uploaded = {
        "thing-1.0-cp312-cp312-win_amd64.whl": "2026-01-21T23:30:00-02:00",
        "thing-1.0-cp313-cp313-win_amd64.whl": "2026-03-11T08:00:00.123456Z",
        "thing-0.9.tar.gz": "2025-11-12T08:00:00Z",
        "thing-0.8-cp312-cp312-win_amd64.whl": "2025-10-15T08:00:00Z",
    }
    index.add(*(BuiltFile(name, b"") for name in ("thing-0.9.tar.gz", "thing-0.7-py3-none-any.whl")))
    index.add(BuiltFile("thing-0.8-cp312-cp312-win_amd64.whl", b""), yanked=True)
    online = Index(index.endpoint, tmp_path, session, offline=False)
    assert _listed(index, session, tmp_path, *list(index.uploaded)[:2])
    assert online.released("thing") == {"1.0": "2026-01-22", "0.9": "2025-11-12", "0.8": "2025-10-15"}
    assert online.wheels("thing")
    assert index.requests["thing"] == 2
    assert Index(index.endpoint, tmp_path, session, offline=True).released("thing") == online.released("thing")


def test_offline_a_listing_that_was_never_read_is_an_error(session: requests.Session, tmp_path: Path) -> None:
    with pytest.raises(RefreshError, match="the list of thing wheels is not in the cache: run once without --offline"):
        Index("http://127.0.0.1:1/simple", tmp_path, session, offline=True).wheels("thing")


def test_a_truncated_cached_listing_is_ignored(index: ServedIndex, session: requests.Session, tmp_path: Path) -> None:
    _listed(index, session, tmp_path, "thing-1.0-cp312-cp312-win_amd64.whl")
    (cached,) = tmp_path.rglob("thing.json")
    cached.write_text(cached.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    with pytest.raises(RefreshError, match="is not in the cache"):
        Index(index.endpoint, tmp_path, session, offline=True).wheels("thing")


def test_the_cache_holds_no_password(index: ServedIndex, session: requests.Session, tmp_path: Path) -> None:
    index.add(BuiltFile("thing-1.0-cp312-cp312-win_amd64.whl", b""))
    index.files_at = index.url("").replace("//", "//user:s3cret@")
    (file,) = Index(index.endpoint.replace("//", "//user:s3cret@"), tmp_path, session, offline=False).wheels("thing")
    assert file.url == index.url(file.filename)
    assert not [path for path in tmp_path.rglob("*") if "s3cret" in path.name]
    assert not [path for path in tmp_path.rglob("*.json") if "s3cret" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize(
    "tag", ["win_amd64.../../../../out", "win_amd64.\\out", "win_amd64.\n", "win_amd64" + ".x" * 120]
)
def test_an_invalid_file_name_is_left_out(
    tag: str, index: ServedIndex, session: requests.Session, tmp_path: Path
) -> None:
    assert _listed(index, session, tmp_path, f"thing-1.0-cp312-cp312-{tag}.whl") == []


@pytest.mark.parametrize("sha256", ["../" * 5, "0" * 63, "g" * 64, ""])
def test_an_invalid_hash_is_ignored(sha256: str, index: ServedIndex, session: requests.Session, tmp_path: Path) -> None:
    index.sha256 = sha256
    (file,) = _listed(index, session, tmp_path, "thing-1.0-cp312-cp312-win_amd64.whl")
    assert file.sha256 is None


@pytest.mark.parametrize(
    "left",
    ["[3]", "[[], []]", '[[], {"1.0": 3}]', '[["abc"], {}]', '[[["a"]], {}]', '[[["a", "b", 3]], {}]', "[" * 90_000],
)
def test_a_cached_listing_of_another_shape_is_ignored(left: str, session: requests.Session, tmp_path: Path) -> None:
    place = tmp_path / "listings" / "http-127.0.0.1-1-simple"
    place.mkdir(parents=True)
    (place / "thing.json").write_text(left, encoding="utf-8")
    with pytest.raises(RefreshError, match="is not in the cache"):
        Index("http://127.0.0.1:1/simple", tmp_path, session, offline=True).wheels("thing")


def test_a_project_that_the_index_lacks_has_no_wheels(
    index: ServedIndex, session: requests.Session, tmp_path: Path
) -> None:
    assert Index(index.endpoint, tmp_path, session, offline=False).wheels("nothing") == []


@pytest.mark.parametrize("failure", ["forbidden", "nonsense"])
def test_an_index_that_does_not_list_is_one_clear_error(
    failure: Failure, index: ServedIndex, session: requests.Session, tmp_path: Path
) -> None:
    index.failures["thing"] = failure
    with pytest.raises(RefreshError, match="the index did not list thing: "):
        Index(index.endpoint, tmp_path, session, offline=False).wheels("thing")


def _wheel(pythons: tuple[str, ...], glibc: str | None, tags: str = "", build: str = "") -> WheelFile:
    name = f"thing-1.0{build}-{tags or 'cp312-cp312-manylinux_2_28_x86_64'}.whl"
    return WheelFile("thing", Version("1.0"), name, "", None, "linux-64", pythons, glibc)


def test_wheels_are_sorted_by_the_newest_python() -> None:
    wheels = [_wheel((python,), "2.28") for python in ("3.9", "3.11", "3.10")]
    chosen = Listing([*wheels, _wheel((), "2.28")]).wheels("thing", Version("1.0"))
    assert [wheel.pythons for wheel in chosen] == [("3.11",), ("3.10",), ("3.9",), ()]


def test_the_wheel_that_pip_installs_comes_first() -> None:
    old = _wheel(("3.12",), "2.17", "cp312-cp312-manylinux2014_x86_64")
    first = _wheel(("3.12",), "2.28")
    second = _wheel(("3.12",), "2.28", build="-2")
    tenth = _wheel(("3.12",), "2.28", build="-10")
    assert Listing([first, old, tenth, second]).wheels("thing", Version("1.0")) == [tenth, second, first, old]


@pytest.mark.parametrize(
    ("wheels", "floor"),
    [
        ([(("3.11",), "2.17"), (("3.12",), "2.28")], "2.28"),
        ([(("3.12",), "2.17"), (("3.12",), "2.28")], "2.17"),
        ([(("3.11",), "2.5"), (("3.11",), "2.28"), (("3.12",), "2.17")], "2.17"),
        ([((), "2.17")], "2.17"),
        ([(("3.12",), None)], None),
        ([], None),
    ],
)
def test_the_c_library_of_a_release_is_the_lowest_that_every_python_runs_on(
    wheels: list[tuple[tuple[str, ...], str | None]], floor: str | None
) -> None:
    assert glibc_of(_wheel(pythons, glibc) for pythons, glibc in wheels) == floor


def test_pythons_are_sorted_numerically() -> None:
    assert pythons_of([_wheel(("3.10", "3.9"), None), _wheel(("3.11", "3.9"), None)]) == ["3.9", "3.10", "3.11"]
