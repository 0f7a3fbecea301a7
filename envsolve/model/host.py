"""A machine as far as GPU stacks are concerned: platform, driver, GPUs and C library, each with its origin."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from envsolve.model.capability import ComputeCapability
from envsolve.model.versions import CudaVersion, DriverVersion, LibcVersion


class Platform(StrEnum):
    """An operating system and processor, spelled as in conda."""

    LINUX_64 = "linux-64"
    LINUX_AARCH64 = "linux-aarch64"
    WIN_64 = "win-64"
    OSX_64 = "osx-64"
    OSX_ARM64 = "osx-arm64"

    @property
    def is_windows(self) -> bool:
        """Whether driver versions and file names are those of Windows."""
        return self is Platform.WIN_64

    @property
    def is_linux(self) -> bool:
        """Whether programs use the system's C library, glibc for wheels and conda packages."""
        return self in (Platform.LINUX_64, Platform.LINUX_AARCH64)

    @property
    def has_cuda(self) -> bool:
        """Whether NVIDIA ships a CUDA toolkit for it (macOS lost it with CUDA 10.2)."""
        return self in (Platform.LINUX_64, Platform.LINUX_AARCH64, Platform.WIN_64)


ASSUMED_GLIBC = LibcVersion(2, 34)
"""The default glibc of a Linux target. RHEL 9 and Amazon Linux 2023 have it, Ubuntu 22.04 has 2.35 and Debian 12 2.36.
Of the systems in NVIDIA's installation guide for CUDA 13 only RHEL 8 (2.28, in maintenance since May 2024) and SLES 15
(2.31 and newer) have an older one; Ubuntu 20.04 (2.31) ended in May 2025."""

COMMON_GLIBC = LibcVersion(2, 28)
"""What frameworks' wheels need in 2026 (manylinux_2_28), and what uv assumes for a Linux target."""


class GpuStatus(StrEnum):
    """Why a machine's GPUs can or cannot be used. Each value needs a different fix."""

    READY = "ready"
    """A driver lists at least one GPU, or the facts were given by the user."""
    NO_HARDWARE = "no-hardware"
    """No source detected an NVIDIA GPU."""
    NO_DRIVER = "no-driver"
    """There is a GPU on the bus, but no NVIDIA driver is loaded."""
    NO_ACCESS = "no-access"
    """A driver is loaded, but this process cannot access the devices: a container without GPUs, or missing
    permissions."""
    DRIVER_BROKEN = "driver-broken"
    """A driver is installed but fails: mismatched library (NVML 18, CUDA 803), unknown error 999, a hang."""
    NO_GPU = "no-gpu"
    """The driver works and lists no GPU."""


class Gpu(NamedTuple):
    """GPUs of one kind in one machine. ``compute_capability`` is None for a PCI device that no table has."""

    name: str | None
    compute_capability: ComputeCapability | None
    count: int = 1  # type: ignore[assignment]  # the name in the host file; no one wants tuple.count
    memory_mib: int | None = None
    mig: bool = False

    @property
    def label(self) -> str:
        """Its name and capability: ``NVIDIA GeForce GTX 1080 (6.1)``."""
        capability = "" if self.compute_capability is None else f" ({self.compute_capability})"
        return f"{self.name or 'a GPU'}{capability}"


class SourceFailure(NamedTuple):
    """The failure of a source, with the NVIDIA error number if there is one."""

    code: str
    text: str
    number: int | None = None


class Reading(NamedTuple):
    """What one source reports about this machine. Fields that it cannot report are empty."""

    source: str
    driver: DriverVersion | None = None
    driver_cuda: CudaVersion | None = None
    gpus: tuple[Gpu, ...] | None = None
    problem: SourceFailure | None = None


class Host(NamedTuple):
    """A machine. ``origin`` has the source of each field's value (``"driver": "nvml"``).

    ``wsl`` marks a Linux inside WSL2. Its driver is that of the Windows host and has a Windows version number.
    """

    platform: Platform
    driver: DriverVersion | None = None
    driver_cuda: CudaVersion | None = None
    glibc: LibcVersion | None = None
    gpus: tuple[Gpu, ...] = ()
    status: GpuStatus = GpuStatus.READY
    origin: Mapping[str, str] = MappingProxyType({})
    wsl: bool = False
    notes: tuple[str, ...] = ()
    readings: tuple[Reading, ...] = ()

    @property
    def capabilities(self) -> tuple[ComputeCapability, ...]:
        """The distinct compute capabilities of its GPUs, sorted."""
        return tuple(sorted({gpu.compute_capability for gpu in self.gpus if gpu.compute_capability is not None}))
