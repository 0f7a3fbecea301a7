"""From an empty directory to validated frameworks: a lock of real ones, its environment, and the validation of that.

Needs package indexes, and some hundred MB of wheels. PyTorch's CPU build is not on the default index: where pip is
configured with a folder that holds its wheel, that folder is served as PyTorch's own index; else PyTorch is left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests.index.packages import IndexFile
from tests.index.server import IndexServer

pytestmark = [pytest.mark.framework, pytest.mark.online]

THIS_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
SEVERAL_MINUTES = 1200


def pip_setting(name: str) -> str:
    """A setting of the user's pip; "" if it is not set."""
    command = [sys.executable, "-m", "pip", "config", "get", f"global.{name}"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def index_alone() -> dict[str, str]:
    """Variables that keep only the index of pip's settings: other indexes may have a part of the packages."""
    configured = pip_setting("index-url")
    return {"PIP_CONFIG_FILE": os.devnull, **({"PIP_INDEX_URL": configured} if configured else {})}


def torch_wheel() -> Path | None:
    """The CPU wheel of PyTorch for this Python in a folder that pip is configured with."""
    folders = pip_setting("find-links").split()
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    found = (path for folder in folders for path in sorted(Path(folder).glob(f"torch-*+cpu-{tag}-{tag}-*.whl")))
    return next(found, None)


@pytest.fixture
def torch_index() -> Iterator[tuple[str, str] | None]:
    """PyTorch's own index with that wheel, on loopback: its address and the version; None without a wheel."""
    wheel = torch_wheel()
    if wheel is None:
        yield None
        return
    content = wheel.read_bytes()
    with ZipFile(wheel) as archive:
        name = next(it for it in archive.namelist() if it.endswith(".dist-info/METADATA"))
        metadata = archive.read(name)
    digests = (sha256(content).hexdigest(), sha256(metadata).hexdigest())
    with IndexServer(recorded=False) as server:
        shelf = server.index("/whl/cpu/", "pytorch")
        shelf.add("torch", [IndexFile(wheel.name, content, metadata, *digests)])
        yield f"{server.url}/whl", wheel.name.split("-")[1].partition("+")[0]


def run(*words: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """One command line of envsolve, as a user types it."""
    done = subprocess.run(
        [sys.executable, "-m", "envsolve", *words],
        cwd=directory,
        env={**os.environ, **index_alone()},
        capture_output=True,
        text=True,
        check=False,
        timeout=SEVERAL_MINUTES,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done


def test_real_frameworks_are_locked_installed_and_proven_on_the_cpu(
    torch_index: tuple[str, str] | None, tmp_path: Path
) -> None:
    arguments = ["-f", "jax", "-f", "onnxruntime"]
    if torch_index is not None:
        url, version = torch_index
        arguments += [
            "-f",
            f"pytorch=={version}",
            "--pytorch-index-url",
            url,
            "--source",
            "pytorch",
            "--source",
            "pypi",
        ]
    run(*arguments, "--gpu", "none", "--python", THIS_PYTHON, "-o", "pylock.toml", directory=tmp_path)
    run("create", "environment", "--lock", "pylock.toml", "--no-validate", directory=tmp_path)
    done = run("validate", "--prefix", "environment", "--device", "cpu", "--json", directory=tmp_path)
    probes: list[dict[str, Any]] = json.loads(done.stdout)["probes"]
    proven = {probe["name"] for probe in probes if probe["status"] == "pass"}
    assert proven >= {"jax", "onnxruntime", *(() if torch_index is None else ("pytorch",))}
    again = run("create", "environment", "--lock", "pylock.toml", directory=tmp_path)
    assert "up to date" in again.stderr
    assert "proven by" in again.stderr


@pytest.mark.skipif(
    "ENVSOLVE_TEST_TENSORFLOW" not in os.environ, reason="ENVSOLVE_TEST_TENSORFLOW asks for it: it is large"
)
def test_tensorflow_is_locked_installed_and_proven_on_the_cpu(tmp_path: Path) -> None:
    arguments = ["-f", "tensorflow", "--gpu", "none", "--source", "pypi", "--python", THIS_PYTHON]
    done = run("create", "environment", *arguments, directory=tmp_path)
    assert "environment/bin/python: proven by tensorflow" in done.stderr


@pytest.mark.parametrize("framework", ["pytorch", "tensorflow", "jax"])
@pytest.mark.parametrize("machine", [("8.9", "580.95.05"), ("6.1", "580.95.05"), ("8.6", "535.183.01")])
def test_the_stack_without_a_network_is_that_of_the_lock(
    framework: str, machine: tuple[str, str], tmp_path: Path
) -> None:
    gpu, driver = machine
    target = ("--gpu", gpu, "--driver", driver, "--platform", "linux-64", "--source", "pypi", "--json")
    stack = json.loads(run("-f", framework, *target, directory=tmp_path).stdout)
    lock = json.loads(run("-f", framework, *target, "--format", "requirements", directory=tmp_path).stdout)
    assert [lock[key] for key in ("python", "cuda", "frameworks")] == [
        stack[key] for key in ("python", "cuda", "frameworks")
    ]
