"""Jobs of Kubernetes that run ``envsolve validate`` on one node each, and their state in the cluster.

There is a Job for each node instead of one Indexed Job for all. The pods of a Job share one template, so none could be
bound to a node, and while a node is down, its pod would run on another one a second time.
https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from envsolve.errors import Hint, UsageError
from envsolve.fleet.node import Node
from envsolve.host.gpus import total
from envsolve.lockfile.image import PYTHON
from envsolve.model.installing_envsolve import REQUIREMENT

RUN = "app.kubernetes.io/instance"
"""The label with the name of a run, on Jobs and pods."""
NODE = "envsolve/node"
"""The annotation of a Job with the name of its node."""
_ERRORS = "/dev/termination-log"
"""What a container writes here is in the status of its pod, up to 4096 bytes. Its log would mix stdout and stderr."""
CONTAINER = "validate"
_SECONDS_KEPT = 24 * 3600
"""The cluster removes a finished Job that no one deleted after this many seconds."""
_EACH = "*"
_HOPELESS = frozenset(
    {
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
        "CreateContainerConfigError",
        "CreateContainerError",
        "RunContainerError",
    }
)
"""Reasons of a waiting container that do not change with time (kubernetes/pkg/kubelet/images/types.go and
kuberuntime/kuberuntime_container.go). ErrImagePull alone is tried again, and becomes ImagePullBackOff."""


def images_of(values: Sequence[str]) -> dict[str, str]:
    """The values of ``--image``, IMAGE or NAME=IMAGE, by their node or group; * is for all others.

    Raises UsageError for a value without an image, and for two images of one name.
    """
    images: dict[str, str] = {}
    for value in values:
        name, is_named, image = value.rpartition("=")
        if not image or (is_named and not name):
            raise UsageError("image-unreadable", f"--image {value!r} is neither IMAGE nor NAME=IMAGE")
        if images.setdefault(name or _EACH, image) != image:
            about = f"for {name!r}" if name else "without a name"
            raise UsageError("contradictory-options", f"--image gives two images {about}")
    return images


class Start(NamedTuple):
    """How a container starts: its command, and its variables."""

    command: tuple[str, ...]
    variables: Mapping[str, str] = {}


def start_in_image(program: Sequence[str] | None, prefix: str | None, environ: Mapping[str, str]) -> Start:
    """How a container validates the environment of its image, with its stderr in the status of the pod.

    The environment is at ``prefix``, by default the Python of the images that ``--format dockerfile`` makes.
    ``program`` runs envsolve there; without it the pod installs envsolve from ENVSOLVE_URL, next to the environment.
    Raises UsageError if neither is given.
    """
    python = PYTHON if prefix is None else f"{prefix}/bin/python"
    words = ("validate", "--python", python, "--json", "-q")
    if program is not None:
        return Start(("sh", "-c", f'exec "$@" 2>{_ERRORS}', program[0], *program, *words))
    url = environ.get("ENVSOLVE_URL", "")
    if not url:
        hints = (
            Hint("say how the image runs its own envsolve: --envsolve COMMAND"),
            Hint("set ENVSOLVE_URL to the address of a .zip of envsolve: each pod then installs it"),
        )
        raise UsageError("envsolve-missing", "how does the image run envsolve?", hints=hints)
    script = (
        f'exec 2>{_ERRORS}; "$0" -m venv /tmp/v && /tmp/v/bin/pip install -q {REQUIREMENT} >&2 && '
        'exec /tmp/v/bin/envsolve "$@"'
    )
    return Start(("sh", "-c", script, python, *words), {"ENVSOLVE_URL": url})


class Template(NamedTuple):
    """The common parts of the Jobs of a run: images by node or group, how they start, and the timeout of each node."""

    run: str
    images: Mapping[str, str]
    start: Start
    timeout: float

    def manifest(self, nodes: Iterable[Node]) -> dict[str, Any]:
        """The input of ``kubectl create -f``: a Job for each of ``nodes``. Raises UsageError if one has no image."""
        listed = list(nodes)
        bare = [it.name for it in listed if self._image(it) is None]
        if bare:
            more = f" and {len(bare) - 1} more" if bare[1:] else ""
            hint = Hint("give one for all other nodes: --image IMAGE")
            raise UsageError("image-missing", f"no --image is for node {bare[0]}{more}", hints=(hint,))
        jobs = [self._job(it, number) for number, it in enumerate(listed)]
        return {"apiVersion": "v1", "kind": "List", "items": jobs}

    def _image(self, node: Node) -> str | None:
        return next((self.images[it] for it in (node.name, *node.groups, _EACH) if it in self.images), None)

    def _job(self, node: Node, number: int) -> dict[str, Any]:
        labels = {"app.kubernetes.io/name": "envsolve", RUN: self.run}
        metadata = {"name": f"{self.run}-{number}", "labels": labels, "annotations": {NODE: node.name}}
        spec = {
            "backoffLimit": 0,
            "activeDeadlineSeconds": math.ceil(self.timeout),
            "ttlSecondsAfterFinished": _SECONDS_KEPT,
            "template": {"metadata": {"labels": labels}, "spec": self._pod(node)},
        }
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}

    def _pod(self, node: Node) -> dict[str, Any]:
        """The pod, bound to its node by the scheduler, which waits for the GPUs. ``nodeName`` would bypass it."""
        here = {"key": "metadata.name", "operator": "In", "values": [node.name]}
        terms = {"nodeSelectorTerms": [{"matchFields": [here]}]}
        container: dict[str, Any] = {
            "name": CONTAINER,
            "image": self._image(node),
            "command": list(self.start.command),
            "resources": {"limits": {"nvidia.com/gpu": str(_gpus_to_test(node))}},
        }
        if self.start.variables:
            container["env"] = [{"name": name, "value": value} for name, value in self.start.variables.items()]
        return {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
            "containers": [container],
        }


def _gpus_to_test(node: Node) -> int:
    """The number of its GPUs, or 1 with MIG, as a program can only use one MIG instance."""
    return 1 if any(it.mig for it in node.host.gpus) else total(node.host.gpus)


def jobs_in(data: object) -> tuple[str, dict[str, Mapping[str, Any]]]:
    """The name of the run in a manifest, and its Jobs by node name. Raises UsageError for other data."""
    items = data.get("items") if isinstance(data, Mapping) else None
    jobs: dict[str, Mapping[str, Any]] = {}
    runs = set()
    try:
        for it in items or ():
            metadata = it["metadata"]
            runs.add(str(metadata["labels"][RUN]))
            jobs[str(metadata["annotations"][NODE])] = it
    except (TypeError, LookupError):
        runs.clear()
    if len(runs) != 1:
        message = "this is not the manifest of one run, as `envsolve fleet validate --manifest` writes it"
        raise UsageError("manifest-unreadable", message)
    return runs.pop(), jobs


class Seen(NamedTuple):
    """A Job and its pod as the cluster lists them; None if it does not exist."""

    job: Mapping[str, Any] | None = None
    pod: Mapping[str, Any] | None = None

    @property
    def has_ended(self) -> bool:
        """Whether its container ran and ended, so that it has a log."""
        return self._terminated is not None

    @property
    def code(self) -> int:
        """The exit code of its container."""
        return int((self._terminated or {}).get("exitCode", 1))

    @property
    def stderr(self) -> str:
        """The stderr of its container, or else the reason why it ended."""
        ended = self._terminated or {}
        why = "" if ended.get("reason") in (None, "Completed", "Error") else str(ended["reason"])
        return str(ended.get("message") or why or self._status.get("message") or "")

    @property
    def pod_name(self) -> str:
        """The name of its pod."""
        return "" if self.pod is None else str(self.pod["metadata"]["name"])

    @property
    def is_late(self) -> bool:
        """Whether it exceeded its time limit, so that the cluster stopped it."""
        return (self._failed or {}).get("reason") == "DeadlineExceeded"

    @property
    def is_suspended(self) -> bool:
        """Whether something, such as Kueue, suspends its pod."""
        return bool(self._of_job("spec").get("suspend"))

    def failure(self) -> str | None:
        """Why it cannot give a report; None while it may."""
        if self.job is None:
            return "its Job is not in the cluster"
        waiting = self._container.get("waiting") or {}
        if waiting.get("reason") in _HOPELESS:
            return _sentence(waiting)
        if self._status.get("phase") == "Failed":  # before its container ran: refused by its node, or evicted
            return f"its pod failed: {_sentence(self._status)}"
        return None if self._failed is None else f"its pod is gone, and its Job failed: {_sentence(self._failed)}"

    def waits_for(self) -> str:
        """What it is waiting for."""
        if self.pod is None:
            return "its Job is suspended" if self.is_suspended else "no pod was created for it"
        unscheduled = next((it for it in _conditions(self._status, "PodScheduled") if it["status"] == "False"), None)
        if unscheduled is not None:
            return f"not scheduled: {_sentence(unscheduled)}"
        waiting = self._container.get("waiting")
        return f"its container waits: {_sentence(waiting)}" if waiting else "its pod was running"

    @property
    def _failed(self) -> Mapping[str, Any] | None:
        """The condition that says that the Job failed."""
        return next((it for it in _conditions(self._of_job("status"), "Failed") if it.get("status") == "True"), None)

    def _of_job(self, key: str) -> Mapping[str, Any]:
        return ({} if self.job is None else self.job.get(key)) or {}

    @property
    def _status(self) -> Mapping[str, Any]:
        return ({} if self.pod is None else self.pod.get("status")) or {}

    @property
    def _container(self) -> Mapping[str, Any]:
        """The state of its container."""
        statuses = self._status.get("containerStatuses") or ()
        return next((it["state"] for it in statuses if it["name"] == CONTAINER), {})

    @property
    def _terminated(self) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = self._container.get("terminated")
        return found


def seen_in(listed: object) -> dict[str, Seen]:
    """The Jobs and pods that ``kubectl get jobs,pods -o json`` lists, by the name of the Job.

    Raises LookupError, TypeError or AttributeError if the data is not such a list.
    """
    found: dict[str, Seen] = {}
    for it in listed["items"]:  # type: ignore[index]
        is_job = it["kind"] == "Job"
        name = it["metadata"]["name"] if is_job else it["metadata"]["ownerReferences"][0]["name"]
        known = found.get(name, Seen())
        found[name] = known._replace(job=it) if is_job else known._replace(pod=it)
    return found


def _conditions(status: Mapping[str, Any], kind: str) -> Iterator[Mapping[str, Any]]:
    return (it for it in status.get("conditions") or () if it.get("type") == kind)


def _sentence(it: Mapping[str, Any]) -> str:
    """The reason and the message of a state or a condition."""
    return ": ".join(str(it[key]) for key in ("reason", "message") if it.get(key)) or "without a reason"
