"""A package index on the loopback interface: recorded and made-up projects, rich and poor pages, faults on request.

    with IndexServer() as server:
        server.add("alpha", [wheel("alpha", "1.0", ["beta>=2"])])
        server.fault("/simple/beta/", status=503, times=2)
        ...  # server.index_url
        assert server.count("/simple/*") == 2

tests/loopback.py has what it shares with other servers.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import unquote

from packaging.utils import canonicalize_name

from tests.index.faults import Fault
from tests.index.packages import IndexFile
from tests.index.shelf import JSON_TYPE, Mode, Page, Shelf
from tests.listener import Listener
from tests.loopback import Answer, LoopbackServer, Reply

_PAGE_CACHING = "max-age=600, public"
_FILE_CACHING = "max-age=365000000, immutable, public"


class IndexServer(LoopbackServer[Fault]):
    """Indexes at paths of one server, and the requests that it received.

    ``latency_ms`` is added to each answer. Without ``ranges`` each file comes whole.
    """

    def __init__(
        self,
        mode: Mode = "rich",
        *,
        recorded: bool = True,
        ranges: bool = True,
        latency_ms: float = 0.0,
        padding: int = 100_000,
    ) -> None:
        super().__init__(_Answer)
        self.ranges = ranges
        self.latency_ms = latency_ms
        self._padding = padding
        self._shelves: list[Shelf] = []
        self._first = self.index("/simple/", mode, recorded=recorded)

    @property
    def index_url(self) -> str:
        """The index at ``/simple/``."""
        return self._first.index_url

    def index(self, path: str, mode: Mode = "rich", *, recorded: bool = False) -> Shelf:
        """Another index of this server, e.g. at ``/a/simple/`` or, like PyTorch's, at ``/whl/cu126/``."""
        shelf = Shelf(self.url, path, mode, recorded=recorded, padding=self._padding)
        self._shelves.append(shelf)
        return shelf

    def add(self, name: str, files: Iterable[IndexFile], *, page_name: str | None = None) -> None:
        """List made-up files on the index at ``/simple/``, as :meth:`Shelf.add` does."""
        self._first.add(name, files, page_name=page_name)

    def withdraw(self, name: str) -> None:
        """Remove the made-up files of a project on the index at ``/simple/``."""
        self._first.withdraw(name)

    def page(self, name: str) -> bytes:
        """The page of a project there, as JSON."""
        found = self._first.page(name, as_json=True)
        assert found is not None, name
        return found.body

    def fault(
        self,
        pattern: str,
        *,
        times: int = sys.maxsize,
        status: int | None = None,
        retry_after: int | str | None = None,
        cut: bool = False,
        stall: float = 0.0,
        body: bytes | None = None,
        content_type: str = JSON_TYPE,
        encoding: str | None = None,
        redirect: str | None = None,
        alter: Callable[[bytes], bytes] | None = None,
        caching: str | None = None,
    ) -> None:
        """Go wrong on paths that match ``pattern`` (``*`` for anything), ``times`` times; the first fault that fits.

        ``status`` answers so, with ``retry_after`` in its header. ``body`` replaces the right one, as
        ``content_type``, compressed as ``encoding`` states and cached as long as a correct page; ``alter`` changes
        the right one. ``cut`` hangs up in the middle of the body. ``stall`` waits so many seconds before the answer, or
        with ``cut`` in its middle. ``redirect`` sends elsewhere; ``{path}`` in it stands for the requested
        path. ``caching`` replaces the header Cache-Control in a right answer.
        """
        it = Fault(pattern, status, retry_after, cut, stall, body, content_type, encoding, redirect, alter, caching)
        self.due(it, times)

    def reply(self, path: str, headers: Mapping[str, str]) -> Reply:
        """The correct answer without faults; the names of ``headers`` are in lower case."""
        path = path.partition("?")[0]
        for shelf in sorted(self._shelves, key=lambda it: len(it.path), reverse=True):
            if path.startswith(shelf.files_path):
                return self._file(shelf, path.removeprefix(shelf.files_path), headers)
            if path == shelf.path:
                return _paged(shelf.root(as_json=_takes_json(headers)), headers)
            if path.startswith(shelf.path):
                return _project(shelf, path, headers)
        return Reply(404)

    def _file(self, shelf: Shelf, path: str, headers: Mapping[str, str]) -> Reply:
        project, _, name = path.partition("/")
        name = unquote(name)
        files = shelf.files(project)
        if name.endswith(".metadata") and name not in files:
            file = files.get(name.removesuffix(".metadata"))
            content = file.metadata if file is not None and shelf.mode != "poor" else None
        else:
            content = files[name].content if name in files else None
        if content is None:
            return Reply(404)
        file_headers = {"Cache-Control": _FILE_CACHING, "Content-Type": "binary/octet-stream"}
        return (
            _ranged(content, file_headers, headers.get("range", ""))
            if self.ranges
            else Reply(200, content, file_headers)
        )


class _Answer(Answer):
    server: Listener[IndexServer]

    def answer(self) -> None:
        owner = self.server.owner
        received = self.request_headers()
        owner.stopping.wait(owner.latency_ms / 1000)
        if not owner.allows(self.path, received.get("authorization", "")):
            self.send(Reply(401, b"who are you?", {"WWW-Authenticate": 'Basic realm="packages"'}))
            return
        fault = owner.fault_for(self.path)
        if fault is None:
            self.send(owner.reply(self.path, received))
            return
        if fault.stall and not fault.cut:
            owner.stopping.wait(fault.stall)
        self.send(self._wrong(fault), cut=fault.cut, pause=fault.stall)

    def _wrong(self, fault: Fault) -> Reply:
        """The answer that ``fault`` makes of the correct one."""
        if fault.redirect is not None:
            return Reply(fault.status or 302, b"", {"Location": fault.redirect.replace("{path}", self.path)})
        if fault.body is not None:
            packed = {"Content-Encoding": fault.encoding} if fault.encoding is not None else {}
            page_headers = {"Content-Type": fault.content_type, "Cache-Control": _PAGE_CACHING, **packed}
            return Reply(fault.status or 200, fault.body, page_headers)
        if fault.status is not None:
            wait = {"Retry-After": str(fault.retry_after)} if fault.retry_after is not None else {}
            return Reply(fault.status, b"something is wrong", wait)
        received = self.request_headers()
        if fault.alter is None:
            right = self.server.owner.reply(self.path, received)
            caching = {} if fault.caching is None else {"Cache-Control": fault.caching}
            return right._replace(headers={**right.headers, **caching})
        plain = {name: value for name, value in received.items() if name not in {"range", "accept-encoding"}}
        right = self.server.owner.reply(self.path, plain)
        page_headers = {name: value for name, value in right.headers.items() if name != "Accept-Ranges"}
        altered = fault.alter(right.body)
        if "Accept-Ranges" not in right.headers:
            return Reply(right.status, altered, page_headers)
        return _ranged(altered, page_headers, received.get("range", ""))


def _project(shelf: Shelf, path: str, headers: Mapping[str, str]) -> Reply:
    name = unquote(path.removeprefix(shelf.path))
    project = canonicalize_name(name.rstrip("/"))
    if name != f"{project}/":
        return Reply(301, b"", {"Location": f"{shelf.path}{project}/"})
    page = shelf.page(project, as_json=_takes_json(headers))
    return Reply(404, b"not here", {"Cache-Control": _PAGE_CACHING}) if page is None else _paged(page, headers)


def _takes_json(headers: Mapping[str, str]) -> bool:
    return JSON_TYPE in headers.get("accept", "")


def _paged(page: Page, headers: Mapping[str, str]) -> Reply:
    page_headers = {"ETag": page.tag, "Cache-Control": _PAGE_CACHING, "Content-Type": page.content_type}
    page_headers["Vary"] = "Accept, Accept-Encoding"
    if page.tag in headers.get("if-none-match", ""):
        return Reply(304, b"", page_headers)
    if "gzip" in headers.get("accept-encoding", ""):
        return Reply(200, page.zipped, {**page_headers, "Content-Encoding": "gzip"})
    return Reply(200, page.body, page_headers)


def _ranged(content: bytes, answer_headers: Mapping[str, str], requested_range: str) -> Reply:
    """The part of ``content`` that a header ``Range`` requests; all of it for an invalid one."""
    answer_headers = {**answer_headers, "Accept-Ranges": "bytes"}
    match = re.fullmatch(r"bytes=(?=.*\d)(\d*)-(\d*)", requested_range)
    if match is None:
        return Reply(200, content, answer_headers)
    first, last = match.groups()
    start = int(first) if first else max(0, len(content) - int(last))
    end = min(int(last), len(content) - 1) if first and last else len(content) - 1
    if start > end:
        return Reply(416, b"", {**answer_headers, "Content-Range": f"bytes */{len(content)}"})
    return Reply(
        206, content[start : end + 1], {**answer_headers, "Content-Range": f"bytes {start}-{end}/{len(content)}"}
    )
