"""Queries to indexes with servers that give misleading answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from envsolve.errors import OutsideError
from envsolve.index.client import Indexes, Pool
from envsolve.index.fetch import PAGE_LIMIT, Fetcher, Response
from envsolve.index.file_metadata import FileMetadata
from envsolve.index.metadata import Metadata
from envsolve.index.one_index import Index, Trust
from envsolve.index.store import Store
from envsolve.model.package import PackageFile

PAGE = b'<!DOCTYPE html><html><body><a href="alpha-1.0-py3-none-any.whl">alpha-1.0-py3-none-any.whl</a></body></html>'


class Forbidding:
    """Has one page, and forbids everything else, like a store that does not allow listing."""

    def __init__(self, page: str) -> None:
        self._page = page

    def fetch(self, url: str, headers: Mapping[str, str] | None = None, *, limit: int = PAGE_LIMIT) -> Response:
        if url == self._page:
            return Response(200, {"content-type": "text/html"}, PAGE, url)
        return Response(403, {}, b"", url)


def test_a_forbidden_page_on_pytorchs_index_is_missing() -> None:
    fetcher = Forbidding("https://packages.example.org/simple/alpha/")
    pool = Pool(fetcher, Store(None), FileMetadata())
    own = {"alpha": "https://download.pytorch.org/whl/cu126/"}
    project = Indexes(["https://packages.example.org/simple/"], pool, own).project("alpha")
    assert project is not None
    assert project.versions == ("1.0",)


def test_a_forbidden_page_on_another_index_is_an_error() -> None:
    fetcher = Forbidding("https://packages.example.org/simple/alpha/")
    pool = Pool(fetcher, Store(None), FileMetadata())
    urls = ["https://private.example.org/simple/", "https://packages.example.org/simple/"]
    with pytest.raises(OutsideError, match="index-refused"):
        Indexes(urls, pool).project("alpha")


class Changing:
    """Has two versions of a project, cacheable by ``caching``; the names of the files are their digests."""

    def __init__(self, versions: tuple[str, str], caching: str) -> None:
        self._versions, self._caching = versions, caching

    def fetch(self, url: str, headers: Mapping[str, str] | None = None, *, limit: int = PAGE_LIMIT) -> Response:
        names = [f"alpha-{version}-py3-none-any.whl" for version in self._versions]
        body = "".join(f'<a href="{name}">{name}</a>' for name in names).encode()
        return Response(200, {"content-type": "text/html", "cache-control": self._caching}, body, url)


class Slow:
    """A shelf on which another thread gets its answer while this one reads: ``meanwhile`` happens in between, once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.meanwhile: Callable[[], object] | None = None

    def read(self, bucket: str, key: str) -> bytes | None:
        content = self._store.read(bucket, key)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return content

    def write(self, bucket: str, key: str, content: bytes) -> None:
        self._store.write(bucket, key, content)


@pytest.mark.parametrize("caching", ["no-store", "max-age=600"])
def test_pages_read_from_the_cache_do_not_mix_with_answers_of_the_index(tmp_path: Path, caching: str) -> None:
    """Files are cached by the position of their version: the second of one page is not the second of another."""
    shelf, url = Slow(Store(tmp_path)), "https://packages.example.org/simple/"

    def second_file(index: Index) -> tuple[str, str]:
        project = index.project("alpha")
        assert project is not None
        return project.versions[1], project.files(1)[0][0]

    first = Index(url, Changing(("1.0", "2.0"), "max-age=600"), shelf, Trust(), FileMetadata())
    second_file(first)
    again = Index(url, Changing(("1.0", "7.0"), caching), shelf, Trust(refresh=True), FileMetadata())
    shelf.meanwhile = lambda: second_file(again)
    again.at_hand("alpha")
    version, file = second_file(Index(url, Changing(("1.0", "9.0"), caching), shelf, Trust(), FileMetadata()))
    assert file == f"alpha-{version}-py3-none-any.whl"


class Noting:
    """A shelf that records what is written to it."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def read(self, bucket: str, key: str) -> bytes | None:
        return None

    def write(self, bucket: str, key: str, content: bytes) -> None:
        self.written.append(bucket)


class Known:
    """Has the metadata of every file."""

    builds = False

    def __call__(self, fetcher: Fetcher, file: PackageFile) -> Metadata:
        return of_file(file.name)

    def built(self, fetcher: Fetcher, file: PackageFile) -> Metadata:
        raise AssertionError(file)


def test_new_facts_are_written_once() -> None:
    shelf = Noting()
    pool = Pool(Changing(("1.0", "1.1"), "max-age=600"), shelf, Known())
    index = pool.index("https://packages.example.org/simple/")
    project = index.project("alpha")
    assert project is not None
    for position in (1, 0, 1):
        index.metadata(project, project.files(position)[0])
    assert shelf.written == ["pages", "metadata", "metadata"]


def test_responses_that_must_not_be_cached_are_not_written() -> None:
    shelf = Noting()
    index = Pool(Changing(("1.0", "1.1"), "no-store"), shelf, Known()).index("https://packages.example.org/simple/")
    project = index.project("alpha")
    assert project is not None
    index.metadata(project, project.files(1)[0])
    assert shelf.written == []


def of_file(name: str) -> Metadata:
    return Metadata("alpha", name.split("-")[1], (), None)
