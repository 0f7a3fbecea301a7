"""``envsolve fleet validate`` on the nodes of a test server for Kubernetes (tests/fleet/kubernetes)."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from envsolve.app.fleet import kubernetes
from envsolve.app.fleet.kubernetes import Cluster
from envsolve.fleet.inventory import nodes_named
from tests.conftest import Envsolve, Result
from tests.fleet.kubernetes import server
from tests.fleet.kubernetes.server import QUOTA, Api, api, node_of

PROGRAM = Path(server.__file__).with_name("kubectl.py")
KUBECTL = shutil.which("kubectl")
Validate = Callable[..., Result]


@pytest.fixture
def cluster() -> Iterator[Api]:
    with api() as made:
        yield made


def _is_new() -> bool:
    """Whether kubectl leaves the check of a Job to the server, as since version 1.29."""
    if KUBECTL is None:
        return False
    output = subprocess.run([KUBECTL, "version", "--client", "-o", "json"], capture_output=True, check=False).stdout
    return int(re.search(rb'"minor": "(\d+)', output)[1]) >= 29  # type: ignore[index]


REAL = pytest.param(
    "kubectl", marks=[pytest.mark.thorough, pytest.mark.skipif(not _is_new(), reason="needs kubectl 1.29 or newer")]
)


@pytest.fixture(params=["ours", REAL])
def kubectl(request: pytest.FixtureRequest, cluster: Api, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The command line of a kubectl with access to the cluster."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    words = [sys.executable, "-ISE", str(PROGRAM)] if request.param == "ours" else [str(KUBECTL)]
    return shlex.join([*words, f"--server={cluster.url}"])


@pytest.fixture
def validate(
    kubectl: str, envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Result]:
    """Validate nodes named after their results, each in the group of its name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(kubernetes, "_PAUSES", (0.02,))
    monkeypatch.setattr(kubernetes, "_WITHOUT_POD", 0.3)

    def call(nodes: str, *more: str, image: tuple[str, ...] = ("--image", "env:1")) -> Result:
        gpus = [{"name": "NVIDIA A100-SXM4-40GB", "compute_capability": "8.0", "count": 4}]
        host = {"platform": "linux-64", "driver": "535.183.01", "gpus": gpus}
        rows = [{"name": it, "groups": [f"{it}-pool"], **host} for it in nodes.split()]
        Path("nodes.json").write_text(json.dumps({"schema_version": 1, "nodes": rows}))
        line = ("fleet", "validate", "nodes.json", "--launcher", "kubernetes", *image, "--kubectl", kubectl)
        return envsolve(*line, "--envsolve", "envsolve", *more)

    return call


def spec_of(cluster: Api, name: str = "passes") -> Any:
    """The pod of a node."""
    return next(it for it in cluster.seen if node_of(it) == name)["spec"]["template"]["spec"]


@pytest.mark.thorough
def test_every_node_answers_or_is_reported(validate: Validate, cluster: Api) -> None:
    fates = "passes differs has-fewer-gpus fails has-no-envsolve prints-nonsense has-no-memory is-evicted has-no-image"
    done = validate(f"{fates} has-no-quota is-drained forgets has-no-log", "--timeout", "60")
    assert (done.code, done.err) == (1, "")
    assert done.out.splitlines() == [
        "3 of 13 nodes passed",
        "fails: failed, The driver is too old",
        "has-no-envsolve: no-answer, sh: 1: exec: envsolve: not found (exit 127)",
        "prints-nonsense: no-answer, no report of `envsolve validate`, but 'hello' (exit 0)",
        "has-no-memory: no-answer, OOMKilled (exit 137)",
        "is-evicted: no-answer, its pod failed: Evicted: The node was low on resource: ephemeral-storage.",
        'has-no-image: no-answer, ImagePullBackOff: Back-off pulling image "no/such:1"',
        f"has-no-quota: no-answer, no pod was created for it: {QUOTA}",
        "is-drained: no-answer, its pod is gone, and its Job failed: BackoffLimitExceeded: Job has reached the limit",
        "forgets: no-answer, its Job is not in the cluster",
        "has-no-log: no-answer, its log cannot be read: Error from server (InternalError): cannot reach the kubelet",
        "differs: differs from the list of nodes: driver 580.95.05 instead of 535.183.01",
        "has-fewer-gpus: differs from the list of nodes: 3 GPUs instead of 4",
    ]
    assert cluster.jobs == {}


@pytest.mark.thorough
def test_a_node_that_times_out_is_reported_with_its_state(validate: Validate, cluster: Api) -> None:
    done = validate("hangs loses-its-pod is-full passes", "--timeout", "6", "--json")
    found = {it["node"]: it for it in json.loads(done.out)["nodes"]}
    assert {name: it["state"] for name, it in found.items()} == {
        "hangs": "no-answer",
        "loses-its-pod": "no-answer",
        "is-full": "no-answer",
        "passes": "passed",
    }
    assert found["hangs"]["why"] == found["loses-its-pod"]["why"] == "no answer in 6 s: its pod was running"
    assert found["is-full"]["why"].startswith(
        "no answer in 6 s: not scheduled: Unschedulable: 0/2 nodes are available: "
    )
    assert found["passes"]["report"]["host"]["driver"] == "535.183.01"


@pytest.mark.thorough
def test_an_interrupt_deletes_the_jobs(validate: Validate, cluster: Api, kubectl: str) -> None:
    validate("passes hangs", "--manifest", "jobs.json")
    engine = Cluster(shlex.split(kubectl), json.loads(Path("jobs.json").read_text()))
    answers = engine.prove([node for _, node in nodes_named("nodes.json")], os.environ, lambda _: None)
    assert next(answers).node == "passes"
    assert [node_of(it) for it in cluster.jobs.values()] == ["hangs"]
    answers.close()
    assert cluster.jobs == {}


@pytest.mark.thorough
def test_a_suspended_job_is_waited_for(validate: Validate, cluster: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes, "_PATIENCE", 10.0)
    cluster.suspends = True
    done = validate("is-suspended", "--timeout", "1")
    assert done.out.splitlines()[1] == "is-suspended: no-answer, no answer in 1 s: its Job is suspended"


def test_a_pod_is_bound_to_its_node_and_gets_its_gpus(validate: Validate, cluster: Api) -> None:
    done = validate("passes", "--timeout", "60")
    assert done.code == 0, done.out
    spec = spec_of(cluster)
    (container,) = spec["containers"]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": "4"}}
    assert container["command"] == [
        "sh",
        "-c",
        'exec "$@" 2>/dev/termination-log',
        "envsolve",
        *("envsolve", "validate", "--python", "/usr/local/bin/python", "--json", "-q"),
    ]
    assert (spec["restartPolicy"], spec["automountServiceAccountToken"]) == ("Never", False)
    (job,) = cluster.seen
    assert (job["spec"]["backoffLimit"], job["spec"]["activeDeadlineSeconds"]) == (0, 60)


@pytest.mark.thorough
def test_parallel_jobs_are_limited(validate: Validate, cluster: Api) -> None:
    done = validate("passes differs fails", "--jobs", "1", "--timeout", "60")
    assert done.out.splitlines()[0] == "2 of 3 nodes passed"
    assert (cluster.most, len(cluster.seen)) == (1, 3)


@pytest.mark.thorough
def test_a_group_may_have_its_own_image(validate: Validate, cluster: Api) -> None:
    images = ("--image", "new:1", "--image", "differs-pool=old:1", "--image", "fails=odd:1")
    validate("passes differs fails", "--timeout", "60", image=images)
    used = {it: spec_of(cluster, it)["containers"][0]["image"] for it in ("passes", "differs", "fails")}
    assert used == {"passes": "new:1", "differs": "old:1", "fails": "odd:1"}


@pytest.mark.thorough
def test_only_failed_nodes_run_again(validate: Validate, cluster: Api) -> None:
    Path("report.json").write_text(validate("passes fails", "--json", "--timeout", "60").out)
    again = validate("passes fails", "--again", "report.json", "--timeout", "60")
    assert again.out.splitlines()[0] == "1 of 2 nodes passed"
    assert [node_of(it) for it in cluster.seen] == ["passes", "fails", "fails"]
    assert validate("passes", "--again", "report.json").code == 0
    assert len(cluster.seen) == 3


@pytest.mark.thorough
def test_jobs_created_by_a_user_are_read_and_not_deleted(validate: Validate, cluster: Api, kubectl: str) -> None:
    written = validate("passes fails", "--manifest", "jobs.json", "--timeout", "60")
    assert (written.code, written.out, cluster.seen) == (0, "", [])
    for it in json.loads(Path("jobs.json").read_text())["items"]:
        assert cluster.create(it)[0] == 201
    done = validate("passes fails hangs", "--applied", "jobs.json", "--timeout", "60", image=())
    assert done.out.splitlines() == [
        "1 of 3 nodes passed",
        "fails: failed, The driver is too old",
        "hangs: no-answer, the manifest has no Job for it",
    ]
    assert (len(cluster.jobs), cluster.deleted) == (2, [])


def test_a_manifest_is_printed_on_stdout(validate: Validate) -> None:
    items = json.loads(validate("passes", "--manifest", "-").out)["items"]
    assert [it["kind"] for it in items] == ["Job"]


@pytest.mark.thorough
def test_a_refused_job_is_reported(validate: Validate, cluster: Api) -> None:
    refused = validate("is-forbidden")
    assert (refused.code, refused.err.splitlines()[:2]) == (
        3,
        ["error: jobs-not-created", "  kubectl cannot create the Jobs"],
    )
    assert "jobs.batch is forbidden" in refused.err
    assert "auth can-i create jobs" in refused.err
    some = validate("passes is-forbidden", "--timeout", "60")
    assert some.out.splitlines()[0] == "1 of 2 nodes passed"
    assert some.out.splitlines()[1].startswith("is-forbidden: no-answer, its Job was not created: ")


@pytest.mark.thorough
def test_an_unreachable_cluster_is_reported(validate: Validate, cluster: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubernetes, "_PATIENCE", 2.0)
    cluster.is_down = True
    done = validate("passes")
    assert done.out.splitlines()[1].startswith("passes: no-answer, kubectl: ")
    assert "unable to handle the request" in done.out


def test_a_missing_kubectl_is_reported(validate: Validate) -> None:
    refused = validate("passes", "--kubectl", "no-such-kubectl -n ml")
    assert (refused.code, refused.err.splitlines()[0]) == (3, "error: jobs-not-created")
    assert "no-such-kubectl: No such file or directory" in refused.err
    assert "no-such-kubectl -n ml auth can-i create jobs" in refused.err


@pytest.mark.thorough
def test_unexpected_output_of_kubectl_is_reported(
    validate: Validate, kubectl: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubernetes, "_PATIENCE", 4.0)
    Path("odd.sh").write_text(f'#!/bin/sh\ncase " $* " in *" get "*) echo []; exit;; esac\nexec {kubectl} "$@"\n')
    Path("odd.sh").chmod(0o755)
    done = validate("passes", "--kubectl", str(Path("odd.sh").absolute()))
    assert done.out.splitlines()[1] == "passes: no-answer, kubectl: it printed no list of Jobs and pods"


def test_pods_install_envsolve_from_a_url(
    validate: Validate, envsolve: Envsolve, monkeypatch: pytest.MonkeyPatch
) -> None:
    validate("passes", "--manifest", "-")  # writes the list of nodes
    monkeypatch.setenv("ENVSOLVE_URL", "https://example.com/envsolve.zip")
    line = ("fleet", "validate", "nodes.json", "--launcher", "kubernetes", "--image", "env:1", "--manifest", "-")
    done = envsolve(*line, "--prefix", "/opt/env")
    (container,) = json.loads(done.out)["items"][0]["spec"]["template"]["spec"]["containers"]
    assert container["env"] == [{"name": "ENVSOLVE_URL", "value": "https://example.com/envsolve.zip"}]
    assert container["command"][3:] == [
        "/opt/env/bin/python",
        "validate",
        "--python",
        "/opt/env/bin/python",
        "--json",
        "-q",
    ]
    assert done.err == ""


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (("--launcher", "slurm", "--image", "env:1"), "contradictory-options"),
        (("--launcher", "slurm", "--applied", "jobs.json"), "contradictory-options"),
        (("--launcher", "kubernetes", "--image", "env:1", "--applied", "jobs.json"), "contradictory-options"),
        (("--launcher", "kubernetes", "--manifest", "-", "--applied", "jobs.json"), "contradictory-options"),
        (("--launcher", "kubernetes", "--applied", "missing.json"), "manifest-unreadable"),
        (("--launcher", "kubernetes", "--applied", "nodes.json"), "manifest-unreadable"),
        (("--launcher", "kubernetes", "--envsolve", "envsolve"), "image-missing"),
        (("--launcher", "kubernetes", "--image", "env:1"), "envsolve-missing"),
        (("--launcher", "kubernetes", "--image", "env:1", "--kubectl", "'"), "command-unreadable"),
    ],
)
def test_an_invalid_line_is_refused(
    envsolve: Envsolve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...], code: str
) -> None:
    monkeypatch.chdir(tmp_path)
    gpus = [{"name": "NVIDIA A100-SXM4-40GB", "compute_capability": "8.0"}]
    row = {"name": "a", "platform": "linux-64", "gpus": gpus}
    Path("nodes.json").write_text(json.dumps({"schema_version": 1, "nodes": [row]}))
    program = ("--envsolve", "envsolve") if "--kubectl" in more else ()
    refused = envsolve("fleet", "validate", "nodes.json", *more, *program)
    assert (refused.code, refused.err.splitlines()[0]) == (2, f"error: {code}")
