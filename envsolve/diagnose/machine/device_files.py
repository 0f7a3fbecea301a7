"""Whether this user can open the driver's device files, which is how every program reaches a GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envsolve.diagnose.machine.survey import Survey
from envsolve.host.probe import Source
from envsolve.model.finding import Finding, Severity

_GPU = re.compile(r"nvidia\d+\Z")
_CONTROL, _MEMORY = "/dev/nvidiactl", "/dev/nvidia-uvm"
_JETSON = ("/dev/nvhost-ctrl-gpu", "/dev/nvmap", "/dev/nvgpu/igpu0/ctrl")
"""Those of its GPU; which of them there are depends on the release."""
_WSL = "/dev/dxg"
_NO_MEMORY_FILE = (3, 100, 304, 999)
"""Errors of cuInit that come up when /dev/nvidia-uvm cannot be used."""


def check_device_files(survey: Survey) -> Iterator[Finding]:
    """Device files that are missing or closed to this user. None is, where libcuda lists GPUs."""
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
        what = " and ".join(missing)
        verb = "are" if len(missing) > 1 else "is"
        fix, commands = _way_to_make(survey)
        yield Finding(
            "device-nodes-missing",
            "Device files of the driver are missing",
            Severity.ERROR,
            f"{what} {verb} not there: no program can reach a GPU without.",
            fix,
            commands,
            tuple(f"{path} is not there" for path in missing),
        )


def _way_to_make(survey: Survey) -> tuple[str, tuple[str, ...]]:
    if survey.is_wsl:
        return "Update Windows and WSL, and start WSL anew; in a container, give it the device.", ("wsl.exe --update",)
    if survey.container is not None:
        return "Start the container with its GPUs; their device files come with them.", ()
    return "Have the driver's own tool make them; where it cannot, restart.", ("sudo nvidia-modprobe -c 0 -u",)


def _without_memory_file(survey: Survey) -> Finding:
    """On a host libcuda makes it at its first use, with the help of nvidia-modprobe; in a container it cannot."""
    reading = survey.reading(Source.LIBCUDA)
    number = reading.problem.number if reading is not None and reading.problem is not None else None
    failed = number in _NO_MEMORY_FILE
    inside = survey.container is not None
    where = "Add the device to the container." if inside else "Load the module nvidia-uvm."
    return Finding(
        "container-without-uvm" if inside else "device-nodes-missing",
        f"{_MEMORY} is missing",
        Severity.ERROR if failed else Severity.WARNING,
        f"{_MEMORY} is not there: CUDA needs it for its memory. "
        + ("libcuda could not make it." if failed else "libcuda makes it at its first use, where it may."),
        f"{where} On a host it is made with nvidia-modprobe.",
        () if inside else ("sudo modprobe nvidia-uvm", "sudo nvidia-modprobe -c 0 -u"),
        (f"{_MEMORY} is not there",),
    )


def _closed(survey: Survey, paths: list[str]) -> Iterator[Finding]:
    closed = [path for path in paths if not survey.surroundings.may_open(survey.files.file(path))]
    if not closed:
        return
    jetson = survey.l4t is not None
    group = "of the groups video and render" if jetson else "of the group that owns them (often video or render)"
    yield Finding(
        "device-nodes-denied",
        "This user may not open the driver's device files",
        Severity.ERROR,
        f"{', '.join(closed)} may not be read and written by this user.",
        f"Make the user a member {group}, and log in again; in a job of a batch system ask for a GPU; in a container "
        "give it the devices.",
        (f"ls -l {' '.join(closed)}", "id", 'sudo usermod -aG video,render "$USER"'),
        tuple(f"{path} may not be opened for reading and writing" for path in closed),
    )
