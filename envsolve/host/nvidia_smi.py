"""nvidia-smi, the driver's command-line tool: slower than NVML with the same facts, if NVML cannot be used here.

The exit code is not decisive: nvidia-smi may end with an error after printing everything there is (a lost GPU beside a
good one). Every call has a time limit, because it hangs on a lost GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from envsolve.boundary.programs import LONGEST_OUTPUT, Finished, run_program
from envsolve.host.gpus import grouped
from envsolve.host.loader import find_nvidia_smi
from envsolve.host.machine import Machine
from envsolve.host.probe import Source
from envsolve.host.trouble import Trouble, smi_problem
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Gpu, Reading, SourceFailure
from envsolve.model.versions import CudaVersion, DriverVersion

FIELDS = ("name", "compute_cap", "memory.total", "mig.mode.current")
"""Drivers up to R470 do not know ``compute_cap``, those before R450 do not know the MIG mode."""

_DRIVER = re.compile(r"\b(?:Driver|KMD) Version\s*:\s*([0-9]+(?:\.[0-9]+)+)")
_CUDA = re.compile(r"\bCUDA (?:UMD )?Version\s*:\s*([0-9]{1,2})\.([0-9]{1,2})(?![0-9])")
"""Since R610 the header has KMD Version and CUDA UMD Version (kernel-mode and user-mode driver)."""

_MEBIBYTES = re.compile(r"[0-9]{1,9}")

_UNKNOWN_FIELD = re.compile(r'Field "([^"]+)" is not a valid field')

_NUMBER_IN_WORDS = (
    ("version mismatch", 18),
    ("couldn't communicate with the NVIDIA driver", 9),
    ("Driver Not Loaded", 9),
    ("No devices were found", 6),
    ("Insufficient Permissions", 4),
    ("blocked by the operating system", 17),
    ("couldn't find libnvidia-ml", 12),
    ("Unknown Error", 999),
)


class NvidiaSmiProbe(NamedTuple):
    """Driver and CUDA version from nvidia-smi's header, GPUs from its query."""

    machine: Machine
    name: str = Source.NVIDIA_SMI

    def read(self) -> Reading | None:
        """Return the facts from nvidia-smi, or None if there is no such program."""
        program = find_nvidia_smi(self.machine)
        if program is None:
            return None
        header = self._run(program)
        stopped = _stopped(header)
        if stopped is not None:
            return Reading(self.name, problem=stopped)
        driver, driver_cuda = header_facts(header.output)
        if driver is None:
            problem = failure(header)
            return Reading(self.name, gpus=() if problem.code == Trouble.NO_DEVICE else None, problem=problem)
        gpus, problem_of_query = self._query(program, FIELDS)
        return Reading(self.name, driver=driver, driver_cuda=driver_cuda, gpus=gpus, problem=problem_of_query)

    def _query(self, program: str, fields: Sequence[str]) -> tuple[tuple[Gpu, ...] | None, SourceFailure | None]:
        """The GPUs; the query is repeated without a field that this driver does not know."""
        answer = self._run(program, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")
        stopped = _stopped(answer)
        if stopped is not None:
            return None, stopped
        unknown = _UNKNOWN_FIELD.search(answer.output)
        if unknown is not None and unknown[1] in fields and len(fields) > 1:
            return self._query(program, [name for name in fields if name != unknown[1]])
        gpus = grouped(rows(answer.output, fields))
        return (gpus, None) if gpus else (None, failure(answer))

    def _run(self, program: str, *arguments: str) -> Finished:
        return run_program((program, *arguments), self.machine.environ, self.machine.timeout)


def header_facts(text: str) -> tuple[DriverVersion | None, CudaVersion | None]:
    """The driver and CUDA versions in the header; either may be absent or ``N/A``."""
    driver, cuda = _DRIVER.search(text), _CUDA.search(text)
    try:
        driver_version = DriverVersion.parse(driver[1]) if driver is not None else None
    except ValueError:
        driver_version = None
    return driver_version, CudaVersion.from_driver_api(int(cuda[1]) * 1000 + int(cuda[2]) * 10) if cuda else None


def rows(text: str, fields: Sequence[str]) -> Iterator[Gpu]:
    """The GPUs in the answer to a query; lines of another form are messages about GPUs that could not be read."""
    for line in text.splitlines():
        values = [value.strip() for value in line.split(",")]
        if (
            len(values) == len(fields)
            and values[0]
            and not line.startswith(("Unable ", "Failed ", "No devices", "Field "))
        ):
            yield _gpu(dict(zip(fields, values, strict=True)))


def _gpu(row: Mapping[str, str]) -> Gpu:
    memory = row.get("memory.total", "")
    return Gpu(
        None if row["name"].startswith("[") else row["name"],
        _capability(row.get("compute_cap", "")),
        memory_mib=int(memory) or None if _MEBIBYTES.fullmatch(memory) else None,
        mig=row.get("mig.mode.current") == "Enabled",
    )


def _capability(text: str) -> ComputeCapability | None:
    """``8.6`` as a capability; None for ``[N/A]`` and the like."""
    try:
        return ComputeCapability.parse(text)
    except ValueError:
        return None


def failure(finished: Finished) -> SourceFailure:
    """Why nvidia-smi gave no facts: its message first, since it exits with 255 for several different failures."""
    numbers = [number for words, number in _NUMBER_IN_WORDS if words in finished.output]
    problem = smi_problem(numbers[0] if numbers else finished.exit_code or 0)
    message = finished.output.strip().partition("\n")[0]
    return SourceFailure(problem.code, f"{problem.text} ({message!r})" if message else problem.text, problem.number)


def _stopped(finished: Finished) -> SourceFailure | None:
    """Why nvidia-smi was stopped; None if it ended by itself."""
    if finished.flooded:
        return SourceFailure(Trouble.UNREADABLE_ANSWER, f"nvidia-smi printed more than {LONGEST_OUTPUT >> 20} MB")
    return SourceFailure(Trouble.HANG, "nvidia-smi did not answer in time") if finished.hung else None
