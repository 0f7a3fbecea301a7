"""Indexes in folders: existing files are read, and missing ones are an answer as well."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envsolve.errors import OutsideError
from envsolve.index.fetch import Response
from envsolve.index.local import WithFolders


class NoNetwork:
    """A Fetcher that must not be used."""

    def fetch(self, url: str, headers: object = None, *, limit: int = 0) -> Response:
        raise AssertionError(url)


@pytest.fixture
def fetcher() -> WithFolders:
    return WithFolders(NoNetwork())


@pytest.fixture
def page(tmp_path: Path) -> Path:
    page = tmp_path / "simple" / "torch" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_bytes(b"0123456789")
    return page


def test_a_folder_is_its_index_html(fetcher: WithFolders, page: Path) -> None:
    response = fetcher.fetch(f"{page.parent.as_uri()}/")
    assert (response.status, response.body, response.headers["content-type"]) == (200, b"0123456789", "text/html")


@pytest.mark.parametrize("missing", ["simple/jax/", "cu132/torch/", "simple/torch/torch-2.0.whl.metadata"])
def test_a_missing_file_is_a_page_that_the_index_lacks(missing: str, fetcher: WithFolders, page: Path) -> None:
    """Also a whole folder: a mirror of PyTorch's index need not have each of its CUDA versions."""
    assert fetcher.fetch(f"{page.parents[2].as_uri()}/{missing}").status == 404


@pytest.mark.parametrize(("byte_range", "body"), [("2-4", b"234"), ("-3", b"789"), ("8-", b"89"), ("8-99", b"89")])
def test_a_range_is_read_alone(byte_range: str, body: bytes, fetcher: WithFolders, page: Path) -> None:
    response = fetcher.fetch(page.as_uri(), {"Range": f"bytes={byte_range}"})
    assert (response.status, response.body) == (206, body)
    assert response.headers["content-range"].endswith("/10")


def test_an_unreadable_file_is_an_error(fetcher: WithFolders, page: Path) -> None:
    with pytest.raises(OutsideError, match="response-too-large"):
        fetcher.fetch(page.as_uri(), limit=9)
    page.unlink()
    page.mkdir()
    with pytest.raises(OutsideError, match="file-unreadable"):
        fetcher.fetch(f"{page.parent.as_uri()}/")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has neither FIFOs nor /dev/zero")
@pytest.mark.parametrize("kind", ["fifo", "/dev/zero", "/dev/urandom"])
def test_an_irregular_file_is_not_read(kind: str, fetcher: WithFolders, page: Path) -> None:
    page.unlink()
    if kind == "fifo":
        os.mkfifo(page)
    else:
        page.symlink_to(kind)
    for url in (page.as_uri(), f"{page.parent.as_uri()}/"):
        with pytest.raises(OutsideError, match="it is a pipe or a device"):
            fetcher.fetch(url)
    with pytest.raises(OutsideError, match="it is a pipe or a device"):
        fetcher.fetch(page.as_uri(), {"Range": "bytes=-3"})
