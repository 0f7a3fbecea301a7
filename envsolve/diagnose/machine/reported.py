"""What the sources of the detection complained of: error numbers of the driver, hangs, answers nobody can read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from envsolve.diagnose.machine.driver_findings import of_driver
from envsolve.diagnose.machine.survey import Survey
from envsolve.host.probe import Source
from envsolve.host.trouble import Trouble
from envsolve.model.finding import Finding, Severity
from envsolve.model.host import GpuStatus, Reading, SourceFailure
from envsolve.validation.driver_advice import HARDWARE
from envsolve.validation.driver_errors import (
    CRASH,
    ERRORS,
    HANG,
    LIBRARY_MISSING,
    LIBRARY_UNUSABLE,
    OTHER,
    DriverError,
)

GPU_LOST = DriverError(
    "NVML_ERROR_GPU_IS_LOST",
    "gpu-lost",
    "A GPU fell off the bus",
    "The driver lost a GPU while it was running: its power, its slot, heat, or the GPU itself.",
    HARDWARE,
    in_scope=False,
)
_NOT_LOADED = DriverError(
    "NVML_ERROR_DRIVER_NOT_LOADED",
    "kernel-module-not-loaded",
    "The NVIDIA kernel driver is not loaded",
    "The driver's libraries are there and reach no kernel driver.",
    ERRORS[3].advice,
)

BY_TROUBLE: Mapping[str, DriverError] = {
    Trouble.LIBRARY_MISSING: LIBRARY_MISSING,
    Trouble.LIBRARY_UNUSABLE: LIBRARY_UNUSABLE,
    Trouble.DRIVER_NOT_LOADED: _NOT_LOADED,
    Trouble.VERSION_MISMATCH: ERRORS[803],
    Trouble.NO_PERMISSION: ERRORS[800],
    Trouble.BLOCKED_BY_SYSTEM: ERRORS[304],
    Trouble.NO_DEVICE: ERRORS[100],
    Trouble.GPU_LOST: GPU_LOST,
    Trouble.STUB_LIBRARY: ERRORS[34],
    Trouble.FABRIC_MANAGER: ERRORS[802],
    Trouble.FORWARD_COMPATIBILITY: ERRORS[804],
    Trouble.UNKNOWN_ERROR: ERRORS[999],
    Trouble.OTHER_ERROR: OTHER,
    Trouble.HANG: HANG,
    Trouble.CRASH: CRASH,
}
_EVERYDAY = (Trouble.LIBRARY_MISSING, Trouble.NO_DEVICE, Trouble.DRIVER_NOT_LOADED, Trouble.STUB_LIBRARY)
"""What sources say on machines without a GPU, where it is no fault."""
_NOT_ASKED = (Trouble.BINDINGS_MISSING, Trouble.PROBE_FAILED, Trouble.UNREADABLE_ANSWER)


def check_reported(survey: Survey) -> Iterator[Finding]:
    """One finding for each trouble that NVML, libcuda or nvidia-smi met, the sources that say so together."""
    told: dict[str, list[tuple[Reading, SourceFailure, DriverError]]] = {}
    for reading in survey.live_readings:
        problem = reading.problem
        error = None if problem is None else _error(reading, problem)
        if problem is None or error is None or _is_everyday(survey, reading, problem):
            continue
        told.setdefault(error.id, []).append((reading, problem, error))
    for group in told.values():
        yield _finding(survey, group)


def check_unasked(survey: Survey) -> Iterator[Finding]:
    """Sources of the detection that could not be asked, or answered what nobody can read."""
    lost = [(it.source, it.problem.text) for it in survey.host.readings if it.problem and it.problem.code in _NOT_ASKED]
    if lost:
        yield Finding(
            "source-not-asked",
            "A source of the detection could not be asked",
            Severity.INFO,
            f"These did not answer as expected: {'; '.join(f'{source} ({text})' for source, text in lost)}. What they "
            "would have said is not known.",
            "Where the others tell enough, nothing has to be done.",
            ("envsolve detect --json",),
            tuple(f"{source}: {text}" for source, text in lost),
        )


def _error(reading: Reading, problem: SourceFailure) -> DriverError | None:
    if reading.source == Source.LIBCUDA and problem.number in ERRORS and problem.code != Trouble.CRASH:
        return ERRORS[problem.number]
    return BY_TROUBLE.get(problem.code)


def _is_everyday(survey: Survey, reading: Reading, problem: SourceFailure) -> bool:
    """Whether it is no fault: no GPU, or a source that is missing beside one that works."""
    if problem.code in _EVERYDAY and survey.host.status is GpuStatus.NO_HARDWARE:
        return True
    working = survey.libcuda_works if reading.source != Source.LIBCUDA else False
    return working and problem.code == Trouble.LIBRARY_MISSING


def _finding(survey: Survey, group: list[tuple[Reading, SourceFailure, DriverError]]) -> Finding:
    error = group[0][2]
    only_beside = survey.libcuda_works and all(reading.source != Source.LIBCUDA for reading, _, _ in group)
    texts = [f"{reading.source}: {problem.text}" for reading, problem, _ in group]
    return of_driver(
        survey,
        error,
        " ".join(f"{text}." for text in texts),
        texts,
        Severity.WARNING if only_beside else Severity.ERROR,
    )
