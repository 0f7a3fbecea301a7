"""All readings of one machine and its surroundings; choice, status and notes are based on them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from envsolve.host.device_nodes import module_is_loaded
from envsolve.host.gpus import total
from envsolve.host.jetson import board_model, l4t_release
from envsolve.host.machine import Machine
from envsolve.host.probe import Source
from envsolve.host.wsl import is_wsl, shadowing_library
from envsolve.model.host import Gpu, Reading, SourceFailure

LIVE_SOURCES = (Source.NVML, Source.LIBCUDA, Source.NVIDIA_SMI)
"""Sources that need a working driver; the others only read files."""
HIDES_EVERYTHING = ("", "-1", "NoDevFiles")
"""Values of CUDA_VISIBLE_DEVICES that hide every GPU; Slurm sets the last one for jobs that requested none."""


class Surroundings(NamedTuple):
    """What changes the meaning of readings: the kind of system, and variables that hide GPUs from programs."""

    wsl: bool = False
    shadowed_by: str | None = None
    l4t: str | None = None
    board: str | None = None
    module_loaded: bool = False
    cuda_visible_devices: str | None = None
    nvidia_visible_devices: str | None = None
    driver_capabilities: str | None = None

    @property
    def container_without_compute(self) -> bool:
        """Whether the container runtime was configured to leave out libcuda."""
        if not self.driver_capabilities:
            return False
        return not {"compute", "all"} & {name.strip() for name in self.driver_capabilities.split(",")}

    @property
    def container_without_gpus(self) -> bool:
        """Whether the container was started without GPUs. This alone is no proof: CDI sets "void" even with GPUs."""
        return self.nvidia_visible_devices in ("void", "none")


def surroundings_of(machine: Machine) -> Surroundings:
    """Read the surroundings from the machine's files and variables."""
    l4t = l4t_release(machine.root)
    wsl = is_wsl(machine.root)
    return Surroundings(
        wsl=wsl,
        shadowed_by=shadowing_library(machine.root) if wsl else None,
        l4t=l4t,
        board=board_model(machine.root) if l4t is not None else None,
        module_loaded=module_is_loaded(machine.root),
        cuda_visible_devices=machine.environ.get("CUDA_VISIBLE_DEVICES"),
        nvidia_visible_devices=machine.environ.get("NVIDIA_VISIBLE_DEVICES"),
        driver_capabilities=machine.environ.get("NVIDIA_DRIVER_CAPABILITIES"),
    )


class Evidence(NamedTuple):
    """The readings, in the order they were taken, and their surroundings."""

    readings: tuple[Reading, ...]
    surroundings: Surroundings = Surroundings()

    def of(self, source: str) -> Reading | None:
        """The reading of ``source``."""
        return next((reading for reading in self.readings if reading.source == source), None)

    def problem_of(self, source: str) -> SourceFailure | None:
        """The problem of ``source``."""
        reading = self.of(source)
        return reading.problem if reading is not None else None

    def has_trouble(self, codes: Iterable[str], sources: Iterable[str] = LIVE_SOURCES) -> bool:
        """Whether one of ``sources`` has a problem with one of ``codes``."""
        found = {problem.code for problem in map(self.problem_of, sources) if problem is not None}
        return not found.isdisjoint(codes)

    def gpus_of(self, source: str) -> tuple[Gpu, ...]:
        """The GPUs that ``source`` lists; none if it lists none or does not know."""
        reading = self.of(source)
        return (reading.gpus if reading is not None else None) or ()

    @property
    def has_live_gpus(self) -> bool:
        """Whether a working driver lists a GPU."""
        return any(self.gpus_of(source) for source in LIVE_SOURCES)

    @property
    def kernel_driver_works(self) -> bool:
        """Whether the kernel part of the driver is there: its module is loaded, or it reported a version."""
        answered = any(
            reading.driver is not None
            for reading in map(self.of, (Source.NVML, Source.NVIDIA_SMI))
            if reading is not None
        )
        return answered or self.surroundings.module_loaded

    @property
    def gpus_on_bus(self) -> int | None:
        """The number of NVIDIA GPUs on the PCI bus; None if unknown: an unreadable bus, WSL or a Jetson."""
        reading = self.of(Source.PCI)
        if reading is None or reading.gpus is None or self.surroundings.wsl or self.surroundings.l4t is not None:
            return None
        return total(reading.gpus)
