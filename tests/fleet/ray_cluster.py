"""A real Ray on this machine: several nodes with simulated numbers of GPUs, in a separate environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).with_name("ray_nodes.py")
_GIVEN = "TEST_RAY_PYTHON"
"""A Python that has Ray, so that none is installed (ENVSOLVE_ names are for envsolve alone)."""
_MINUTES = 600


class Ray:
    """``python`` has Ray, and ``environ`` is what its programs need to find the nodes."""

    def __init__(self, python: Path, environ: Mapping[str, str], process: subprocess.Popen[str]) -> None:
        self.python, self.environ, self._process = python, environ, process

    def say(self, code: str) -> str:
        """The output of a program that is a driver of Ray."""
        command = [str(self.python), "-c", code]
        return subprocess.run(
            command, env=dict(self.environ), text=True, timeout=_MINUTES, check=True, capture_output=True
        ).stdout

    def stop(self, node: str) -> None:
        """End a node, as if the machine were switched off."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{node}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "ended\n"


def python_with_ray(directory: Path) -> Path:
    """A Python with Ray, installed into ``directory``; the test is skipped if the package index has none."""
    if _GIVEN in os.environ:
        return Path(os.environ[_GIVEN])
    subprocess.run([sys.executable, "-m", "venv", directory], check=True)
    python = directory / ("Scripts" if os.name == "nt" else "bin") / "python"
    done = subprocess.run(
        [python, "-m", "pip", "install", "-q", "ray[default]"], text=True, check=False, stderr=subprocess.PIPE
    )
    if done.returncode:
        pytest.skip(f"Ray cannot be installed here: {done.stderr.strip().rpartition(chr(10))[2]}")
    return python


@contextmanager
def ray_of(python: Path, nodes: Mapping[str, int]) -> Iterator[Ray]:
    """A Ray with these nodes, each with its number of GPUs."""
    directory = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # sockets have short paths
    Path(directory, "ray").mkdir()  # for its address, which it writes into a directory that it does not make
    environ = {
        **os.environ,
        "RAY_TMPDIR": directory,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_health_check_period_ms": "500",
    }
    command = [str(python), str(_SCRIPT), directory, *(f"{name}={gpus}" for name, gpus in nodes.items())]
    with Path(directory, "nodes.log").open("w") as log:
        process = subprocess.Popen(
            command, env=environ, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address, Path(directory, "nodes.log").read_text()
        yield Ray(python, {**environ, "RAY_ADDRESS": address}, process)
    finally:
        process.communicate(timeout=_MINUTES)
        shutil.rmtree(directory, ignore_errors=True)
