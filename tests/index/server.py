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
    """Indexes at paths of one server, and the requests that came to them.

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
        """Another index of this server, e.g. at ``/a/simple/`` or, as PyTorch has them, at ``/whl/cu126/``."""
        shelf = Shelf(self.url, path, mode, recorded=recorded, padding=self._padding)
        self._shelves.append(shelf)
        return shelf

    def add(self, name: str, files: Iterable[IndexFile], *, page_name: str | None = None) -> None:
        """List made-up files on the index at ``/simple/``, as :meth:`Shelf.add` does."""
        self._first.add(name, files, page_name=page_name)

    def withdraw(self, name: str) -> None:
        """Forget the made-up files of a project on the index at ``/simple/``."""
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

        ``status`` answers so, with ``retry_after`` in its header. ``body`` takes the place of the right one, as
        ``content_type``, packed as ``encoding`` says it is and to be kept as long as a right page; ``alter`` changes
        the right one. ``cut`` hangs up in the middle of the body. ``stall`` waits so many seconds before the answer, or
        with ``cut`` in its middle. ``redirect`` sends elsewhere; ``{path}`` in it stands for the path that was asked
        for. ``caching`` takes the place of the header Cache-Control in a right answer.
        """
        it = Fault(pattern, status, retry_after, cut, stall, body, content_type, encoding, redirect, alter, caching)
        self.due(it, times)

    def reply(self, path: str, headers: Mapping[str, str]) -> Reply:
        """The right answer, as if nothing were wrong; the names of ``headers`` are in lower case."""
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
        told = {"Cache-Control": _FILE_CACHING, "Content-Type": "binary/octet-stream"}
        return _ranged(content, told, headers.get("range", "")) if self.ranges else Reply(200, content, told)


class _Answer(Answer):
    server: Listener[IndexServer]

    def answer(self) -> None:
        owner = self.server.owner
        asked = self.asked()
        owner.stopping.wait(owner.latency_ms / 1000)
        if not owner.allows(self.path, asked.get("authorization", "")):
            self.send(Reply(401, b"who are you?", {"WWW-Authenticate": 'Basic realm="packages"'}))
            return
        fault = owner.fault_for(self.path)
        if fault is None:
            self.send(owner.reply(self.path, asked))
            return
        if fault.stall and not fault.cut:
            owner.stopping.wait(fault.stall)
        self.send(self._wrong(fault), cut=fault.cut, pause=fault.stall)

    def _wrong(self, fault: Fault) -> Reply:
        """The answer that ``fault`` makes of the right one."""
        if fault.redirect is not None:
            return Reply(fault.status or 302, b"", {"Location": fault.redirect.replace("{path}", self.path)})
        if fault.body is not None:
            packed = {"Content-Encoding": fault.encoding} if fault.encoding is not None else {}
            told = {"Content-Type": fault.content_type, "Cache-Control": _PAGE_CACHING, **packed}
            return Reply(fault.status or 200, fault.body, told)
        if fault.status is not None:
            wait = {"Retry-After": str(fault.retry_after)} if fault.retry_after is not None else {}
            return Reply(fault.status, b"something is wrong", wait)
        asked = self.asked()
        if fault.alter is None:
            right = self.server.owner.reply(self.path, asked)
            caching = {} if fault.caching is None else {"Cache-Control": fault.caching}
            return right._replace(headers={**right.headers, **caching})
        plain = {name: value for name, value in asked.items() if name not in {"range", "accept-encoding"}}
        right = self.server.owner.reply(self.path, plain)
        told = {name: value for name, value in right.headers.items() if name != "Accept-Ranges"}
        altered = fault.alter(right.body)
        if "Accept-Ranges" not in right.headers:
            return Reply(right.status, altered, told)
        return _ranged(altered, told, asked.get("range", ""))


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
    told = {"ETag": page.tag, "Cache-Control": _PAGE_CACHING, "Content-Type": page.content_type}
    told["Vary"] = "Accept, Accept-Encoding"
    if page.tag in headers.get("if-none-match", ""):
        return Reply(304, b"", told)
    if "gzip" in headers.get("accept-encoding", ""):
        return Reply(200, page.zipped, {**told, "Content-Encoding": "gzip"})
    return Reply(200, page.body, told)


def _ranged(content: bytes, told: Mapping[str, str], asked: str) -> Reply:
    """The part of ``content`` that a header ``Range`` requests; all of it for an invalid one."""
    told = {**told, "Accept-Ranges": "bytes"}
    match = re.fullmatch(r"bytes=(?=.*\d)(\d*)-(\d*)", asked)
    if match is None:
        return Reply(200, content, told)
    first, last = match.groups()
    start = int(first) if first else max(0, len(content) - int(last))
    end = min(int(last), len(content) - 1) if first and last else len(content) - 1
    if start > end:
        return Reply(416, b"", {**told, "Content-Range": f"bytes */{len(content)}"})
    return Reply(206, content[start : end + 1], {**told, "Content-Range": f"bytes {start}-{end}/{len(content)}"})
