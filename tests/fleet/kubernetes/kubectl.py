"""The commands of kubectl that envsolve needs, for the server of the tests: kubectl is not installed everywhere.

A run is many short processes, so this imports little: HTTP is spoken on a socket.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import Any

JOBS, CORE = "/apis/batch/v1/namespaces/default/jobs", "/api/v1/namespaces/default"
KINDS = {
    "jobs": (JOBS, "batch/v1", "Job"),
    "pods": (f"{CORE}/pods", "v1", "Pod"),
    "events": (f"{CORE}/events", "v1", "Event"),
}
FLAGS = ("server", "output", "filename", "container", "wait", "selector", "field-selector", "ignore-not-found")


class RefusedError(Exception):
    """The server refused a request, with the reason."""


def request(method: str, path: str, body: object = None) -> bytes:
    host, port = options["server"].removeprefix("http://").split(":")
    content = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {len(content)}\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(head.encode() + content)
        with connection.makefile("rb") as file:
            status = int(file.readline().split()[1])
            while file.readline().strip():
                pass
            answer = file.read()
    if status >= 400:
        failure = json.loads(answer)
        raise RefusedError(f"({failure['reason']}): {failure['message']}")
    return answer


def listed(kind: str) -> list[dict[str, Any]]:
    path, version, name = KINDS[kind]
    query = (
        f"labelSelector={options['selector']}"
        if "selector" in options
        else f"fieldSelector={options['field-selector']}"
    )
    items = json.loads(request("GET", f"{path}?{query}"))["items"]
    return [{"apiVersion": version, "kind": name, **it} for it in items]


def create() -> int:
    failed = 0
    for name in sorted(os.listdir(options["filename"])):  # noqa: PTH208 - pathlib takes as long as the rest
        with open(f"{options['filename']}/{name}") as file:  # noqa: PTH123
            job = json.load(file)
        try:
            request("POST", JOBS, job)
            sys.stdout.write(f"job.batch/{job['metadata']['name']}\n")
        except RefusedError as error:
            sys.stderr.write(f"Error from server {error}\n")
            failed = 1
    return failed


def delete() -> int:
    for name in words[2:] or [it["metadata"]["name"] for it in listed("jobs")]:
        try:
            request("DELETE", f"{JOBS}/{name}")
        except RefusedError:
            if "ignore-not-found" not in options:
                raise
    return 0


def main() -> int:
    if words[0] == "create":
        return create()
    if words[0] == "delete":
        return delete()
    if words[0] == "logs":
        sys.stdout.write(request("GET", f"{CORE}/pods/{words[1]}/log?container={options['container']}").decode())
        return 0
    assert words[0] == "get"
    items = [it for kind in words[1].split(",") for it in listed(kind)]
    json.dump({"kind": "List", "apiVersion": "v1", "items": items}, sys.stdout)
    return 0


if __name__ == "__main__":
    given = [it.removeprefix("--").partition("=") for it in sys.argv[1:] if it.startswith("--")]
    options = {name: value for name, _, value in given}
    words = [it for it in sys.argv[1:] if not it.startswith("--")]
    assert not set(options) - set(FLAGS), options
    try:
        sys.exit(main())
    except RefusedError as error:
        sys.exit(f"Error from server {error}")
    except OSError as error:
        sys.exit(f"The connection to the server was refused: {error}")
