"""Choose one host from the readings: for each field the first source that knows it, in these orders.

driver:       1. NVML  2. /sys/module/nvidia/version  3. /proc/driver/nvidia/version  4. nvidia-smi  5. Windows registry
(NVML first: on WSL only NVML and nvidia-smi know it; the files are about the kernel, which a container shares.)
driver_cuda:  1. libcuda, because programs use that  2. NVML  3. nvidia-smi's header
gpus:         1. NVML  2. libcuda (one MIG instance per process)  3. nvidia-smi  4. PCI ids  5. registry  6. procfs

A Jetson has no driver version of the ordinary series, so ``driver`` stays None there, whatever the sources report.
"""

from __future__ import annotations

from envsolve.host.evidence import Evidence
from envsolve.host.gpus import grouped
from envsolve.host.notes import notes_of
from envsolve.host.probe import Source
from envsolve.host.status import status_of
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Gpu, Host, Platform
from envsolve.model.versions import CudaVersion, DriverVersion, LibcVersion

DRIVER_ORDER = (Source.NVML, Source.SYS_MODULE, Source.PROC_VERSION, Source.NVIDIA_SMI, Source.REGISTRY)
CUDA_ORDER = (Source.LIBCUDA, Source.NVML, Source.NVIDIA_SMI)
GPU_ORDER = (Source.NVML, Source.LIBCUDA, Source.NVIDIA_SMI, Source.PCI, Source.REGISTRY, Source.PROC_GPUS)


def choose(
    evidence: Evidence,
    platform: Platform,
    glibc: LibcVersion | None = None,
    origin: dict[str, str] | None = None,
) -> Host:
    """The host for all readings; ``origin`` has the sources of platform and glibc."""
    driver, driver_origin = choose_driver(evidence)
    driver_cuda, cuda_origin = choose_driver_cuda(evidence)
    gpus, gpus_origin = choose_gpus(evidence)
    found = {"driver": driver_origin, "driver_cuda": cuda_origin, "gpus": gpus_origin}
    status = status_of(evidence)
    return Host(
        platform=platform,
        driver=driver,
        driver_cuda=driver_cuda,
        glibc=glibc,
        gpus=gpus,
        status=status,
        wsl=evidence.surroundings.wsl,
        origin={**{key: str(source) for key, source in found.items() if source is not None}, **(origin or {})},
        notes=notes_of(evidence, status, driver, gpus),
        readings=evidence.readings,
    )


def choose_driver(evidence: Evidence) -> tuple[DriverVersion | None, str | None]:
    """The driver version and its source."""
    if evidence.surroundings.l4t is not None:
        return None, None
    for source in DRIVER_ORDER:
        reading = evidence.of(source)
        if reading is not None and reading.driver is not None:
            return reading.driver, source
    return None, None


def choose_driver_cuda(evidence: Evidence) -> tuple[CudaVersion | None, str | None]:
    """The newest CUDA the driver supports and its source."""
    for source in CUDA_ORDER:
        reading = evidence.of(source)
        if reading is not None and reading.driver_cuda is not None:
            return reading.driver_cuda, source
    return None, None


def choose_gpus(evidence: Evidence) -> tuple[tuple[Gpu, ...], str | None]:
    """The GPUs of the first source that lists any; missing capabilities are taken from later sources."""
    for position, source in enumerate(GPU_ORDER):
        gpus = evidence.gpus_of(source)
        if gpus:
            return _completed(evidence, gpus, source, GPU_ORDER[position + 1 :])
    return (), next((str(source) for source in GPU_ORDER if _says_none(evidence, source)), None)


def _says_none(evidence: Evidence, source: Source) -> bool:
    reading = evidence.of(source)
    return reading is not None and reading.gpus == ()


def _completed(
    evidence: Evidence, gpus: tuple[Gpu, ...], source: Source, others: tuple[Source, ...]
) -> tuple[tuple[Gpu, ...], str]:
    """``gpus`` with missing capabilities filled in if another source leaves no choice.

    ``nvidia-smi`` of an old driver gives names without capabilities, and the PCI table has the same chips.
    """
    if all(gpu.compute_capability is not None for gpu in gpus):
        return gpus, source
    for other in others:
        filled = tuple(_filled(gpu, evidence.gpus_of(other)) for gpu in gpus)
        if filled != gpus:
            return grouped(filled), f"{source}, {other}"
    return gpus, source


def _filled(gpu: Gpu, known: tuple[Gpu, ...]) -> Gpu:
    if gpu.compute_capability is not None:
        return gpu
    same_name = _capabilities(tuple(other for other in known if other.name == gpu.name))
    candidates = same_name or _capabilities(known)
    return gpu._replace(compute_capability=candidates.pop()) if len(candidates) == 1 else gpu


def _capabilities(gpus: tuple[Gpu, ...]) -> set[ComputeCapability | None]:
    """The distinct capabilities; None is one of them if the capability of a GPU is unknown."""
    return {gpu.compute_capability for gpu in gpus}
