"""The tools that lock conda packages: how each makes the same lock, and which packages it locked.

All see the same channel: rattler's settings lead envsolve to it in place of conda.anaconda.org, the bare solve is given
its address, and conda finds channels by their names there. None sees settings of this user.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.conda_channels import ChannelDirectory
from benchmarks.lock_tools import ENVSOLVE, compile_all

RATTLER = "rattler"
CONDA_LOCK = {solver: f"conda-lock ({solver})" for solver in ("rattler", "classic")}
"""The names of conda-lock by the solver of the conda client that it drives."""
DRIVER = "550.163.01"
GPU = ("--gpu", "8.6", "--driver", DRIVER)
CUDA = "12.4"
"""What that driver brings (``__cuda``)."""
_PACKAGE = re.compile(r"https?://\S+/([^/\s]+)-([^-/\s]+)-([^-/\s]+)\.(?:conda|tar\.bz2)\b")


class CondaJob(NamedTuple):
    """One lock to write to ``output``: the request to envsolve, and its environment file and match specs."""

    words: tuple[str, ...]
    environment: Path
    specs: tuple[str, ...]
    cache: Path
    output: Path


class CondaTool(NamedTuple):
    """One tool; ``command`` is what to type for a job, ``variables`` what it needs in its environment."""

    name: str
    command: Callable[[CondaJob], list[str]]
    variables: Mapping[str, str]


class Package(NamedTuple):
    """A conda package as its file's name has it."""

    name: str
    version: str
    build: str


def envsolve_at(executable: Path, config_home: Path) -> CondaTool:
    """envsolve, which finds channels by rattler's settings in ``config_home``; it is compiled now."""
    compile_all(executable)

    def command(job: CondaJob) -> list[str]:
        return [str(executable), *job.words, "--cache-dir", str(job.cache), "-o", str(job.output)]

    return CondaTool(ENVSOLVE, command, {"XDG_CONFIG_HOME": str(config_home)})


def rattler_of(python: Path, channels: ChannelDirectory) -> CondaTool:
    """A bare solve in a process of ``python``, with a channel at its address."""
    script = Path(__file__).with_name("rattler_solve.py")

    def command(job: CondaJob) -> list[str]:
        words = [f"{channels.url}/conda-forge", str(job.cache), str(job.output), *job.specs]
        return [str(python), str(script), *words]

    return CondaTool(RATTLER, command, {})


def conda_lock_with(solver: str, executable: Path, conda: Path, channels: ChannelDirectory, names: Path) -> CondaTool:
    """conda-lock, which drives the client ``conda`` with one of its solvers.

    ``names`` is what conda packages are called in Python, which conda-lock would fetch else, and nothing here needs.
    It gives conda an empty directory for packages each time, so that repodata is fetched each time.
    """

    def command(job: CondaJob) -> list[str]:
        words = ["lock", "--conda", str(conda), "--no-mamba", "--no-micromamba", "-p", "linux-64", "--with-cuda", CUDA]
        places = ["-f", str(job.environment), "--lockfile", str(job.output)]
        return [str(executable), *words, "--pypi_to_conda_lookup_file", names.as_uri(), *places]

    variables = {"CONDA_SOLVER": solver, "CONDA_CHANNEL_ALIAS": channels.url, "CONDA_NUMBER_CHANNEL_NOTICES": "0"}
    return CondaTool(CONDA_LOCK[solver], command, variables)


def packages_in(output: Path) -> Sequence[Package]:
    """The conda packages whose addresses a file holds, for all its platforms; none where nothing was written."""
    return [Package(*it) for it in _PACKAGE.findall(output.read_text("utf-8"))] if output.exists() else []


def beside(executable: str) -> Path:
    """A console script of the environment that runs this."""
    return Path(sys.executable).absolute().with_name(executable)
