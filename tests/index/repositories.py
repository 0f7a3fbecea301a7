"""Git repositories on a loopback server, served by git itself (git-http-backend)."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Self

_WHO = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "init.defaultBranch=main")
BACKEND = """
import os, zipfile

STEM = "{name}-{version}"

def _metadata():
    return "Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n{requires}"

def prepare_metadata_for_build_wheel(directory, config_settings=None):
    os.mkdir(os.path.join(directory, STEM + ".dist-info"))
    with open(os.path.join(directory, STEM + ".dist-info", "METADATA"), "w") as file:
        file.write(_metadata())
    return STEM + ".dist-info"

prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel

def build_wheel(directory, config_settings=None, metadata_directory=None):
    name = STEM + "-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as archive:
        archive.writestr("{name}.py", "HERE = 1\\n")
        archive.writestr(STEM + ".dist-info/METADATA", _metadata())
        archive.writestr(STEM + ".dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        archive.writestr(STEM + ".dist-info/RECORD", "")
    return name

build_editable = build_wheel
"""


def project(name: str, version: str = "1.0", requires: tuple[str, ...] = (), *, static: bool = True) -> dict[str, str]:
    """The files of a project that is built without an index. If not ``static``, only a build shows its metadata."""
    build = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    needs = "".join(f'"{it}",' for it in requires)
    stated = f"version = '{version}'\ndependencies = [{needs}]" if static else "dynamic = ['version', 'dependencies']"
    lines = "".join(f"Requires-Dist: {it}\\n" for it in requires)
    return {
        "pyproject.toml": f"{build}[project]\nname = '{name}'\n{stated}\n",
        "backend.py": BACKEND.format(name=name, version=version, requires=lines),
    }


class GitServer:
    """Serves the repositories in ``directory``; ``allows_commits``: a commit may be requested by hash."""

    def __init__(self, directory: Path, *, allows_commits: bool = True) -> None:
        self._directory = directory
        self._allows_commits = allows_commits
        self.requests: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(directory, self.requests))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def commit(self, repository: str, files: Mapping[str, str], *, branch: str = "main", tag: str = "") -> str:
        """Make a commit with ``files`` in addition to existing ones, in a new repository if there is none."""
        root = self._directory / repository
        if not root.exists():
            root.mkdir(parents=True)
            self._git(root, "init", "--quiet")
            allowed = str(self._allows_commits).lower()
            self._git(root, "config", "uploadpack.allowAnySHA1InWant", allowed)
            self._git(root, "config", "uploadpack.allowReachableSHA1InWant", allowed)
        self._git(root, "checkout", "--quiet", "-B", branch)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, "utf-8")
        self._git(root, "add", "--all")
        self._git(root, "commit", "--quiet", "--allow-empty", "--message", "more")
        if tag:
            self._git(root, "tag", tag)
        found = self._git(root, "rev-parse", "HEAD")
        self._git(root, "checkout", "--quiet", "main")
        return found

    def _git(self, root: Path, *command: str) -> str:
        run = subprocess.run(["git", *_WHO, *command], cwd=root, check=True, capture_output=True, text=True)
        return run.stdout.strip()

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler_of(directory: Path, requests: list[str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Passes a request on to git, like a web server does (RFC 3875)."""

        def do_GET(self) -> None:
            self._pass_on(b"")

        def do_POST(self) -> None:
            self._pass_on(self.rfile.read(int(self.headers.get("Content-Length", 0))))

        def _pass_on(self, body: bytes) -> None:
            path, _, query = self.path.partition("?")
            requests.append(path)
            variables = {
                "GIT_PROJECT_ROOT": str(directory),
                "GIT_HTTP_EXPORT_ALL": "1",
                "REQUEST_METHOD": self.command,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            run = subprocess.run(
                ["git", "http-backend"], input=body, capture_output=True, env={**os.environ, **variables}, check=False
            )
            head, _, content = run.stdout.partition(b"\r\n\r\n")
            lines = [line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line]
            status = next((int(value[:3]) for key, value in lines if key == "Status"), 200)
            self.send_response(status)
            for key, value in lines:
                if key != "Status":
                    self.send_header(key, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
            """No output."""

    return Handler
