"""A server on the loopback interface that follows a script, path by path, and a proxy for it."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal, NamedTuple

STALL = 10.0
"""Seconds that a stalled answer waits, far longer than any test; the end of the server ends them."""


class Answer(NamedTuple):
    """The answer to one request. ``length`` is the claimed Content-Length, None to send none and keep the end open.

    ``stall`` says before what nothing comes for a long time, ``drop`` closes the connection without a word.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}
    length: int | Literal["true", "chunked", "chunked and cut"] | None = "true"
    stall: Literal["head", "body"] | None = None
    drop: bool = False


class ReceivedRequest(NamedTuple):
    """One received request; names of headers are in lower case. ``protocol`` is what TLS agreed on (ALPN)."""

    method: str
    target: str
    headers: Mapping[str, str]
    protocol: str | None = None


class Flaky(ThreadingHTTPServer):
    """Answers each path with the next of its ``answers``, the last of them repeatedly; ``requests`` are the requests.

    With ``logins``, the values of the header Authorization that are let in, all else gets 401.
    """

    daemon_threads = True
    request_queue_size = 100

    def __init__(self, handler: type[BaseHTTPRequestHandler], *, certificate: Path | None = None) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.scheme = "http"
        self.answers: dict[str, list[Answer]] = {}
        self.requests: list[ReceivedRequest] = []
        self.logins: set[str] | None = None
        self.connections = 0
        self.ending = threading.Event()
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            context.set_alpn_protocols(["h2", "http/1.1"])
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
            self.scheme = "https"

    def url(self, path: str = "/", *, login: str = "", host: str = "127.0.0.1") -> str:
        """The URL of ``path``."""
        at = f"{login}@" if login else ""
        return f"{self.scheme}://{at}{host}:{self.server_address[1]}{path}"

    def says(self, path: str, *answers: Answer) -> str:
        """Script the answers of a path, and return its URL."""
        self.answers[path] = list(answers)
        return self.url(path)

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that close their connections are a part of these tests."""


class _Scripted(BaseHTTPRequestHandler):
    server: Flaky
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        self.server.connections += 1
        super().setup()

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        connection = self.connection
        protocol = connection.selected_alpn_protocol() if isinstance(connection, ssl.SSLSocket) else None
        self.server.requests.append(ReceivedRequest("GET", self.path, headers, protocol))
        if self.server.logins is not None and headers.get("authorization") not in self.server.logins:
            self._give(Answer(401))
            return
        answers = self.server.answers.get(self.path, [Answer(404)])
        self._give(answers.pop(0) if len(answers) > 1 else answers[0])

    def _give(self, answer: Answer) -> None:
        if answer.stall == "head":
            self.server.ending.wait(STALL)
        if answer.drop or self.server.ending.is_set():
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self._give_body(answer)

    def _give_body(self, answer: Answer) -> None:
        length = len(answer.body) if answer.length == "true" else answer.length
        chunked = length in {"chunked", "chunked and cut"}
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
        elif length is not None and answer.status != 304:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        if answer.stall == "body":
            self.wfile.write(answer.body[:1])
            self.server.ending.wait(STALL)
        self.wfile.write(b"%x\r\n%b\r\n" % (len(answer.body), answer.body) if chunked else answer.body)
        if length == "chunked":
            self.wfile.write(b"0\r\n\r\n")
        elif length != len(answer.body):
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name http.server gives it
        """No output: the tests check the requests."""


class _Proxy(_Scripted):
    def do_CONNECT(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append(ReceivedRequest("CONNECT", self.path, headers))
        self.close_connection = True
        refusal = self.server.answers.get(self.path)
        if refusal:
            self.send_error(refusal[0].status)
            return
        host, _, port = self.path.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=STALL) as server:
            self.send_response(200)
            self.end_headers()
            back = threading.Thread(target=_pass_on, args=(server, self.connection), daemon=True)
            back.start()
            _pass_on(self.connection, server)
            back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def flaky_server(certificate: Path | None = None) -> Iterator[Flaky]:
    """A server until the block ends; with a certificate, over https."""
    with _running(Flaky(_Scripted, certificate=certificate)) as server:
        yield server


@contextmanager
def flaky_proxy() -> Iterator[Flaky]:
    """A proxy until the block ends: it answers absolute URLs as scripted, and forwards CONNECT."""
    with _running(Flaky(_Proxy)) as server:
        yield server


@contextmanager
def _running(server: Flaky) -> Iterator[Flaky]:
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.004}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.ending.set()
            server.shutdown()
            thread.join()
