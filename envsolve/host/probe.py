"""The seam of this package: one way of asking a machine about its NVIDIA driver, and the names of all ways."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from envsolve.host.trouble import Trouble
from envsolve.model.host import Problem, Reading


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
        """Return what this source says, or None where it does not apply."""


def ask(probe: Probe) -> Reading | None:
    """Read one source; whatever goes wrong in it becomes a reading, since one broken source must not end detection."""
    try:
        return probe.read()
    except Exception as error:  # noqa: BLE001 - the point of this function
        text = f"{type(error).__name__}: {error}"
        return Reading(probe.name, problem=Problem(Trouble.PROBE_FAILED, text))
