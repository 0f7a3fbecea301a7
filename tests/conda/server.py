"""Conda channels on the loopback interface: recorded and made-up ones, credentials, faults on request.

    with ChannelServer() as server:
        server.channel("private").add(record("alpha", depends=["beta >=2"]))
        server.fault("/private/noarch/*", status=503, times=2)
        ...  # server.url_of("private"); server.mirrors sends conda.anaconda.org here
        assert server.count("/private/linux-64/*") == 2

tests/loopback.py has what it shares with other servers.
"""

from __future__ import annotations

import re
import socket
import struct
import sys
from collections.abc import Callable, Mapping

from tests.conda.faults import Fault
from tests.conda.shelf import RECORDED_CHANNELS, File, RecordedShelf, Shelf
from tests.listener import Listener
from tests.loopback import Answer, LoopbackServer, Reply, ServedRequest

ANACONDA = "https://conda.anaconda.org/"
_CHANGED = "Sat, 22 Aug 2026 00:00:00 GMT"
_TOKEN = re.compile(r"/t/([^/]+)(/.*)")


class ChannelServer(LoopbackServer[Fault]):
    """Channels of one server, and the requests that it received.

    Recorded channels lie where conda.anaconda.org has them; ``zst`` and ``sharded`` are about them.
    """

    def __init__(self, *, recorded: bool = True, zst: bool = True, sharded: bool = False) -> None:
        super().__init__(_Answer)
        self._tokens: dict[str, str] = {}
        self._shelves: dict[str, Shelf] = {}
        for name in RECORDED_CHANNELS if recorded else ():
            self._shelves[name] = RecordedShelf(self.url_of(name), name, zst=zst, sharded=sharded)

    @property
    def mirrors(self) -> dict[str, list[str]]:
        """The configuration that makes rattler use this server for conda.anaconda.org."""
        return {ANACONDA: [f"{self.url}/"]}

    def url_of(self, channel: str, *, token: str | None = None) -> str:
        """The address of a channel, without a slash at the end; with ``token`` as conda has it in a path."""
        return f"{self.url}{'' if token is None else f'/t/{token}'}/{channel}"

    def channel(
        self, name: str, *, subdirs: tuple[str, ...] = ("linux-64", "noarch"), zst: bool = True, sharded: bool = False
    ) -> Shelf:
        """A channel of a single test, with these subdirectories, at ``/name/``; a name may have slashes."""
        shelf = Shelf(self.url_of(name), zst=zst, sharded=sharded)
        shelf.open(*subdirs)
        self._shelves[name] = shelf
        return shelf

    def require_token(self, token: str, *, under: str) -> None:
        """Serve paths that start with ``under`` only below ``/t/token``: 401 without a token, 403 for another."""
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
        the server runs. ``redirect`` sends elsewhere; ``{path}`` in it stands for the requested path.
        ``alter`` changes the right body; tests/conda/faults.py has some ways to do so.
        """
        it = Fault(pattern, status, retry_after, reset, cut, stall, redirect, alter)
        self.due(it, times)

    def refusal(self, path: str, authorization: str) -> Reply | None:
        """The answer to a client that may not see ``path``: 401 for no credentials, 403 for wrong ones."""
        token, path = _without_token(path)
        for under, right in self._tokens.items():
            if path.startswith(under) and token != right:
                return Reply(401 if token is None else 403, b"a token, please")
        if not self.allows(path, authorization):
            challenge = {"WWW-Authenticate": 'Basic realm="channel"'}
            return Reply(403, b"not you") if authorization else Reply(401, b"who are you?", challenge)
        return None

    def reply(self, path: str, headers: Mapping[str, str]) -> Reply:
        """The correct answer without faults; the names of ``headers`` are in lower case."""
        _, path = _without_token(path.partition("?")[0])
        for name in sorted(self._shelves, key=len, reverse=True):
            if path.startswith(f"/{name}/"):
                file = self._shelves[name].file(path.removeprefix(f"/{name}/"))
                return Reply(404, b"no such file") if file is None else _sent(file, headers)
        return Reply(404, b"no such channel")


class _Answer(Answer):
    server: Listener[ChannelServer]
    connection: socket.socket

    def answer(self) -> None:
        owner = self.server.owner
        headers = self.request_headers()
        refusal = owner.refusal(self.path, headers.get("authorization", ""))
        if refusal is not None:
            self.send(refusal)
            return
        fault = owner.fault_for(self.path)
        if fault is None:
            self.send(owner.reply(self.path, headers))
            return
        owner.stopping.wait(fault.stall)
        if fault.reset:
            self._reset()
        else:
            self.send(self._wrong(fault), cut=fault.cut)

    def _wrong(self, fault: Fault) -> Reply:
        """The answer that ``fault`` makes of the correct one."""
        if fault.redirect is not None:
            return Reply(fault.status or 302, b"", {"Location": fault.redirect.replace("{path}", self.path)})
        if fault.status is not None:
            wait = {"Retry-After": str(fault.retry_after)} if fault.retry_after is not None else {}
            return Reply(fault.status, b"something is wrong", wait)
        if fault.alter is None:
            return self.server.owner.reply(self.path, self.request_headers())
        right = self.server.owner.reply(self.path, {})
        return right._replace(body=fault.alter(right.body)) if right.status == 200 else right

    def _reset(self) -> None:
        """Close so that the client notices at once, with a packet RST: SO_LINGER is zero seconds."""
        self.server.owner.note(ServedRequest(self.command, self.path, 0), self.request_headers())
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


def _without_token(path: str) -> tuple[str | None, str]:
    match = _TOKEN.fullmatch(path)
    return (None, path) if match is None else (match[1], match[2])


def _sent(file: File, headers: Mapping[str, str]) -> Reply:
    answer_headers = {"ETag": file.tag, "Last-Modified": _CHANGED, "Cache-Control": file.caching}
    if file.tag in headers.get("if-none-match", ""):
        return Reply(304, b"", answer_headers)
    return Reply(200, file.body, {**answer_headers, "Content-Type": file.content_type})
