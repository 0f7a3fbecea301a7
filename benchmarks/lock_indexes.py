"""Package indexes on the loopback interface for the benchmark of locks: how slow they are, and what was requested.

Each is a process of its own, so that it shares no interpreter with what is measured. Three kinds: the recorded index of
the tests, a replay server with a larger recording, and any index that is there already.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterable
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import IO, Protocol, cast
from urllib.parse import urlsplit


class Index(Protocol):
    """One index; ``url`` is what a tool gets as its ``--index-url``."""

    url: str

    def delay(self, milliseconds: int) -> None:
        """Add so much to every answer from now on."""

    def requests(self) -> int | None:
        """How many requests came since this was called last; None where the index does not tell."""

    def close(self) -> None:
        """End it, where it was started here."""


class RecordedIndex:
    """The index that the tests use, which the repository holds."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "benchmarks.lock_indexes"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = _pipe(self._process.stdout).readline().strip()

    def delay(self, milliseconds: int) -> None:
        """Add so much to every answer from now on."""
        self._send(f"delay {milliseconds}")

    def requests(self) -> int | None:
        """How many requests came since this was called last."""
        return int(self._send("requests"))

    def close(self) -> None:
        """End it."""
        self._process.communicate()

    def _send(self, words: str) -> str:
        commands = _pipe(self._process.stdin)
        commands.write(words + "\n")
        commands.flush()
        return _pipe(self._process.stdout).readline()


class NamedIndex:
    """An index that is there; one with ``/__latency`` and ``/__stats`` can be slowed down and counts requests."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._place = urlsplit(url).netloc
        self._counts = self._get("/__stats") is not None

    def delay(self, milliseconds: int) -> None:
        """Add so much to every answer from now on."""
        if self._counts:
            self._get(f"/__latency?ms={milliseconds}")
        elif milliseconds:
            raise SystemExit(f"{self.url} cannot be slowed down: --latency 0 is all that can be measured")

    def requests(self) -> int | None:
        """How many pages, metadata files and wheels were requested since the last call."""
        if not self._counts:
            return None
        counts = self._get("/__stats?reset=1") or {}
        return sum(int(str(counts.get(kind, 0))) for kind in ("pages", "meta", "wheel"))

    def close(self) -> None:
        """Leave it as it was found."""
        self.delay(0)

    def _get(self, path: str) -> dict[str, object] | None:
        with closing(HTTPConnection(self._place, timeout=30)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            content = answer.read()
        if answer.status != HTTPStatus.OK:
            return None
        found = json.loads(content)
        return found if isinstance(found, dict) else None


class ReplayIndex(NamedIndex):
    """A replay server that is started here, with what it recorded."""

    def __init__(self, python: Path, script: Path, snapshot: Path) -> None:
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [str(python), str(script), "--snap", str(snapshot), "--port", str(port)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if not any(line.startswith("ready") for line in _pipe(self._process.stdout)):
            raise SystemExit(f"{script} did not start")
        super().__init__(f"http://127.0.0.1:{port}/simple/")

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.communicate()


def _pipe(end: IO[str] | None) -> IO[str]:
    """One of the requested pipes, which are there."""
    return cast("IO[str]", end)


def serve(commands: Iterable[str]) -> None:
    """Serve the recorded index of the tests, and do what ``commands`` say until they end."""
    from tests.index.server import IndexServer

    with IndexServer() as server:
        print(server.index_url, flush=True)
        for command in commands:
            word, _, value = command.partition(" ")
            if word.strip() == "delay":
                server.latency_ms = float(value)
            print(len(server.requests), flush=True)
            server.requests.clear()
            server.headers.clear()


if __name__ == "__main__":
    serve(sys.stdin)
