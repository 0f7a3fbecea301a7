"""Writes one file of every format into the directory of the current version: ``python -m tests.golden.writing``.

It is run when a release is made; what a released version wrote stays as it is (README.md).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from envsolve import __version__
from envsolve.app.request.command import recorded_options
from envsolve.app.solve.solving import stacks_of
from envsolve.create.reading import plan_of
from envsolve.create.record import State, record_of, write_record
from envsolve.host.host_file import host_as_json, read_host_file
from envsolve.lockfile.answer import Answer
from envsolve.lockfile.formats import write, write_conda_lock, write_python_lock
from envsolve.matrix import Matrix, find_matrix
from envsolve.model.host import Platform, Reading, SourceFailure
from envsolve.model.request import FrameworkRequest, Request, parse_versions
from envsolve.model.versions import DriverVersion
from envsolve.resolve.solver import Solver
from tests.lockfile.conda_locks import two_platforms
from tests.lockfile.locks import rtx_3090

HERE = Path(__file__).parent
_HOST = HERE.parent / "hosts" / "two-gpus-580.95.05.json"
_DATE = "2026-11-20"


def main() -> None:
    """Write the files, replacing existing ones."""
    directory = HERE / __version__
    directory.mkdir(exist_ok=True)
    for name, text in files(Matrix(find_matrix())):
        (directory / name).write_text(text, "utf-8", newline="\n")


def files(matrix: Matrix) -> Iterator[tuple[str, str]]:
    """Each file by its name, with its text."""
    answer = _pytorch(matrix)
    for name, form in (("environment.yml", "environment"), ("answer.json", "json"), ("pixi.toml", "pixi")):
        ((_, text),) = write([answer], form)
        yield name, text
    python_lock = rtx_3090(matrix)
    assert python_lock.made is not None
    python_lock = python_lock._replace(made=python_lock.made._replace(envsolve_version=__version__))
    yield "requirements.txt", write_python_lock(python_lock, "requirements")
    yield "pylock.toml", write_python_lock(python_lock, "pylock")
    conda_locks = [
        lock._replace(made=made._replace(envsolve_version=__version__))
        for lock in two_platforms(matrix)
        if (made := lock.made) is not None
    ]
    ((_, text),) = write_conda_lock(conda_locks, "conda-lock")
    yield "conda-lock.yml", text
    yield "record.json", _record(text)
    for platform, text in write_conda_lock(conda_locks, "explicit"):
        yield f"{platform}.explicit.lock", text
    for platform, text in write_conda_lock(conda_locks, "environment"):
        yield f"{platform}.exact.yml", text
    yield "host.json", _host()


def _pytorch(matrix: Matrix) -> Answer:
    """A stack that is not the newest, like one locked some time ago."""
    request = Request(
        (FrameworkRequest("pytorch", parse_versions("==2.9.*")),),
        gpus=("RTX 3090",),
        driver=DriverVersion.parse("580.65.06"),
        platforms=(Platform.LINUX_64,),
    )
    targets, solutions, _ = stacks_of(request, matrix, {}, Solver(matrix))
    command = "envsolve -f 'pytorch==2.9.*' --gpu 'RTX 3090' --driver 580.65.06 --platform linux-64"
    return Answer(solutions[0], targets[0].hosts, command, _DATE, __version__, options=recorded_options(request))


def _record(conda_lock: str) -> str:
    """The files of an environment made from the conda lock, at a path that does not exist."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "conda-lock.yml")
        path.write_text(conda_lock, "utf-8")
        plan = plan_of(path, Platform.LINUX_64)
        record = record_of(plan, "envsolve create env --lock conda-lock.yml", State.FINISHED, "/srv/env")
        write_record(Path(folder), record)
        return Path(folder, ".envsolve.json").read_text("utf-8")


def _host() -> str:
    """As ``envsolve detect --json`` prints it, with the reading of each source."""
    host = read_host_file(_HOST)
    silent = Reading("nvidia-smi", problem=SourceFailure("hang", "nvidia-smi did not answer in time"))
    reading = Reading("nvml", host.driver, host.driver_cuda, host.gpus)
    return json.dumps(host_as_json(host._replace(readings=(reading, silent))), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    main()
