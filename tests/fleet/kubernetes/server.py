"""A loopback API server of Kubernetes with the needed subset, for kubectl and for the one of the tests.

It refuses a Job that the schema of the API does not allow. What comes of a Job depends on its node, see ``FATES``. Its
pods, conditions and messages are as Kubernetes writes them (API reference of 1.34, and kubectl get pod -o json).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from jsonschema import Draft202012Validator

SCHEMA = Path(__file__).with_name("job.schema.json")
HOST = {"driver": "535.183.01", "gpus": [{"compute_capability": "8.0"}]}
REPORT = {"ok": True, "probes": [], "findings": [], "host": HOST}


def _ended(code: int, message: str = "", reason: str = "") -> dict[str, Any]:
    state = {"exitCode": code, "reason": reason or ("Error" if code else "Completed")}
    return {"terminated": {**state, "message": message} if message else state}


def _status(phase: str, state: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    scheduled = [{"type": "PodScheduled", "status": "True"}]
    found = {"phase": phase, "conditions": scheduled, **more}
    return found if state is None else {**found, "containerStatuses": [{"name": "validate", "state": dict(state)}]}


UNSCHEDULED = {
    "phase": "Pending",
    "conditions": [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) didn't match node affinity.",
        }
    ],
}
BACK_OFF = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "no/such:1"'}}
FAILED_REPORT = {**REPORT, "ok": False, "findings": [{"title": "The driver is too old"}]}
FEWER_GPUS = {**REPORT, "host": {**HOST, "gpus": [{"compute_capability": "8.0", "count": 3}]}}
OTHER_DRIVER = {**REPORT, "host": {**HOST, "driver": "580.95.05"}}
FATES: Mapping[str, tuple[dict[str, Any] | None, str]] = {
    "passes": (_status("Succeeded", _ended(0)), json.dumps(REPORT, indent=2)),
    "differs": (_status("Succeeded", _ended(0)), json.dumps(OTHER_DRIVER)),
    "has-fewer-gpus": (_status("Succeeded", _ended(0)), json.dumps(FEWER_GPUS)),
    "fails": (_status("Failed", _ended(1)), json.dumps(FAILED_REPORT)),
    "has-no-envsolve": (_status("Failed", _ended(127, "sh: 1: exec: envsolve: not found\n")), ""),
    "prints-nonsense": (_status("Succeeded", _ended(0)), "hello\n"),
    "has-no-memory": (_status("Failed", _ended(137, reason="OOMKilled")), ""),
    "is-evicted": (_status("Failed", reason="Evicted", message="The node was low on resource: ephemeral-storage."), ""),
    "has-no-image": (_status("Pending", BACK_OFF), ""),
    "is-full": (UNSCHEDULED, ""),
    "hangs": (_status("Running", {"running": {}}), ""),
    "loses-its-pod": (_status("Running", {"running": {}}), ""),
    "has-no-quota": (None, ""),
    "is-suspended": (None, ""),
    "is-drained": (None, ""),
    "forgets": (None, ""),
    "has-no-log": (_status("Succeeded", _ended(0)), ""),
    "is-forbidden": (None, ""),
}
"""By the name of a node, the status of its pod once the pod was seen waiting, and its log."""
_LATE = 4
"""A Job that does not end exceeds its time limit once it was listed more often than this, however slow the machine."""
QUOTA = 'Error creating: pods "x" is forbidden: exceeded quota: gpus, requested: limits.nvidia.com/gpu=4'


@cache
def validator() -> Draft202012Validator:
    return Draft202012Validator(json.loads(SCHEMA.read_text()))


class Api(ThreadingHTTPServer):
    """``jobs`` are the current ones, ``seen`` all of them, ``deleted`` the names of the deleted ones.

    ``most`` is how many there were at once. One that ``is_down`` creates and deletes Jobs, but lists none.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.jobs: dict[str, dict[str, Any]] = {}
        self.looks: dict[str, int] = {}
        self.deleted: list[str] = []
        self.seen: list[dict[str, Any]] = []
        self.most = 0
        self.is_down = False
        self.suspends = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def create(self, job: dict[str, Any]) -> tuple[int, Any]:
        name = job["metadata"]["name"]
        job["metadata"].setdefault("namespace", "default")
        wrong = [f"{it.json_path}: {it.message}" for it in validator().iter_errors(job)]
        if wrong:
            return 422, _failure(422, "Invalid", f'Job "{name}" is invalid: {"; ".join(wrong)}')
        if node_of(job) == "is-forbidden":
            return 403, _failure(403, "Forbidden", "jobs.batch is forbidden")
        self.seen.append(job)
        self.jobs[name] = {**job, "spec": {**job["spec"], "suspend": True}} if self.suspends else job
        self.most = max(self.most, len(self.jobs))
        return 201, job

    def listed_jobs(self) -> list[dict[str, Any]]:
        return [{**it, "status": self._status(name, it)} for name, it in self.jobs.items() if node_of(it) != "forgets"]

    def _status(self, name: str, job: Mapping[str, Any]) -> dict[str, Any]:
        self.looks[name] = self.looks.get(name, 0) + 1
        failed = {"type": "Failed", "status": "True"}
        if node_of(job) == "is-drained":
            return {
                "conditions": [{**failed, "reason": "BackoffLimitExceeded", "message": "Job has reached the limit"}]
            }
        if self._is_late(name):
            return {"conditions": [{**failed, "reason": "DeadlineExceeded", "message": "Job was active longer"}]}
        return {}

    def _is_late(self, name: str) -> bool:
        is_stuck = node_of(self.jobs[name]) in ("hangs", "loses-its-pod", "is-full", "is-suspended")
        return is_stuck and self.looks.get(name, 0) > _LATE

    def listed_pods(self) -> list[dict[str, Any]]:
        return [self._pod(name, it) for name, it in self.jobs.items() if self._has_pod(name)]

    def _has_pod(self, name: str) -> bool:
        node = node_of(self.jobs[name])
        is_lost = node == "loses-its-pod" and self.looks.get(name, 0) > 2
        return FATES[node][0] is not None and not is_lost and not self._is_late(name)

    def _pod(self, name: str, job: Mapping[str, Any]) -> dict[str, Any]:
        waiting = _status("Pending", {"waiting": {"reason": "ContainerCreating"}})
        owner = {"kind": "Job", "name": name, "controller": True}
        own = {"name": f"{name}-x7k2p", "namespace": "default", "ownerReferences": [owner]}
        metadata = {**job["spec"]["template"]["metadata"], **own}
        status = FATES[node_of(job)][0] if self.looks.get(name, 0) > 1 else waiting
        return {"metadata": metadata, "spec": job["spec"]["template"]["spec"], "status": status}

    def log(self, pod: str) -> tuple[int, str]:
        node = node_of(self.jobs[pod.rpartition("-")[0]])
        return (500, "cannot reach the kubelet") if node == "has-no-log" else (200, FATES[node][1])

    def events(self, name: str) -> list[dict[str, Any]]:
        is_listed = name in self.jobs and node_of(self.jobs[name]) == "has-no-quota"
        return [{"metadata": {"name": "e"}, "type": "Warning", "message": QUOTA}] if is_listed else []


def node_of(job: Mapping[str, Any]) -> str:
    """The node that a Job is bound to, as the scheduler reads it."""
    affinity = job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (field,) = term["matchFields"]
    assert (field["key"], field["operator"]) == ("metadata.name", "In")
    return str(field["values"][0])


def _failure(code: int, reason: str, message: str) -> dict[str, Any]:
    status = {"status": "Failure", "message": message, "reason": reason, "code": code}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, **status}


def _resource(name: str, kind: str, *short: str) -> dict[str, Any]:
    verbs = ["create", "delete", "get", "list"]
    return {"name": name, "singularName": kind.lower(), "namespaced": True, "kind": kind, "verbs": verbs}


_DISCOVERY: Mapping[str, Any] = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [
            {
                "name": "batch",
                "versions": [{"groupVersion": "batch/v1", "version": "v1"}],
                "preferredVersion": {"groupVersion": "batch/v1", "version": "v1"},
            }
        ],
    },
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [_resource("pods", "Pod"), _resource("events", "Event")],
    },
    "/apis/batch/v1": {"kind": "APIResourceList", "groupVersion": "batch/v1", "resources": [_resource("jobs", "Job")]},
    "/openapi/v3": {"paths": {"apis/batch/v1": {"serverRelativeURL": "/openapi/v3/apis/batch/v1"}}},
    "/openapi/v3/apis/batch/v1": {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.34.0"},
        "paths": {
            "/apis/batch/v1/namespaces/{namespace}/jobs/{name}": {
                "patch": {
                    "parameters": [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}],
                    "responses": {},
                    "x-kubernetes-group-version-kind": {"group": "batch", "kind": "Job", "version": "v1"},
                }
            }
        },
    },
}
_BATCH, _CORE = "/apis/batch/v1/namespaces/default/jobs", "/api/v1/namespaces/default"


class _Handler(BaseHTTPRequestHandler):
    server: Api
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one packet: else each answer waits for an acknowledgement

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        query = {key: it[0] for key, it in parse_qs(address.query).items()}
        if address.path in _DISCOVERY:
            self._send(200, _DISCOVERY[address.path])
        elif self.server.is_down:
            self._send(503, _failure(503, "ServiceUnavailable", "the server is currently unable to handle the request"))
        elif address.path == _BATCH:
            self._send(200, _list("batch/v1", "JobList", _selected(self.server.listed_jobs(), query)))
        elif address.path.startswith(f"{_BATCH}/"):
            self._one(address.path.rpartition("/")[2])
        elif address.path == f"{_CORE}/pods":
            self._send(200, _list("v1", "PodList", _selected(self.server.listed_pods(), query)))
        elif address.path.startswith(f"{_CORE}/pods/") and address.path.endswith("/log"):
            code, text = self.server.log(address.path.split("/")[-2])
            self._send(code, text if code == 200 else _failure(code, "InternalError", text))
        elif address.path.startswith(f"{_CORE}/pods/"):
            name = address.path.rpartition("/")[2]
            pod = next(it for it in self.server.listed_pods() if it["metadata"]["name"] == name)
            self._send(200, {"kind": "Pod", "apiVersion": "v1", **pod})
        elif address.path == f"{_CORE}/events":
            selected = dict(it.split("=") for it in query["fieldSelector"].split(","))
            self._send(200, _list("v1", "EventList", self.server.events(selected["involvedObject.name"])))
        else:
            self._send(404, _failure(404, "NotFound", f"no {address.path} here"))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._send(*self.server.create(body))

    def do_DELETE(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        name = urlsplit(self.path).path.rpartition("/")[2]
        self.server.deleted.append(name)
        if self.server.jobs.pop(name, None) is None:
            self._send(404, _failure(404, "NotFound", f'jobs.batch "{name}" not found'))
        else:
            self._send(200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"})

    def _one(self, name: str) -> None:
        job = self.server.jobs.get(name)
        self._send(*((404, _failure(404, "NotFound", f'jobs.batch "{name}" not found')) if job is None else (200, job)))

    def _send(self, code: int, answer: Any) -> None:
        content = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        self.send_response(code)
        self.send_header("Content-Type", "text/plain" if isinstance(answer, str) else "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """No output."""


def _list(version: str, kind: str, items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": version, "metadata": {"resourceVersion": "1"}, "items": items}


def _selected(items: list[dict[str, Any]], query: Mapping[str, str]) -> list[dict[str, Any]]:
    """The API filters by labels; the items of its lists have no kind of their own."""
    key, value = query["labelSelector"].split("=")
    found = [it for it in items if it["metadata"]["labels"].get(key) == value]
    return [{name: it[name] for name in it if name not in ("kind", "apiVersion")} for it in found]


@contextmanager
def api() -> Iterator[Api]:
    """A running server."""
    with Api() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield made
        finally:
            made.shutdown()
            thread.join()
