"""Whether this user can open the driver's device files, through which every program accesses a GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envsolve.diagnose.machine.survey import Survey
from envsolve.host.probe import Source
from envsolve.model.finding import Finding, Severity

_GPU = re.compile(r"nvidia\d+\Z")
_CONTROL, _MEMORY = "/dev/nvidiactl", "/dev/nvidia-uvm"
_JETSON = ("/dev/nvhost-ctrl-gpu", "/dev/nvmap", "/dev/nvgpu/igpu0/ctrl")
"""The device files of its GPU; which of them exist depends on the release."""
_WSL = "/dev/dxg"
_NO_MEMORY_FILE = (3, 100, 304, 999)
"""Errors of cuInit if /dev/nvidia-uvm cannot be used."""


def check_device_files(survey: Survey) -> Iterator[Finding]:
    """Device files that are missing or not accessible to this user. There are none if libcuda lists GPUs."""
    if not survey.is_linux or survey.libcuda_works:
        return
    if survey.l4t is not None:
        yield from _closed(survey, [path for path in _JETSON if survey.files.exists(path)])
    elif survey.is_wsl:
        if survey.has_gpu:
            yield from _missing(survey, [] if survey.files.exists(_WSL) else [_WSL])
        yield from _closed(survey, [_WSL] if survey.files.exists(_WSL) else [])
    elif survey.module_is_loaded:
        yield from _of_driver(survey)


def _of_driver(survey: Survey) -> Iterator[Finding]:
    nodes = [f"/dev/{name}" for name in survey.files.names("/dev") if _GPU.match(name)]
    present = [path for path in (_CONTROL, _MEMORY) if survey.files.exists(path)]
    missing = [] if _CONTROL in present else [_CONTROL]
    missing += [] if nodes else ["/dev/nvidia0"]
    if missing and (survey.container is None or survey.libcuda is not None):
        yield from _missing(survey, missing)
    elif _MEMORY not in present and survey.libcuda is not None:
        yield _without_memory_file(survey)
    yield from _closed(survey, [*present, *nodes])


def _missing(survey: Survey, missing: list[str]) -> Iterator[Finding]:
    if missing:
        evidence = [f"{path} is not there" for path in missing]
        yield survey.finding("device-nodes-missing", evidence, places=tuple(missing))


def _without_memory_file(survey: Survey) -> Finding:
    """The finding for a missing /dev/nvidia-uvm.

    On a host libcuda creates it at its first use, through nvidia-modprobe; in a container it cannot.
    """
    reading = survey.reading(Source.LIBCUDA)
    number = reading.problem.number if reading is not None and reading.problem is not None else None
    failed = number in _NO_MEMORY_FILE
    severity = Severity.ERROR if failed else None
    evidence = (f"{_MEMORY} is not there",)
    return survey.finding("memory-device-missing", evidence, severity=severity, fails=failed)


def _closed(survey: Survey, paths: list[str]) -> Iterator[Finding]:
    closed = [path for path in paths if not survey.may_open(survey.files.file(path))]
    if closed:
        evidence = [f"{path} may not be opened for reading and writing" for path in closed]
        yield survey.finding("device-nodes-denied", evidence, places=tuple(closed), files_typed=" ".join(closed))
