"""Indexes and files in folders of this machine, by ``file:`` addresses as pip takes them: a page is ``index.html``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from envsolve.errors import OutsideError
from envsolve.index.failures import ANOTHER_INDEX
from envsolve.index.fetch import PAGE_LIMIT, Fetcher, Response

_RANGE = re.compile(r"bytes=(\d*)-(\d*)\Z")
_OK, _PARTIAL, _NOT_THERE = 200, 206, 404
_HTML = "text/html"


class WithFolders:
    """A Fetcher that reads ``file:`` addresses itself and leaves the others to ``others``."""

    def __init__(self, others: Fetcher) -> None:
        self._others = others

    def fetch(self, url: str, headers: Mapping[str, str] | None = None, *, limit: int = PAGE_LIMIT) -> Response:
        """See Fetcher. Raises OutsideError for a file that cannot be read, and for a page below no folder at all."""
        if not url.startswith("file:"):
            return self._others.fetch(url, headers, limit=limit)
        path = _path_of(url)
        if path.is_dir():
            path /= "index.html"
        try:
            return _read(path, url, (headers or {}).get("Range", ""), limit)
        except (FileNotFoundError, NotADirectoryError):
            if url.endswith("/") and not path.parent.is_dir():
                raise _no_folder(path.parent, url) from None
            return Response(_NOT_THERE, {}, b"", url)
        except OSError as error:
            raise OutsideError("file-unreadable", f"cannot read {path}: {error.strerror or error}") from None


def _no_folder(path: Path, url: str) -> OutsideError:
    """The error for an index whose folder is not there, which is not one that lacks a package."""
    error = OutsideError(
        "index-unreachable", f"{url} cannot be reached", (f"there is no folder {path}",), (ANOTHER_INDEX,)
    )
    error.address = url
    return error


def _path_of(url: str) -> Path:
    from urllib.parse import urlsplit
    from urllib.request import url2pathname  # imports half of an HTTP library

    return Path(url2pathname(urlsplit(url).path))


def _read(path: Path, url: str, asked: str, limit: int) -> Response:
    kind = _HTML if path.suffix == ".html" else "application/octet-stream"
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        wanted = _RANGE.match(asked)
        if wanted is None:
            if size > limit:
                raise OutsideError("response-too-large", f"{path} has {size} bytes, more than the {limit} of a page")
            return Response(_OK, {"content-type": kind}, file.read(), url)
        first = max(size - int(wanted[2]), 0) if not wanted[1] else int(wanted[1])
        last = size - 1 if not wanted[1] or not wanted[2] else min(int(wanted[2]), size - 1)
        file.seek(first)
        body = file.read(last - first + 1)
    return Response(_PARTIAL, {"content-type": kind, "content-range": f"bytes {first}-{last}/{size}"}, body, url)
