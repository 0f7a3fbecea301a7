"""A package index on the loopback interface: listings in both formats, byte ranges, and the ways it may fail."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal, NamedTuple

from packaging.utils import canonicalize_name

from tests.scripts.wheels import BuiltFile

Failure = Literal["no-ranges", "busy-once", "cut", "missing", "forbidden", "nonsense"]
_PIECE = 1 << 14


class _Listed(NamedTuple):
    content: bytes
    yanked: bool


class ServedIndex(ThreadingHTTPServer):
    """Serves what was added. ``sent`` counts the bytes of each file that went out, ``requests`` the requests for it.

    ``failures`` says what goes wrong, by the name of a file or of a project. ``form`` is that of the listings,
    ``files_at``, ``sha256`` and, by a file's name, ``uploaded`` what they say of files; ``credentials`` are the
    Authorization headers that came.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.form: Literal["json", "html"] = "json"
        self.failures: dict[str, Failure] = {}
        self.sent: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self.files: dict[str, _Listed] = {}
        self.files_at = "../../files/"
        self.sha256: str | None = None
        self.uploaded: dict[str, str] = {}
        self.credentials: set[str] = set()

    @property
    def endpoint(self) -> str:
        """The URL of the listings."""
        return f"http://127.0.0.1:{self.server_address[1]}/simple/"

    def url(self, name: str) -> str:
        """The URL of one file."""
        return f"http://127.0.0.1:{self.server_address[1]}/files/{name}"

    def add(self, *files: BuiltFile, yanked: bool = False) -> None:
        """Add files to the index."""
        for file in files:
            self.files[file.name] = _Listed(file.content, yanked)

    def of_project(self, project: str) -> dict[str, _Listed]:
        """The files of one project."""
        return {name: file for name, file in self.files.items() if canonicalize_name(name.split("-")[0]) == project}

    def wheel_requests(self) -> int:
        """The number of requests for wheels so far."""
        return sum(count for name, count in self.requests.items() if name.endswith(".whl"))


@contextmanager
def served_index() -> Iterator[ServedIndex]:
    """An index that answers until the block ends."""
    with ServedIndex() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.004}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class _Answer(BaseHTTPRequestHandler):
    server: ServedIndex
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self) -> None:
        """Use small buffers in the kernel, so that about as much is written as requested."""
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _PIECE)
        super().setup()

    def do_GET(self) -> None:
        _, room, name, *_ = [*self.path.split("/"), "", ""]
        self.server.requests[name] += 1
        self.server.credentials.add(self.headers.get("Authorization", ""))
        failure = self.server.failures.get(name)
        if failure == "busy-once":
            del self.server.failures[name]
            self._send(HTTPStatus.SERVICE_UNAVAILABLE, b"", {"Retry-After": "1"})
        elif failure == "forbidden":
            self._send(HTTPStatus.FORBIDDEN, b"no")
        elif room == "simple" and failure == "nonsense":
            self._send(HTTPStatus.OK, b"{", {"Content-Type": "application/vnd.pypi.simple.v1+json"})
        elif room == "simple" and self.server.of_project(name):
            self._listing(name)
        elif room == "files" and name in self.server.files and failure != "missing":
            self._file(name, failure)
        else:
            self._send(HTTPStatus.NOT_FOUND, b"not here")

    def _listing(self, project: str) -> None:
        files = self.server.of_project(project)
        digest = self.server.sha256
        hashes = {
            name: hashlib.sha256(file.content).hexdigest() if digest is None else digest for name, file in files.items()
        }
        if self.server.form == "json":
            listed = [
                {
                    "filename": name,
                    "url": f"{self.server.files_at}{name}",
                    "hashes": {"sha256": hashes[name]},
                    "yanked": it.yanked,
                    **({"upload-time": self.server.uploaded[name]} if name in self.server.uploaded else {}),
                }
                for name, it in files.items()
            ]
            page = json.dumps({"meta": {"api-version": "1.0"}, "name": project, "files": listed})
            kind = "application/vnd.pypi.simple.v1+json"
        else:
            place = self.server.files_at
            page = "<!DOCTYPE html><html><body>" + "".join(
                f'<a href="{place}{escape(name)}#sha256={hashes[name]}"{it.yanked * " data-yanked"}>{name}</a>'
                for name, it in files.items()
            )
            kind = "text/html"
        self._send(HTTPStatus.OK, page.encode(), {"Content-Type": kind})

    def _file(self, name: str, failure: Failure | None) -> None:
        content = self.server.files[name].content
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if match is None or failure == "no-ranges":
            self._send(HTTPStatus.OK, content)
            return
        first, last = match.groups()
        start = int(first) if first else max(0, len(content) - int(last))
        end = min(int(last), len(content) - 1) if first and last else len(content) - 1
        part = content[start : end + 1]
        headers = {"Content-Range": f"bytes {start}-{end}/{len(content)}", "Content-Length": str(len(part))}
        if failure == "cut" and first:
            part = part[: len(part) // 2]
            self.close_connection = True
        self._send(HTTPStatus.PARTIAL_CONTENT, part, headers)

    def _send(self, status: HTTPStatus, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        name = self.path.rpartition("/")[2]
        try:
            for start in range(0, len(body), _PIECE):
                piece = body[start : start + _PIECE]
                self.server.sent[name] += len(piece)
                self.wfile.write(piece)
        except OSError:
            self.close_connection = True

    def handle(self) -> None:
        """A client that closes its connection is not an error."""
        try:
            super().handle()
        except OSError:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in http.server
        """No output."""
