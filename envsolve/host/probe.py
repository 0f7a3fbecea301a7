"""The seam of this package: one way of asking a machine about its NVIDIA driver, and the names of all ways."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from envsolve.boundary.display import short_line
from envsolve.host.trouble import Trouble
from envsolve.model.host import Reading, SourceFailure


class Source(StrEnum):
    """Names of sources as ``origin`` and ``readings`` show them; a file source is called by its path."""

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
    """One way of asking this machine about its NVIDIA driver."""

    @property
    def name(self) -> str:
        """The source, as ``origin`` and messages name it."""

    def read(self) -> Reading | None:
        """Return what this source says, or None if it does not apply."""


def read_probe(probe: Probe) -> Reading | None:
    """Read one source; whatever goes wrong in it becomes a reading, since one broken source must not end detection.

    Text of the driver, its programs and its files enters here. It becomes short lines that cannot steer a terminal.
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
