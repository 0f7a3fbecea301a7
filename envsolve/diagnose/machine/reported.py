"""Problems that the sources of the detection reported: error numbers of the driver, hangs, unreadable answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from envsolve.diagnose.machine.survey import Survey
from envsolve.findings.catalogue import shipped
from envsolve.host.probe import Source
from envsolve.host.trouble import Trouble
from envsolve.model.finding import Finding, Severity
from envsolve.model.host import GpuStatus, Reading, SourceFailure

BY_TROUBLE: Mapping[str, str] = {
    Trouble.LIBRARY_MISSING: "driver-library-missing",
    Trouble.LIBRARY_UNUSABLE: "driver-library-unusable",
    Trouble.DRIVER_NOT_LOADED: "kernel-module-not-loaded",
    Trouble.VERSION_MISMATCH: "driver-version-mismatch",
    Trouble.NO_PERMISSION: "gpu-not-permitted",
    Trouble.BLOCKED_BY_SYSTEM: "driver-refused-by-system",
    Trouble.NO_DEVICE: "no-device",
    Trouble.GPU_LOST: "gpu-lost",
    Trouble.STUB_LIBRARY: "stub-driver-library",
    Trouble.FABRIC_MANAGER: "fabric-manager-not-ready",
    Trouble.FORWARD_COMPATIBILITY: "forward-compatibility-unsupported",
    Trouble.UNKNOWN_ERROR: "driver-unknown-error",
    Trouble.OTHER_ERROR: "driver-error",
    Trouble.HANG: "driver-hang",
    Trouble.CRASH: "driver-crash",
}
_EVERYDAY = (Trouble.LIBRARY_MISSING, Trouble.NO_DEVICE, Trouble.DRIVER_NOT_LOADED, Trouble.STUB_LIBRARY)
"""Normal problems of sources on machines without a GPU."""
_NOT_ASKED = (Trouble.BINDINGS_MISSING, Trouble.PROBE_FAILED, Trouble.UNREADABLE_ANSWER)


def check_reported(survey: Survey) -> Iterator[Finding]:
    """One finding for each problem of NVML, libcuda or nvidia-smi, with all sources that report it."""
    groups: dict[str, list[tuple[Reading, SourceFailure]]] = {}
    for reading in survey.live_readings:
        problem = reading.problem
        identifier = None if problem is None else _identifier(reading, problem)
        if problem is None or identifier is None or _is_everyday(survey, reading, problem):
            continue
        groups.setdefault(identifier, []).append((reading, problem))
    for identifier, group in groups.items():
        only_beside = survey.libcuda_works and all((reading.source != Source.LIBCUDA for reading, _ in group))
        texts = [f"{reading.source}: {problem.text}" for reading, problem in group]
        yield survey.finding(
            identifier,
            texts,
            seen=(f"{text}." for text in texts),
            severity=Severity.WARNING if only_beside else Severity.ERROR,
        )


def check_unreadable(survey: Survey) -> Iterator[Finding]:
    """Sources of the detection that could not be read, or gave unreadable answers."""
    lost = [(it.source, it.problem.text) for it in survey.host.readings if it.problem and it.problem.code in _NOT_ASKED]
    if lost:
        entries = tuple(f"{source} ({text})" for source, text in lost)
        evidence = tuple(f"{source}: {text}" for source, text in lost)
        yield survey.finding("source-not-asked", evidence, entries=entries)


def _identifier(reading: Reading, problem: SourceFailure) -> str | None:
    by_number = None if problem.number is None else shipped().numbers.get(problem.number)
    if reading.source == Source.LIBCUDA and by_number is not None and problem.code != Trouble.CRASH:
        return by_number
    return BY_TROUBLE.get(problem.code)


def _is_everyday(survey: Survey, reading: Reading, problem: SourceFailure) -> bool:
    """Whether it is no fault: no GPU, or a missing source beside a working one."""
    if problem.code in _EVERYDAY and survey.host.status is GpuStatus.NO_HARDWARE:
        return True
    working = survey.libcuda_works if reading.source != Source.LIBCUDA else False
    return working and problem.code == Trouble.LIBRARY_MISSING
