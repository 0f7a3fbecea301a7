"""The codes for what can go wrong between a process and an NVIDIA driver, and the error numbers for each.

NVML and nvidia-smi share one set of numbers (``nvmlReturn_t``, nvml.h), CUDA has its own (``CUresult``, cuda.h).
"""

from __future__ import annotations

from enum import StrEnum

from envsolve.model.host import SourceFailure


class Trouble(StrEnum):
    """Codes of :class:`~envsolve.model.host.SourceFailure`.

    Kebab-case and stable, since other packages match on them.
    """

    LIBRARY_MISSING = "library-missing"
    LIBRARY_UNUSABLE = "library-unusable"
    LIBRARY_IN_CURRENT_DIRECTORY = "library-in-current-directory"
    BINDINGS_MISSING = "bindings-missing"
    DRIVER_NOT_LOADED = "driver-not-loaded"
    VERSION_MISMATCH = "version-mismatch"
    NO_PERMISSION = "no-permission"
    BLOCKED_BY_SYSTEM = "blocked-by-system"
    NO_DEVICE = "no-device"
    GPU_LOST = "gpu-lost"
    STUB_LIBRARY = "stub-library"
    FABRIC_MANAGER = "fabric-manager-not-ready"
    FORWARD_COMPATIBILITY = "forward-compatibility-unsupported"
    UNKNOWN_ERROR = "unknown-error"
    OTHER_ERROR = "other-error"
    HANG = "hang"
    CRASH = "crash"
    UNREADABLE_ANSWER = "unreadable-answer"
    PROBE_FAILED = "probe-failed"
    DEVICE_NODES_MISSING = "device-nodes-missing"
    DEVICE_NODES_DENIED = "device-nodes-denied"
    NOT_BOUND = "not-bound-to-a-driver"
    BOUND_ELSEWHERE = "bound-to-another-driver"


SMI_NO_DEVICES = 6

_NVML = {
    4: (Trouble.NO_PERMISSION, "no permission to talk to the driver"),
    9: (Trouble.DRIVER_NOT_LOADED, "the NVIDIA kernel driver is not loaded"),
    12: (Trouble.LIBRARY_MISSING, "the NVML library was not found"),
    15: (Trouble.GPU_LOST, "a GPU fell off the bus"),
    17: (Trouble.BLOCKED_BY_SYSTEM, "the operating system blocked the request"),
    18: (Trouble.VERSION_MISMATCH, "the driver's libraries and its kernel module have different versions"),
    999: (Trouble.UNKNOWN_ERROR, "an unknown error in the driver"),
}

_CUDA = {
    34: (Trouble.STUB_LIBRARY, "the CUDA toolkit's stub of libcuda was loaded instead of the driver's library"),
    46: (Trouble.NO_PERMISSION, "the GPU is in use or unavailable to this process"),
    100: (Trouble.NO_DEVICE, "no CUDA device"),
    101: (Trouble.NO_DEVICE, "no such CUDA device"),
    304: (Trouble.NO_PERMISSION, "the operating system refused a call of the driver"),
    800: (Trouble.NO_PERMISSION, "not permitted"),
    802: (Trouble.FABRIC_MANAGER, "the system is not ready: nvidia-fabricmanager is not running or still starting"),
    803: (Trouble.VERSION_MISMATCH, "libcuda and the kernel module have different versions"),
    804: (Trouble.FORWARD_COMPATIBILITY, "a forward-compatibility libcuda is loaded, and this GPU does not support it"),
    999: (Trouble.UNKNOWN_ERROR, "an unknown error in the driver"),
}


def nvml_problem(number: int, call: str) -> SourceFailure:
    """The meaning of the NVML error ``number`` returned by ``call``."""
    code, text = _NVML.get(number, (Trouble.OTHER_ERROR, "the driver reported an error"))
    return SourceFailure(code, f"{call} failed with NVML error {number}: {text}", number)


def cuda_problem(number: int, call: str) -> SourceFailure:
    """The meaning of the CUDA error ``number`` returned by ``call``."""
    code, text = _CUDA.get(number, (Trouble.OTHER_ERROR, "the driver reported an error"))
    return SourceFailure(code, f"{call} failed with CUDA error {number}: {text}", number)


def smi_problem(number: int) -> SourceFailure:
    """The meaning of exit code ``number`` of nvidia-smi: mostly NVML numbers, 6 for no devices (nvidia-smi manual)."""
    if number == SMI_NO_DEVICES:
        return SourceFailure(Trouble.NO_DEVICE, f"nvidia-smi found no devices (exit {SMI_NO_DEVICES})", number)
    code, text = _NVML.get(number, (Trouble.OTHER_ERROR, "it gave no readable answer"))
    return SourceFailure(code, f"nvidia-smi ended with {number}: {text}", number)
