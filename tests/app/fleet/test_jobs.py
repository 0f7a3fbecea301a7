"""Manifests of Jobs, checked against the schema of the API."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envsolve.app.fleet.jobs import Start, Template, images_of, jobs_in, start_in_image
from envsolve.errors import UsageError
from envsolve.fleet.node import Node
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Gpu, Host, Platform
from tests.fleet.kubernetes.server import validator


def node(name: str = "gpu-1", *, mig: bool = False, groups: tuple[str, ...] = ()) -> Node:
    gpu = Gpu("NVIDIA A100-SXM4-40GB", ComputeCapability(8, 0), count=7, mig=mig)
    return Node(name, Host(Platform.LINUX_64, gpus=(gpu,)), groups)


OWN = Start(("envsolve",))


def job(it: Node, start: Start = OWN) -> Any:
    manifest = Template("envsolve-1", {"*": "env:1"}, start, 60.5).manifest([it])
    return json.loads(json.dumps(manifest))["items"][0]


@pytest.mark.parametrize("start", [OWN, start_in_image(None, None, {"ENVSOLVE_URL": "http://x/e.zip"})])
def test_a_job_conforms_to_the_api(start: Start) -> None:
    made = job(node(), start)
    assert [it.message for it in validator().iter_errors(made)] == []
    made["spec"]["template"]["spec"]["containers"][0]["comand"] = []
    assert [it.json_path for it in validator().iter_errors(made)] == ["$.spec.template.spec.containers[0]"]


def test_a_program_can_use_one_mig_instance() -> None:
    limits = job(node(mig=True))["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"nvidia.com/gpu": "1"}


def test_a_job_ends_in_whole_seconds() -> None:
    assert job(node())["spec"]["activeDeadlineSeconds"] == 61


def test_a_node_name_may_be_longer_than_a_job_name() -> None:
    long = f"{'n' * 200}.example.com"
    made = Template("envsolve-1", {"*": "env:1"}, OWN, 60).manifest([node(long)])
    assert jobs_in(made)[1][long]["metadata"]["name"] == "envsolve-1-0"


def test_images_are_chosen_by_node_and_group() -> None:
    assert images_of(["a/b:1", "old=c@sha256:0", "n1=d"]) == {"*": "a/b:1", "old": "c@sha256:0", "n1": "d"}


@pytest.mark.parametrize(
    ("values", "code"),
    [
        (["=a"], "image-unreadable"),
        (["a="], "image-unreadable"),
        ([""], "image-unreadable"),
        (["a", "b"], "contradictory-options"),
        (["x=a", "x=b"], "contradictory-options"),
    ],
)
def test_ambiguous_images_are_refused(values: list[str], code: str) -> None:
    with pytest.raises(UsageError) as caught:
        images_of(values)
    assert caught.value.code == code


def test_a_node_without_an_image_is_named() -> None:
    template = Template("envsolve-1", {"new": "env:1"}, OWN, 60)
    with pytest.raises(UsageError) as caught:
        template.manifest([node(groups=("new",)), node("gpu-2"), node("gpu-3")])
    assert caught.value.message == "no --image is for node gpu-2 and 1 more"


@pytest.mark.parametrize(
    "data", [None, {}, {"items": []}, {"items": [3]}, {"items": [{"metadata": {}}]}, {"items": {}}]
)
def test_an_invalid_manifest_is_refused(data: object) -> None:
    with pytest.raises(UsageError) as caught:
        jobs_in(data)
    assert caught.value.code == "manifest-unreadable"


def test_manifests_of_two_runs_are_refused() -> None:
    one, two = (Template(it, {"*": "env:1"}, OWN, 60).manifest([node(it)])["items"] for it in ("a", "b"))
    with pytest.raises(UsageError):
        jobs_in({"items": [*one, *two]})


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX")
def test_stdout_is_the_report_and_stderr_is_preserved(tmp_path: Path) -> None:
    program = [sys.executable, "-c", "import sys; print(sys.argv[1:]); sys.exit('it failed')"]
    started = [
        it.replace("/dev/termination-log", str(tmp_path / "log")) for it in start_in_image(program, "/env", {}).command
    ]
    done = subprocess.run(started, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == "['validate', '--python', '/env/bin/python', '--json', '-q']\n"
    assert (tmp_path / "log").read_text() == "it failed\n"


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX")
def test_a_pod_installs_envsolve_beside_the_environment(tmp_path: Path) -> None:
    """``python`` and the programs that it creates only print how they were called."""
    script = '#!/bin/sh\necho "$(basename "$0") $*" >> {log}\n{more}\n'
    made = "mkdir -p {v}/bin; cp {say} {v}/bin/pip; cp {say} {v}/bin/envsolve"
    log, say, venv = tmp_path / "log", tmp_path / "say", tmp_path / "v"
    for name, more in (("say", ""), ("python", made.format(v=venv, say=say))):
        Path(tmp_path, name).write_text(script.format(log=log, more=more))
        Path(tmp_path, name).chmod(0o755)
    start = start_in_image(None, None, {"ENVSOLVE_URL": "http://x/e.zip"})
    line = shlex.join(start.command).replace("/usr/local/bin/python", str(tmp_path / "python"))
    line = line.replace("/tmp/v", str(venv)).replace("/dev/termination-log", str(tmp_path / "errors"))  # noqa: S108
    done = subprocess.run(["sh", "-c", line], env={**os.environ, **start.variables}, check=False)
    assert done.returncode == 0
    assert log.read_text().splitlines() == [
        f"python -m venv {venv}",
        "pip install -q envsolve@http://x/e.zip",
        f"envsolve validate --python {tmp_path / 'python'} --json -q",
    ]
