"""Notes on a detection: contradictions between sources, and why GPUs cannot be used."""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.boundary.display import one_line
from envsolve.host.evidence import HIDES_EVERYTHING, LIVE_SOURCES, Evidence
from envsolve.host.gpus import total
from envsolve.host.probe import Source
from envsolve.host.trouble import Trouble
from envsolve.model.host import Gpu, GpuStatus
from envsolve.model.versions import DriverVersion

_EVERYDAY = (Trouble.LIBRARY_MISSING, Trouble.NO_DEVICE)
"""Normal problems on any machine without a GPU; worth a note only if there is one."""

_REASONS = {
    GpuStatus.NO_DRIVER: "an NVIDIA GPU is present and no NVIDIA driver is loaded",
    GpuStatus.NO_ACCESS: "an NVIDIA driver is loaded on this machine, but this process cannot use its GPUs",
    GpuStatus.DRIVER_BROKEN: "an NVIDIA driver is installed and does not work",
    GpuStatus.NO_GPU: "the NVIDIA driver works and reports no GPU",
}


def notes_of(
    evidence: Evidence, status: GpuStatus, driver: DriverVersion | None, gpus: tuple[Gpu, ...]
) -> tuple[str, ...]:
    """The notes, the most important first, each once."""
    sentences = (
        *_reason(evidence, status),
        *_troubles(evidence, status),
        *_contradictions(evidence),
        *_kind_of_system(evidence, driver),
        *_hiding(evidence, status),
        *_unknown_gpus(gpus),
    )
    return tuple(dict.fromkeys(map(one_line, sentences)))


def _reason(evidence: Evidence, status: GpuStatus) -> Iterator[str]:
    if status in _REASONS:
        yield _REASONS[status]
    problems = (evidence.problem_of(source) for source in LIVE_SOURCES)
    if any(problem is not None and problem.code == Trouble.VERSION_MISMATCH for problem in problems):
        yield "the driver was probably updated without a reboot; in a container, restart the container"


def _troubles(evidence: Evidence, status: GpuStatus) -> Iterator[str]:
    for reading in evidence.readings:
        problem = reading.problem
        if problem is None or (problem.code in _EVERYDAY and status in (GpuStatus.READY, GpuStatus.NO_HARDWARE)):
            continue
        yield f"{reading.source}: {problem.text}"


def _contradictions(evidence: Evidence) -> Iterator[str]:
    yield from _driver_contradiction(evidence)
    yield from _cuda_contradiction(evidence)
    yield from _gpu_contradiction(evidence)


def _driver_contradiction(evidence: Evidence) -> Iterator[str]:
    if evidence.surroundings.l4t is not None:
        return
    drivers = [(reading.driver, reading.source) for reading in evidence.readings if reading.driver is not None]
    if len({driver for driver, _ in drivers}) > 1:
        yield "sources disagree on the driver version: " + ", ".join(
            f"{driver} ({source})" for driver, source in drivers
        )


def _cuda_contradiction(evidence: Evidence) -> Iterator[str]:
    libcuda, nvml = evidence.of(Source.LIBCUDA), evidence.of(Source.NVML)
    if libcuda is None or nvml is None or libcuda.driver_cuda is None or nvml.driver_cuda is None:
        return
    if libcuda.driver_cuda != nvml.driver_cuda:
        yield (
            f"libcuda offers CUDA {libcuda.driver_cuda} and the driver CUDA {nvml.driver_cuda}: "
            "a forward-compatibility package or a second driver is in front"
        )


def _gpu_contradiction(evidence: Evidence) -> Iterator[str]:
    listed = [(source, evidence.gpus_of(source)) for source in LIVE_SOURCES]
    split = any(gpu.mig for _, gpus in listed for gpu in gpus)
    if split:
        yield "MIG is on: a process gets one instance of a GPU, with part of its memory"
    lists = [f"{_described(gpus)} ({source})" for source, gpus in listed if gpus]
    kinds = {frozenset(gpu.compute_capability for gpu in gpus if gpu.compute_capability) for _, gpus in listed if gpus}
    counts = {total(gpus) for _, gpus in listed if gpus}
    if len(kinds - {frozenset()}) > 1 or (len(counts) > 1 and not split):
        yield "sources disagree on the GPUs: " + ", ".join(lists)
    on_bus = evidence.gpus_on_bus
    if counts and on_bus is not None and on_bus > max(counts):
        yield f"the PCI bus has {on_bus} NVIDIA GPUs and this process may use {max(counts)}"


def _described(gpus: tuple[Gpu, ...]) -> str:
    return " + ".join(f"{gpu.count} x {gpu.name or 'unnamed'} {gpu.compute_capability or '?'}" for gpu in gpus)


def _kind_of_system(evidence: Evidence, driver: DriverVersion | None) -> Iterator[str]:
    around = evidence.surroundings
    if around.l4t is not None:
        board = around.board or "NVIDIA Jetson"
        yield f"{board} with L4T {around.l4t}: its driver has its own version numbers, so only the CUDA version counts"
    if around.wsl and driver is not None:
        yield f"WSL 2: {driver} is the version of the Windows driver; compare it with Windows' numbers"
    if around.shadowed_by is not None:
        yield f"{around.shadowed_by} hides the Windows driver in /usr/lib/wsl/lib; remove the Linux driver package"


def _hiding(evidence: Evidence, status: GpuStatus) -> Iterator[str]:
    around = evidence.surroundings
    hidden = around.cuda_visible_devices
    if hidden is not None and evidence.has_live_gpus:
        what = "hides every GPU" if hidden.strip() in HIDES_EVERYTHING else "limits the GPUs"
        yield f"CUDA_VISIBLE_DEVICES={hidden!r} {what} for CUDA programs; it is ignored here"
    if status is GpuStatus.NO_ACCESS and around.container_without_gpus:
        yield f"NVIDIA_VISIBLE_DEVICES={around.nvidia_visible_devices}: the container was started without GPUs"
    if status in (GpuStatus.NO_ACCESS, GpuStatus.DRIVER_BROKEN) and around.container_without_compute:
        yield f"NVIDIA_DRIVER_CAPABILITIES={around.driver_capabilities} excludes libcuda; add compute"


def _unknown_gpus(gpus: tuple[Gpu, ...]) -> Iterator[str]:
    for gpu in gpus:
        if gpu.compute_capability is None:
            yield f"the compute capability of {gpu.name or 'a GPU'} is not known"
