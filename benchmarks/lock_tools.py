"""The tools that lock: how each makes the same lock, what one run of it costs, and what it pinned.

All see the same index and an environment without settings of this user. A lock is for CPython 3.11.7 on linux-64 with
wheels alone and, but for pip, with hashes. pip resolves for the Python that runs it and writes no lock: its report is
the nearest there is, and costs what ``pip lock`` costs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

PYTHON = "3.11.7"
ENVSOLVE, UV, PIP = "envsolve", "uv", "pip"
KILLED = -9
_COMPILE = """
import compileall, pathlib, sysconfig, envsolve
for directory in (sysconfig.get_path("purelib"), pathlib.Path(envsolve.__file__).parent):
    compileall.compile_dir(directory, quiet=2)
"""
_MEASURE = """
import os, signal, sys, time
start = time.perf_counter()
process = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, 2, 1)])
signal.signal(signal.SIGALRM, lambda *_: os.kill(process, signal.SIGKILL))
signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]))
_, status, usage = os.wait4(process, 0)
taken = time.perf_counter() - start
processor = usage.ru_utime + usage.ru_stime
print(taken, processor, usage.ru_maxrss * 1024 / 1e6, os.waitstatus_to_exitcode(status))
"""
"""Runs a command from a process of 10 MB: on Linux a child's peak memory is never less than what its parent has."""
_SETTINGS = ("UV_", "PIP_", "ENVSOLVE_", "XDG_", "CONDA", "MAMBA", "RATTLER_", "PIXI_", "PYTHON")
_PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;\\]+)", re.MULTILINE)


class Job(NamedTuple):
    """One lock to write: from the requirements in ``requirements`` to ``output``."""

    requirements: Path
    index_url: str
    cache: Path
    output: Path


class Tool(NamedTuple):
    """One tool; ``command`` is what to type for a job."""

    name: str
    command: Callable[[Job], list[str]]


class Run(NamedTuple):
    """What one process cost, with the processes it waited for; ``complaint`` is what it said."""

    seconds: float
    processor_seconds: float
    megabytes: float
    requests: int | None
    status: int
    complaint: str


def envsolve_at(executable: Path) -> Tool:
    """The tool envsolve, a console script of an environment whose modules and matrix are compiled now."""
    compile_all(executable)

    def command(job: Job) -> list[str]:
        words = ["-r", str(job.requirements), "--format", "requirements", "--python", PYTHON, "--platform", "linux-64"]
        return [str(executable), *words, *_places(job), "-o", str(job.output)]

    return Tool(ENVSOLVE, command)


def compile_all(executable: Path) -> None:
    """Compile modules and matrix of the environment that has the console script ``executable`` of envsolve."""
    home = environment(Path.home())
    subprocess.run([executable.parent / "python", "-c", _COMPILE], env=home, check=True)
    subprocess.run([executable, "matrix", "check"], env=home, stdout=subprocess.DEVNULL, check=True)


def uv_at(executable: Path, python: Path) -> Tool:
    """The tool uv; it looks at ``python`` once and keeps what it saw in its cache."""

    def command(job: Job) -> list[str]:
        words = ["pip", "compile", "-q", "--no-config", "--python", str(python), "--python-version", PYTHON]
        words += ["--python-platform", "x86_64-manylinux_2_28", "--only-binary", ":all:", "--generate-hashes"]
        return [str(executable), *words, *_places(job), str(job.requirements), "-o", str(job.output)]

    return Tool(UV, command)


def pip_of(python: Path) -> Tool:
    """The tool pip, run by ``python`` and resolving for it."""

    def command(job: Job) -> list[str]:
        words = ["-m", "pip", "install", "-q", "--dry-run", "--ignore-installed", "--only-binary", ":all:"]
        words += ["--disable-pip-version-check", "-r", str(job.requirements), "--report", str(job.output)]
        return [str(python), *words, *_places(job)]

    return Tool(PIP, command)


def _places(job: Job) -> list[str]:
    return ["--index-url", job.index_url, "--cache-dir", str(job.cache)]


def environment(home: Path) -> dict[str, str]:
    """The variables of this process without those that change answers or costs, as one that forbids bytecode does."""
    kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(_SETTINGS)}
    return {**kept, "HOME": str(home), "PIP_CONFIG_FILE": os.devnull, "NO_PROXY": "127.0.0.1", "NO_COLOR": "1"}


def run(command: list[str], directory: Path, seconds: float, variables: Mapping[str, str] | None = None) -> Run:
    """Run ``command`` in ``directory``, for so many ``seconds`` at most; ``variables`` come beside its environment."""
    with tempfile.TemporaryFile() as said:
        measure = [sys.executable, "-I", "-S", "-c", _MEASURE, str(seconds), *command]
        environ = {**environment(directory), **(variables or {})}
        measured = subprocess.run(measure, cwd=directory, env=environ, stdout=subprocess.PIPE, stderr=said, check=True)
        said.seek(0)
        complaint = said.read().decode(errors="replace").strip()
    taken, processor, megabytes, status = map(float, measured.stdout.split())
    return Run(taken, processor, megabytes, None, int(status), complaint)


def pins_in(output: Path) -> dict[str, str]:
    """The versions by name that a requirements file or a report of pip holds; none where nothing was written."""
    if not output.exists():
        return {}
    text = output.read_text("utf-8")
    if text.startswith("{"):
        found = [(it["metadata"]["name"], it["metadata"]["version"]) for it in json.loads(text)["install"]]
    else:
        found = _PIN.findall(text)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}
