"""Whether the GPUs can be used, and if not, which remedy is needed.

The first line that fits decides:

1. a working driver lists GPUs: READY, unless libcuda cannot be used with them (missing or refused: NO_ACCESS, any other
error: DRIVER_BROKEN);
2. clear breakage (versions that do not match, a hang, fabric manager): DRIVER_BROKEN;
3. permission refused, or a loaded kernel module without device nodes or driver libraries: NO_ACCESS;
4. libraries without a loaded module (NVML 9, a stub): NO_HARDWARE if the PCI bus has no GPU, as on login nodes with
driver packages; NO_DRIVER if another kernel driver is bound to the GPU; otherwise DRIVER_BROKEN;
5. any other error of the driver: DRIVER_BROKEN;
6. a driver and no GPU: NO_GPU;
7. GPUs on the bus and no driver: NO_DRIVER;
8. a driver that only the Windows registry knows: DRIVER_BROKEN;
9. libcuda alone, on a machine without a PCI bus: NO_GPU;
10. nothing at all: NO_HARDWARE.
"""

from __future__ import annotations

from envsolve.host.evidence import Evidence
from envsolve.host.probe import Source
from envsolve.host.trouble import Trouble
from envsolve.model.host import GpuStatus

BROKEN = (
    Trouble.VERSION_MISMATCH,
    Trouble.HANG,
    Trouble.CRASH,
    Trouble.FABRIC_MANAGER,
    Trouble.FORWARD_COMPATIBILITY,
)
REFUSED = (Trouble.NO_PERMISSION, Trouble.BLOCKED_BY_SYSTEM)
ERRORS = (
    Trouble.UNKNOWN_ERROR,
    Trouble.OTHER_ERROR,
    Trouble.GPU_LOST,
    Trouble.LIBRARY_UNUSABLE,
    Trouble.UNREADABLE_ANSWER,
    Trouble.PROBE_FAILED,
)
NOT_LOADED = (Trouble.DRIVER_NOT_LOADED, Trouble.STUB_LIBRARY)
NODES = (Trouble.DEVICE_NODES_MISSING, Trouble.DEVICE_NODES_DENIED)


def status_of(evidence: Evidence) -> GpuStatus:
    """The status by the list at the top of this module."""
    if evidence.has_live_gpus:
        return _with_gpus(evidence)
    if evidence.has_trouble(BROKEN):
        return GpuStatus.DRIVER_BROKEN
    if _no_access(evidence):
        return GpuStatus.NO_ACCESS
    if evidence.has_trouble(NOT_LOADED):
        return _not_loaded(evidence)
    if evidence.has_trouble(ERRORS):
        return GpuStatus.DRIVER_BROKEN
    return _without_errors(evidence)


def _with_gpus(evidence: Evidence) -> GpuStatus:
    """The status if GPUs are listed: libcuda decides whether CUDA programs can use them, if it was queried."""
    problem = evidence.problem_of(Source.LIBCUDA)
    if problem is None or evidence.gpus_of(Source.LIBCUDA) or problem.code == Trouble.PROBE_FAILED:
        return GpuStatus.READY
    if problem.code in (Trouble.LIBRARY_MISSING, Trouble.LIBRARY_IN_CURRENT_DIRECTORY, Trouble.NO_DEVICE, *REFUSED):
        return GpuStatus.NO_ACCESS
    return GpuStatus.DRIVER_BROKEN


def _no_access(evidence: Evidence) -> bool:
    if evidence.has_trouble(REFUSED):
        return True
    if not evidence.surroundings.module_loaded:
        return False
    if evidence.has_trouble(NODES, [Source.DEVICE_NODES]) or evidence.surroundings.container_without_gpus:
        return True
    return _libraries_missing(evidence)


def _libraries_missing(evidence: Evidence) -> bool:
    """Whether no driver library was found; one that was not queried does not count as found."""
    nvml, cuda = evidence.problem_of(Source.NVML), evidence.problem_of(Source.LIBCUDA)
    if nvml is None or nvml.code != Trouble.LIBRARY_MISSING:
        return False
    return evidence.of(Source.LIBCUDA) is None or (cuda is not None and cuda.code == Trouble.LIBRARY_MISSING)


def _not_loaded(evidence: Evidence) -> GpuStatus:
    """The status for libraries that no kernel driver answers, or that are no driver at all (a toolkit's stub)."""
    if evidence.gpus_on_bus == 0:
        return GpuStatus.NO_HARDWARE
    if evidence.has_trouble([Trouble.BOUND_ELSEWHERE], [Source.PCI]):
        return GpuStatus.NO_DRIVER
    return GpuStatus.DRIVER_BROKEN


def _without_errors(evidence: Evidence) -> GpuStatus:
    if evidence.kernel_driver_works:
        return GpuStatus.NO_GPU
    if evidence.gpus_on_bus:
        return GpuStatus.NO_DRIVER
    if evidence.of(Source.REGISTRY) is not None:
        return GpuStatus.DRIVER_BROKEN
    libcuda = evidence.of(Source.LIBCUDA)
    installed = libcuda is not None and libcuda.driver_cuda is not None
    return GpuStatus.NO_GPU if installed and evidence.gpus_on_bus is None else GpuStatus.NO_HARDWARE
