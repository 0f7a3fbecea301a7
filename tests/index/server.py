"""A package index on the loopback interface: recorded and made-up projects, rich and poor pages, faults on request.

    with IndexServer() as server:
        server.add("alpha", [wheel("alpha", "1.0", ["beta>=2"])])
        server.fault("/simple/beta/", status=503, times=2)
        ...  # server.index_url
        assert server.count("/simple/*") == 2

Every answer counts before its body is sent: once a client has it, so has ``server.requests``.
"""

from __future__ import annotations

import base64
import re
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import unquote

from packaging.utils import canonicalize_name

from tests.index.faults import Fault
from tests.index.packages import IndexFile
from tests.index.shelf import JSON_TYPE, Mode, Page, Shelf
from tests.listener import Listener

_PAGE_CACHING = "max-age=600, public"
_FILE_CACHING = "max-age=365000000, immutable, public"


class Asked(NamedTuple):
    """One request: the path is as the client sent it, the status what it got."""

    method: str
    path: str
    status: int


class _Reply(NamedTuple):
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


class IndexServer:
    """Indexes at paths of one server, and the requests that came to them.

    ``requests`` and ``headers`` hold one entry for each request, in the order of the answers; the names of headers are
    in lower case. ``latency_ms`` is added to each answer. Without ``ranges`` each file comes whole.
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
        self.requests: list[Asked] = []
        self.headers: list[dict[str, str]] = []
        self.ranges = ranges
        self.latency_ms = latency_ms
        self.stopping = threading.Event()
        self._padding = padding
        self._faults: list[tuple[Fault, list[int]]] = []
        self._credentials: dict[str, str] = {}
        self._lock = threading.Lock()
        self._server = Listener(self, _Answer)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._shelves: list[Shelf] = []
        self._first = self.index("/simple/", mode, recorded=recorded)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Scheme, host and port, without a slash at the end."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def index_url(self) -> str:
        """The index at ``/simple/``."""
        return self._first.index_url

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def stop(self) -> None:
        """End at once, whatever is still under way."""
        self.stopping.set()
        self._server.shutdown()
        self._server.hang_up()
        self._server.server_close()
        self._thread.join()

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

    def require(self, user: str, password: str, *, under: str = "/") -> None:
        """Ask for credentials on paths that start with ``under``."""
        self._credentials[under] = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

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
        self._faults.append((it, [times]))

    def heal(self) -> None:
        """Go right from now on."""
        with self._lock:
            self._faults.clear()

    def count(self, pattern: str = "*", *, method: str = "*") -> int:
        """How many requests came for paths that match ``pattern``."""
        return sum(fnmatchcase(it.path, pattern) and fnmatchcase(it.method, method) for it in self.requests)

    def note(self, asked: Asked, headers: dict[str, str]) -> None:
        """Count one request."""
        with self._lock:
            self.requests.append(asked)
            self.headers.append(headers)

    def fault_for(self, path: str) -> Fault | None:
        """The fault that is due on ``path``; it is due once less from now on."""
        with self._lock:
            for fault, left in self._faults:
                if left[0] > 0 and fault.meets(path):
                    left[0] -= 1
                    return fault
        return None

    def allows(self, path: str, authorization: str) -> bool:
        """Whether the credentials do for ``path``."""
        return all(authorization == it for under, it in self._credentials.items() if path.startswith(under))

    def reply(self, path: str, headers: Mapping[str, str]) -> _Reply:
        """The right answer, as if nothing were wrong; the names of ``headers`` are in lower case."""
        path = path.partition("?")[0]
        for shelf in sorted(self._shelves, key=lambda it: len(it.path), reverse=True):
            if path.startswith(shelf.files_path):
                return self._file(shelf, path.removeprefix(shelf.files_path), headers)
            if path == shelf.path:
                return _paged(shelf.root(as_json=_takes_json(headers)), headers)
            if path.startswith(shelf.path):
                return _project(shelf, path, headers)
        return _Reply(404)

    def _file(self, shelf: Shelf, path: str, headers: Mapping[str, str]) -> _Reply:
        project, _, name = path.partition("/")
        name = unquote(name)
        files = shelf.files(project)
        if name.endswith(".metadata") and name not in files:
            file = files.get(name.removesuffix(".metadata"))
            content = file.metadata if file is not None and shelf.mode != "poor" else None
        else:
            content = files[name].content if name in files else None
        if content is None:
            return _Reply(404)
        told = {"Cache-Control": _FILE_CACHING, "Content-Type": "binary/octet-stream"}
        return _ranged(content, told, headers.get("range", "")) if self.ranges else _Reply(200, content, told)


class _Answer(BaseHTTPRequestHandler):
    server: Listener[IndexServer]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self) -> None:
        owner = self.server.owner
        asked = self._asked()
        owner.stopping.wait(owner.latency_ms / 1000)
        if not owner.allows(self.path, asked.get("authorization", "")):
            self._send(_Reply(401, b"who are you?", {"WWW-Authenticate": 'Basic realm="packages"'}))
            return
        fault = owner.fault_for(self.path)
        if fault is None:
            self._send(owner.reply(self.path, asked))
            return
        if fault.stall and not fault.cut:
            owner.stopping.wait(fault.stall)
        self._send(self._wrong(fault), fault)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _asked(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items()}

    def _wrong(self, fault: Fault) -> _Reply:
        """The answer that ``fault`` makes of the right one."""
        if fault.redirect is not None:
            return _Reply(fault.status or 302, b"", {"Location": fault.redirect.replace("{path}", self.path)})
        if fault.body is not None:
            packed = {"Content-Encoding": fault.encoding} if fault.encoding is not None else {}
            told = {"Content-Type": fault.content_type, "Cache-Control": _PAGE_CACHING, **packed}
            return _Reply(fault.status or 200, fault.body, told)
        if fault.status is not None:
            wait = {"Retry-After": str(fault.retry_after)} if fault.retry_after is not None else {}
            return _Reply(fault.status, b"something is wrong", wait)
        asked = self._asked()
        if fault.alter is None:
            right = self.server.owner.reply(self.path, asked)
            caching = {} if fault.caching is None else {"Cache-Control": fault.caching}
            return right._replace(headers={**right.headers, **caching})
        plain = {name: value for name, value in asked.items() if name not in {"range", "accept-encoding"}}
        right = self.server.owner.reply(self.path, plain)
        told = {name: value for name, value in right.headers.items() if name != "Accept-Ranges"}
        altered = fault.alter(right.body)
        if "Accept-Ranges" not in right.headers:
            return _Reply(right.status, altered, told)
        return _ranged(altered, told, asked.get("range", ""))

    def _send(self, reply: _Reply, fault: Fault | None = None) -> None:
        self.server.owner.note(Asked(self.command, self.path, reply.status), self._asked())
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.status != 304:
            self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if self.command == "HEAD" or reply.status == 304:
            return
        if fault is None or not fault.cut:
            self.wfile.write(reply.body)
            return
        self.wfile.write(reply.body[: len(reply.body) // 2])
        self.wfile.flush()
        self.server.owner.stopping.wait(fault.stall)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in http.server
        """Say nothing."""


def _project(shelf: Shelf, path: str, headers: Mapping[str, str]) -> _Reply:
    name = unquote(path.removeprefix(shelf.path))
    project = canonicalize_name(name.rstrip("/"))
    if name != f"{project}/":
        return _Reply(301, b"", {"Location": f"{shelf.path}{project}/"})
    page = shelf.page(project, as_json=_takes_json(headers))
    return _Reply(404, b"not here", {"Cache-Control": _PAGE_CACHING}) if page is None else _paged(page, headers)


def _takes_json(headers: Mapping[str, str]) -> bool:
    return JSON_TYPE in headers.get("accept", "")


def _paged(page: Page, headers: Mapping[str, str]) -> _Reply:
    told = {"ETag": page.tag, "Cache-Control": _PAGE_CACHING, "Content-Type": page.content_type}
    told["Vary"] = "Accept, Accept-Encoding"
    if page.tag in headers.get("if-none-match", ""):
        return _Reply(304, b"", told)
    if "gzip" in headers.get("accept-encoding", ""):
        return _Reply(200, page.zipped, {**told, "Content-Encoding": "gzip"})
    return _Reply(200, page.body, told)


def _ranged(content: bytes, told: Mapping[str, str], asked: str) -> _Reply:
    """The part of ``content`` that a header ``Range`` asks for; all of it for one that is none."""
    told = {**told, "Accept-Ranges": "bytes"}
    match = re.fullmatch(r"bytes=(?=.*\d)(\d*)-(\d*)", asked)
    if match is None:
        return _Reply(200, content, told)
    first, last = match.groups()
    start = int(first) if first else max(0, len(content) - int(last))
    end = min(int(last), len(content) - 1) if first and last else len(content) - 1
    if start > end:
        return _Reply(416, b"", {**told, "Content-Range": f"bytes */{len(content)}"})
    return _Reply(206, content[start : end + 1], {**told, "Content-Range": f"bytes {start}-{end}/{len(content)}"})
