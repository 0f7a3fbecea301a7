"""Conda channels on the loopback interface for the benchmark of conda locks: a directory, served as it lies there.

Conda clients take repodata packed with zstd where they can, so what is sent is a file, and costs the machine little
beside what is measured. Answers may be kept for as long as those of conda.anaconda.org.
"""

from __future__ import annotations

import json
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ANACONDA = "https://conda.anaconda.org/"


class ChannelDirectory:
    """Channels that lie in a directory as ``CHANNEL/SUBDIR/repodata.json.zst``; ``url`` has no slash at its end."""

    def __init__(self, directory: Path) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Answer, directory=str(directory)))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def mirror(self, config_home: Path) -> None:
        """Have what reads rattler's settings below ``config_home`` come here in place of conda.anaconda.org."""
        path = config_home / "rattler" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"[mirrors]\n{json.dumps(ANACONDA)} = {json.dumps([f'{self.url}/'])}\n", "utf-8")

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Answer(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "public, max-age=1200")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in http.server
        """Say nothing."""
