"""Asking indexes, where a server says something else than it means."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from envsolve.errors import OutsideError
from envsolve.index.client import Indexes, Pool
from envsolve.index.fetch import PAGE_LIMIT, Response
from envsolve.index.file_metadata import FileMetadata
from envsolve.index.store import Store

PAGE = b'<!DOCTYPE html><html><body><a href="alpha-1.0-py3-none-any.whl">alpha-1.0-py3-none-any.whl</a></body></html>'


class Forbidding:
    """Has one page, and forbids everything else, as a store does that may not be listed."""

    def __init__(self, page: str) -> None:
        self._page = page

    def fetch(self, url: str, headers: Mapping[str, str] | None = None, *, limit: int = PAGE_LIMIT) -> Response:
        if url == self._page:
            return Response(200, {"content-type": "text/html"}, PAGE, url)
        return Response(403, {}, b"", url)


def test_what_pytorchs_index_forbids_it_does_not_have() -> None:
    fetcher = Forbidding("https://packages.example.org/simple/alpha/")
    pool = Pool(fetcher, Store(None), FileMetadata())
    own = {"alpha": "https://download.pytorch.org/whl/cu126/"}
    project = Indexes(["https://packages.example.org/simple/"], pool, own).project("alpha")
    assert project is not None
    assert project.versions == ("1.0",)


def test_what_another_index_forbids_is_an_error() -> None:
    fetcher = Forbidding("https://packages.example.org/simple/alpha/")
    pool = Pool(fetcher, Store(None), FileMetadata())
    urls = ["https://private.example.org/simple/", "https://packages.example.org/simple/"]
    with pytest.raises(OutsideError, match="index-refused"):
        Indexes(urls, pool).project("alpha")
