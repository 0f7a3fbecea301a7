"""Facts read from a wheel are cached: a run resumes, and works without a network."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
import requests

from envsolve.releases.reader import Observation
from envsolve.releases.wheels import WheelFile
from scripts.matrix_refresh.cache import cached, store
from scripts.matrix_refresh.errors import RefreshError
from scripts.matrix_refresh.index import Index
from scripts.matrix_refresh.observation import Observations
from scripts.matrix_refresh.wheel import Wheel
from tests.scripts.served import ServedIndex
from tests.scripts.wheels import torch_wheel, wheel


class Reading(NamedTuple):
    """A wheel on an index, and what is needed to read it."""

    served: ServedIndex
    file: WheelFile
    cache: Path
    session: requests.Session

    def read(self, edition: str = "first", *, offline: bool = False, deep: bool = False, fresh: bool = False) -> str:
        """The one observed fact, read by a new run."""
        run = Observations(self.cache, edition, _observe, self.session, offline=offline, deep=deep, fresh=fresh)
        return run.read(self.file)["text"][0]

    def requests(self) -> int:
        """The number of requests for wheels so far."""
        return self.served.wheel_requests()

    def cached(self) -> Path:
        """The one file in the cache of wheels."""
        (path,) = (self.cache / "wheels").rglob("*.json")
        return path


def _observe(wheel: Wheel) -> Observation:
    wheel.text("version.py")
    return {"text": [wheel.text("version.py") or ""]}


@pytest.fixture
def reading(index: ServedIndex, session: requests.Session, tmp_path: Path) -> Reading:
    index.add(wheel("thing", "1.0", {"thing/version.py": "cuda = '12.8'"}))
    (file,) = Index(index.endpoint, tmp_path, session, offline=False).wheels("thing")
    return Reading(index, file, tmp_path, session)


def test_a_second_run_downloads_no_wheel(reading: Reading) -> None:
    first = reading.read()
    before = reading.requests()
    assert before > 0
    assert reading.read() == first
    assert reading.read(offline=True) == first
    assert reading.requests() == before


@pytest.mark.parametrize("change", [{"fresh": True}, {"edition": "second"}])
def test_a_wheel_is_read_again_on_request_or_for_more_facts(change: dict[str, bool], reading: Reading) -> None:
    first = reading.read()
    before = reading.requests()
    assert reading.read(**change) == first  # type: ignore[arg-type]
    assert reading.requests() == 2 * before


def test_a_wheel_with_a_skipped_library_is_read_once_more_by_a_deep_run(
    reading: Reading,
) -> None:
    def observe(wheel: Wheel) -> Observation:
        return {"text": [wheel.text("version.py") or ""] if wheel.may_read_deep() else []}

    def text(*, deep: bool) -> list[str]:
        return Observations(reading.cache, "first", observe, reading.session, deep=deep).read(reading.file)["text"]

    assert text(deep=False) == text(deep=False) == []
    assert text(deep=True) == ["cuda = '12.8'"]
    before = reading.requests()
    assert text(deep=True) == text(deep=False) == ["cuda = '12.8'"]
    assert reading.requests() == before


def test_a_wheel_of_the_same_name_with_other_bytes_is_another_wheel(reading: Reading) -> None:
    reading.read()
    before = reading.requests()
    reading._replace(file=reading.file._replace(sha256="0" * 64)).read()
    assert reading.requests() == 2 * before


def test_offline_a_wheel_that_was_never_read_is_an_error(reading: Reading) -> None:
    with pytest.raises(RefreshError, match=f"{reading.file.filename} is not in the cache: run once without --offline"):
        reading.read(offline=True)
    assert reading.requests() == 0


@pytest.mark.thorough
@pytest.mark.parametrize(
    "left", ["", '{"text": ["cu', "[]", "{}", "null", '{"read": 3}', '{"read": [], "text": "cuda"}', "[" * 90_000]
)
def test_a_truncated_cached_file_is_ignored(left: str, reading: Reading) -> None:
    first = reading.read()
    whole = reading.cached().read_text(encoding="utf-8")
    reading.cached().write_text(left, encoding="utf-8")
    with pytest.raises(RefreshError, match="is not in the cache"):
        reading.read(offline=True)
    assert reading.read() == first
    assert reading.cached().read_text(encoding="utf-8") == whole


def test_an_unreadable_wheel_is_not_stored(reading: Reading) -> None:
    reading.served.failures[reading.file.filename] = "missing"
    with pytest.raises(RefreshError):
        reading.read()
    assert not (reading.cache / "wheels").exists()


def test_an_unknown_form_names_the_wheel(reading: Reading) -> None:
    def observe(wheel: Wheel) -> Observation:
        raise ValueError("'gfx906' is not an architecture flag")

    with pytest.raises(RefreshError, match=rf"^{reading.file.filename}: 'gfx906' is not an architecture flag$"):
        Observations(reading.cache, "first", observe, reading.session).read(reading.file)


def test_each_member_that_was_read_is_listed_once(reading: Reading) -> None:
    seen = Observations(reading.cache, "first", _observe, reading.session).read(reading.file)
    assert seen["read"] == ["thing/version.py"]


def test_index_requests_are_counted_and_cached_files_are_not(reading: Reading, index: ServedIndex) -> None:
    run = Observations(reading.cache, "first", _observe, reading.session)
    run.read(reading.file)
    run.read(reading.file)
    assert (run.wheels_read, run.transferred) == (1, index.sent[reading.file.filename])


def test_several_wheels_are_read_concurrently(index: ServedIndex, session: requests.Session, tmp_path: Path) -> None:
    index.add(*(torch_wheel(f"2.{minor}.0", cuda=None) for minor in range(8)))
    files = Index(index.endpoint, tmp_path, session, offline=False).wheels("torch")
    run = Observations(tmp_path, "first", _observe, session)
    threads = [threading.Thread(target=run.read, args=(file,)) for file in files]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert run.wheels_read == 8
    assert run.transferred == sum(index.sent[file.filename] for file in files)


def test_a_cached_file_is_complete_or_missing(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "facts.json"
    assert cached(path) is None
    store(path, {"cuda": ["12.8"]})
    assert cached(path) == {"cuda": ["12.8"]}
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("fresh", [False, True])
def test_a_wheel_shared_by_two_releases_is_read_once(reading: Reading, fresh: bool) -> None:
    started = threading.Barrier(4)

    def observe(wheel: Wheel) -> Observation:
        time.sleep(0.05)
        return _observe(wheel)

    run = Observations(reading.cache, "first", observe, reading.session, fresh=fresh)

    def read(_: int) -> Observation:
        started.wait()
        return run.read(reading.file)

    with ThreadPoolExecutor(4) as pool:
        seen = list(pool.map(read, range(4)))
    assert run.wheels_read == 1
    assert all(one == seen[0] for one in seen)


@pytest.mark.thorough
def test_many_threads_may_store_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: store(path, ["a fact"] * 100 * number), range(200)))
    assert isinstance(cached(path), list)
    assert list(tmp_path.iterdir()) == [path]


def test_an_unwritable_folder_is_one_clear_error(reading: Reading, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(RefreshError, match=r"\.json cannot be written: Not a directory$"):
        reading._replace(cache=tmp_path / "file").read()


def test_a_directory_in_place_of_a_cached_file_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "facts.json").mkdir()
    assert cached(tmp_path / "facts.json") is None
    with pytest.raises(RefreshError, match=r"facts\.json cannot be written: Is a directory$"):
        store(tmp_path / "facts.json", [])
    assert [path.name for path in tmp_path.iterdir()] == ["facts.json"]
