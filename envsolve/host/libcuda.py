"""libcuda, the CUDA driver library: what CUDA programs really get. It is asked in a child process.

The child has no CUDA_VISIBLE_DEVICES: a host's GPUs do not depend on what one shell hides.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.programs import Finished, run_program
from envsolve.host.gpus import grouped
from envsolve.host.loader import cuda_candidates, load_problem, without_relative_entries
from envsolve.host.machine import Machine
from envsolve.host.probe import Source
from envsolve.host.trouble import Trouble, cuda_problem
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Gpu, Problem, Reading
from envsolve.model.versions import CudaVersion

CHILD = Path(__file__).with_name("libcuda_child.py")


class LibcudaProbe(NamedTuple):
    """CUDA version and GPUs from libcuda. It knows no driver version."""

    machine: Machine
    name: str = Source.LIBCUDA

    def read(self) -> Reading | None:
        """Return what the child says, or the problem that kept it from saying anything."""
        command = (sys.executable, "-I", os.fspath(CHILD), *cuda_candidates(self.machine))
        environ = without_relative_entries(self.machine.environ)
        environ.pop("CUDA_VISIBLE_DEVICES", None)
        return reading_of(run_program(command, environ, self.machine.timeout), self.name)


def reading_of(finished: Finished, source: str = Source.LIBCUDA) -> Reading:
    """The child's answer as a reading; a child that hung, crashed or babbled is a problem."""
    if finished.hung:
        return Reading(source, problem=Problem(Trouble.HANG, "libcuda did not answer in time"))
    answer = _answer(finished.output)
    if answer is None:
        return Reading(source, problem=Problem(Trouble.CRASH, f"asking libcuda ended with {finished.exit_code}"))
    version = answer.get("version")
    driver_cuda = CudaVersion.from_driver_api(version) if isinstance(version, int) else None
    return Reading(source, driver_cuda=driver_cuda, gpus=_gpus(answer), problem=_problem(answer))


def _answer(output: str) -> dict[str, object] | None:
    """The last line as JSON; libraries put in front of the driver may have printed others."""
    import json

    try:
        answer = json.loads(output.strip().rpartition("\n")[2])
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _gpus(answer: dict[str, object]) -> tuple[Gpu, ...] | None:
    devices = answer.get("devices")
    if not isinstance(devices, list) or (not devices and answer.get("error")):
        return None
    return grouped(
        Gpu(device["name"], ComputeCapability(device["major"], device["minor"]), memory_mib=device["memory"] // 2**20)
        for device in devices
    )


def _problem(answer: dict[str, object]) -> Problem | None:
    error = answer.get("error")
    if not isinstance(error, dict):
        return None
    call, number, text = error.get("call"), error.get("number"), str(error.get("text", ""))
    if call == "load":
        return load_problem("libcuda", text)
    library = answer.get("library")
    place = f" (loaded from {library})" if library else ""
    if not isinstance(number, int):
        return Problem(Trouble.LIBRARY_UNUSABLE, f"{call} is missing: {text}{place}")
    problem = cuda_problem(number, str(call))
    return Problem(problem.code, problem.text + place, number)
