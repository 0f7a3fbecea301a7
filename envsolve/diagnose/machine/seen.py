"""What was seen of GPUs and of the driver's files, in the words that several findings use."""

from __future__ import annotations

from envsolve.diagnose.machine.survey import Survey, name_of
from envsolve.host.loader import CUDA_LIBRARY
from envsolve.host.pci import PciDevice
from envsolve.host.wsl import WSL_LIBRARIES
from envsolve.model.host import GpuStatus

UNUSUAL_DIRECTORIES = (
    f"/{WSL_LIBRARIES}",
    "/run/opengl-driver/lib",
    "/usr/local/nvidia/lib64",
    "/usr/lib/aarch64-linux-gnu/nvidia",
    "/usr/lib/aarch64-linux-gnu/tegra",
)
"""Where a driver may lie that the loader does not find by itself, as in :mod:`envsolve.host.loader`."""


def misplaced_libraries(survey: Survey) -> list[str]:
    """Where the CUDA driver library lies, when the loader finds none."""
    paths = (f"{directory}/{CUDA_LIBRARY}" for directory in UNUSUAL_DIRECTORIES)
    return [path for path in paths if survey.libcuda is None and survey.files.is_file(path)]


def looked_in(survey: Survey) -> str:
    """Where the loader looks."""
    return ", ".join((*survey.loader.library_path, "/etc/ld.so.cache", *survey.loader.defaults))


def gpu_names(survey: Survey) -> str:
    """The GPUs by name."""
    return ", ".join(map(name_of, survey.gpus)) or "An NVIDIA GPU"


def gpus_seen(survey: Survey) -> tuple[str, ...]:
    """The GPUs as the bus shows them, or else as the detection does."""
    on_bus = tuple(f"PCI {it.address}: 10de:{it.device}, {it.bound_to or 'no driver'}" for it in survey.bus)
    return on_bus or tuple(name_of(gpu) for gpu in survey.gpus if survey.host.status is not GpuStatus.NO_HARDWARE)


def addresses(devices: list[PciDevice]) -> str:
    """GPUs by their place on the bus, to begin a sentence with; it goes on in the singular."""
    if len(devices) == 1:
        return f"The GPU at {devices[0].address}"
    return f"Each of the GPUs at {', '.join(it.address for it in devices)}"
