"""Conda channels on the loopback interface: recorded and made-up ones, credentials, faults on request.

    with ChannelServer() as server:
        server.channel("private").add(record("alpha", depends=["beta >=2"]))
        server.fault("/private/noarch/*", status=503, times=2)
        ...  # server.url_of("private"); server.mirrors sends conda.anaconda.org here
        assert server.count("/private/linux-64/*") == 2

Every answer counts before its body is sent: once a client has it, so has ``server.requests``.
"""

from __future__ import annotations

import base64
import re
import socket
import struct
import sys
import threading
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import NamedTuple, Self

from tests.conda.faults import Fault
from tests.conda.shelf import RECORDED_CHANNELS, File, RecordedShelf, Shelf
from tests.listener import Listener

ANACONDA = "https://conda.anaconda.org/"
_CHANGED = "Sat, 22 Aug 2026 00:00:00 GMT"
_TOKEN = re.compile(r"/t/([^/]+)(/.*)")


class Asked(NamedTuple):
    """One request: the path is as the client sent it, the status what it got, 0 for a connection that was reset."""

    method: str
    path: str
    status: int


class _Reply(NamedTuple):
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


class ChannelServer:
    """Channels of one server, and the requests that came to them.

    ``requests`` and ``headers`` hold one entry for each request, in the order of the answers; the names of headers are
    in lower case. Recorded channels lie where conda.anaconda.org has them; ``zst`` and ``sharded`` are about them.
    """

    def __init__(self, *, recorded: bool = True, zst: bool = True, sharded: bool = False) -> None:
        self.requests: list[Asked] = []
        self.headers: list[dict[str, str]] = []
        self.stopping = threading.Event()
        self._faults: list[tuple[Fault, list[int]]] = []
        self._credentials: dict[str, str] = {}
        self._tokens: dict[str, str] = {}
        self._lock = threading.Lock()
        self._server = Listener(self, _Answer)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._shelves: dict[str, Shelf] = {}
        for name in RECORDED_CHANNELS if recorded else ():
            self._shelves[name] = RecordedShelf(self.url_of(name), name, zst=zst, sharded=sharded)

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
    def mirrors(self) -> dict[str, list[str]]:
        """What rattler's configuration has to say for conda.anaconda.org to be this server."""
        return {ANACONDA: [f"{self.url}/"]}

    def url_of(self, channel: str, *, token: str | None = None) -> str:
        """The address of a channel, without a slash at the end; with ``token`` as conda has it in a path."""
        return f"{self.url}{'' if token is None else f'/t/{token}'}/{channel}"

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

    def channel(
        self, name: str, *, subdirs: tuple[str, ...] = ("linux-64", "noarch"), zst: bool = True, sharded: bool = False
    ) -> Shelf:
        """A channel of a test's own, with these parts, at ``/name/``; a name may have slashes."""
        shelf = Shelf(self.url_of(name), zst=zst, sharded=sharded)
        shelf.open(*subdirs)
        self._shelves[name] = shelf
        return shelf

    def require(self, user: str, password: str, *, under: str = "/") -> None:
        """Ask for a name and a password on paths that start with ``under``: 401 without, 403 for others."""
        self._credentials[under] = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def require_token(self, token: str, *, under: str) -> None:
        """Show paths that start with ``under`` below ``/t/token`` alone: 401 without a token, 403 for another."""
        self._tokens[under] = token

    def fault(
        self,
        pattern: str,
        *,
        times: int = sys.maxsize,
        status: int | None = None,
        retry_after: int | str | None = None,
        reset: bool = False,
        cut: bool = False,
        stall: float = 0.0,
        redirect: str | None = None,
        alter: Callable[[bytes], bytes] | None = None,
    ) -> None:
        """Go wrong on paths that match ``pattern`` (``*`` for anything), ``times`` times; the first fault that fits.

        ``status`` answers so, with ``retry_after`` in its header. ``reset`` breaks the connection off in place of an
        answer, ``cut`` in the middle of its body. ``stall`` waits so many seconds before the answer, and no longer than
        the server runs. ``redirect`` sends elsewhere; ``{path}`` in it stands for the path that was asked for.
        ``alter`` changes the right body; tests/conda/faults.py has some ways to do so.
        """
        it = Fault(pattern, status, retry_after, reset, cut, stall, redirect, alter)
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

    def refusal(self, path: str, authorization: str) -> _Reply | None:
        """The answer to somebody who may not see ``path``."""
        token, path = _without_token(path)
        for under, right in self._tokens.items():
            if path.startswith(under) and token != right:
                return _Reply(401 if token is None else 403, b"a token, please")
        for under, right in self._credentials.items():
            if path.startswith(under) and authorization != right:
                asks = {"WWW-Authenticate": 'Basic realm="channel"'}
                return _Reply(403, b"not you") if authorization else _Reply(401, b"who are you?", asks)
        return None

    def reply(self, path: str, headers: Mapping[str, str]) -> _Reply:
        """The right answer, as if nothing were wrong; the names of ``headers`` are in lower case."""
        _, path = _without_token(path.partition("?")[0])
        for name in sorted(self._shelves, key=len, reverse=True):
            if path.startswith(f"/{name}/"):
                file = self._shelves[name].file(path.removeprefix(f"/{name}/"))
                return _Reply(404, b"no such file") if file is None else _sent(file, headers)
        return _Reply(404, b"no such channel")


class _Answer(BaseHTTPRequestHandler):
    server: Listener[ChannelServer]
    connection: socket.socket
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self) -> None:
        owner = self.server.owner
        asked = self._asked()
        refusal = owner.refusal(self.path, asked.get("authorization", ""))
        if refusal is not None:
            self._send(refusal)
            return
        fault = owner.fault_for(self.path)
        if fault is None:
            self._send(owner.reply(self.path, asked))
            return
        owner.stopping.wait(fault.stall)
        if fault.reset:
            self._reset()
        else:
            self._send(self._wrong(fault), cut=fault.cut)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _asked(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items()}

    def _wrong(self, fault: Fault) -> _Reply:
        """The answer that ``fault`` makes of the right one."""
        if fault.redirect is not None:
            return _Reply(fault.status or 302, b"", {"Location": fault.redirect.replace("{path}", self.path)})
        if fault.status is not None:
            wait = {"Retry-After": str(fault.retry_after)} if fault.retry_after is not None else {}
            return _Reply(fault.status, b"something is wrong", wait)
        if fault.alter is None:
            return self.server.owner.reply(self.path, self._asked())
        right = self.server.owner.reply(self.path, {})
        return right._replace(body=fault.alter(right.body)) if right.status == 200 else right

    def _reset(self) -> None:
        """Close so that the client learns of it at once, with a packet RST: nothing lingers for zero seconds."""
        self.server.owner.note(Asked(self.command, self.path, 0), self._asked())
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def _send(self, reply: _Reply, *, cut: bool = False) -> None:
        self.server.owner.note(Asked(self.command, self.path, reply.status), self._asked())
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if reply.status != 304:
            self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if self.command == "HEAD" or reply.status == 304:
            return
        self.wfile.write(reply.body[: len(reply.body) // 2] if cut else reply.body)
        self.close_connection = self.close_connection or cut

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in http.server
        """Say nothing."""


def _without_token(path: str) -> tuple[str | None, str]:
    match = _TOKEN.fullmatch(path)
    return (None, path) if match is None else (match[1], match[2])


def _sent(file: File, headers: Mapping[str, str]) -> _Reply:
    told = {"ETag": file.tag, "Last-Modified": _CHANGED, "Cache-Control": file.caching}
    if file.tag in headers.get("if-none-match", ""):
        return _Reply(304, b"", told)
    return _Reply(200, file.body, {**told, "Content-Type": file.content_type})
