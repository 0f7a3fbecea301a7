"""The interface of a source of facts about the NVIDIA driver, and the names of all sources."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from envsolve.boundary.display import short_line
from envsolve.host.trouble import Trouble
from envsolve.model.host import Reading, SourceFailure


class Source(StrEnum):
    """Names of sources in ``origin`` and ``readings``; a file is named by its path."""

    NVML = "nvml"
    LIBCUDA = "libcuda"
    NVIDIA_SMI = "nvidia-smi"
    SYS_MODULE = "/sys/module/nvidia/version"
    PROC_VERSION = "/proc/driver/nvidia/version"
    PROC_GPUS = "/proc/driver/nvidia/gpus"
    DEVICE_NODES = "/dev/nvidia*"
    PCI = "pci"
    REGISTRY = "registry"


class Probe(Protocol):
    """One source of facts about the NVIDIA driver of this machine."""

    @property
    def name(self) -> str:
        """The source, as in ``origin`` and messages."""

    def read(self) -> Reading | None:
        """Return the facts from this source, or None if it does not apply."""


def read_probe(probe: Probe) -> Reading | None:
    """Read one source. Every failure becomes a reading, since one broken source must not end detection.

    Text of the driver, its programs and its files enters here. It becomes short lines without control characters.
    """
    try:
        reading = probe.read()
    except Exception as error:  # noqa: BLE001 - the point of this function
        reading = Reading(probe.name, problem=SourceFailure(Trouble.PROBE_FAILED, f"{type(error).__name__}: {error}"))
    return None if reading is None else _cleaned(reading)


def _cleaned(reading: Reading) -> Reading:
    gpus, problem = reading.gpus, reading.problem
    return reading._replace(
        gpus=None if gpus is None else tuple(gpu._replace(name=gpu.name and short_line(gpu.name)) for gpu in gpus),
        problem=None if problem is None else problem._replace(text=short_line(problem.text)),
    )
