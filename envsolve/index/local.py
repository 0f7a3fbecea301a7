"""Indexes and files in folders of this machine, by ``file:`` addresses as in pip; a page is ``index.html``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from envsolve.boundary.files import open_regular
from envsolve.errors import OutsideError
from envsolve.index.fetch import PAGE_LIMIT, Fetcher, Response

_RANGE = re.compile(r"bytes=(\d*)-(\d*)\Z")
_OK, _PARTIAL, _NOT_THERE = 200, 206, 404
_HTML = "text/html"


class WithFolders:
    """A Fetcher that reads ``file:`` addresses itself and passes others to ``others``."""

    def __init__(self, others: Fetcher) -> None:
        self._others = others

    def fetch(self, url: str, headers: Mapping[str, str] | None = None, *, limit: int = PAGE_LIMIT) -> Response:
        """See Fetcher. Raises OutsideError for a file that exists but cannot be read."""
        if not url.startswith("file:"):
            return self._others.fetch(url, headers, limit=limit)
        path = path_of(url)
        if path.is_dir():
            path /= "index.html"
        try:
            return _read(path, url, (headers or {}).get("Range", ""), limit)
        except (FileNotFoundError, NotADirectoryError):
            return Response(_NOT_THERE, {}, b"", url)
        except OSError as error:
            raise OutsideError("file-unreadable", f"cannot read {path}: {error.strerror or error}") from None


def path_of(url: str) -> Path:
    """The file or folder at a ``file:`` address."""
    from urllib.parse import urlsplit
    from urllib.request import url2pathname  # imports half of an HTTP library

    return Path(url2pathname(urlsplit(url).path))


def _read(path: Path, url: str, byte_range: str, limit: int) -> Response:
    kind = _HTML if path.suffix == ".html" else "application/octet-stream"
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        wanted = _RANGE.match(byte_range)
        if wanted is None:
            if size > limit:
                raise OutsideError("response-too-large", f"{path} has {size} bytes, more than the {limit} of a page")
            return Response(_OK, {"content-type": kind}, file.read(limit), url)
        first = max(size - int(wanted[2]), 0) if not wanted[1] else int(wanted[1])
        last = size - 1 if not wanted[1] or not wanted[2] else min(int(wanted[2]), size - 1)
        file.seek(first)
        body = file.read(last - first + 1)
    return Response(_PARTIAL, {"content-type": kind, "content-range": f"bytes {first}-{last}/{size}"}, body, url)
