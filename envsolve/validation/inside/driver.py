"""Whether the CUDA driver can run a kernel: a vector addition through libcuda only, without toolkit and framework.

The job is ``{"libraries": names to load in order, "gpus": null | "all" | indices, "burn": seconds}``. Without ``gpus``
device 0 runs the kernel and the others are listed. ``burn`` repeats it for so many seconds on each of the GPUs, with
other numbers each time: hardware that is about to fail gives wrong results now and then.

The result is ``{"library", "version", "variables", "load", "error", "devices"}``. ``load`` has the messages of the
loader if no library loads, ``error`` the call that failed before a device was there: ``{"stage", "code", "error",
"text"}``. A device is ``{"index", "name", "uuid", "capability", "memory", "kernel"}``, with memory in bytes. Its
``kernel`` is null if it was only listed, and otherwise has ``ok``, ``seconds`` and, if present: ``jit_log``, the
``stage`` that failed (a call, or ``compare``) with ``code``, ``error`` and ``text`` of a call or with ``mismatches``,
``untouched`` and ``first`` of wrong output, and ``burn``.
"""

from __future__ import annotations

import ctypes
import os
import time
import uuid

from .channel import Channel
from .driver_calls import CallError, DevicePointer, Driver, Handle, LoadError
from .vector_add import BLOCKS, ENTRY, POISON, SIZE, THREADS, Vectors, difference, ptx_for

CAPABILITY_MAJOR = 75
CAPABILITY_MINOR = 76
INFO_LOG, INFO_LOG_SIZE, ERROR_LOG, ERROR_LOG_SIZE = 3, 4, 5, 6  # CUjit_option
LOG_BYTES = 8192
NOT_SUPPORTED = 801

VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
    "CUDA_DISABLE_PTX_JIT",
    "CUDA_DISABLE_JIT",
    "CUDA_FORCE_PTX_JIT",
    "CUDA_MPS_PIPE_DIRECTORY",
    "LD_LIBRARY_PATH",
)
"""Variables that affect the driver: the CUDA programming guide (environment variables) and NVIDIA's container runtime.
"""


def probe(job: dict[str, object], channel: Channel) -> dict[str, object]:
    """Run the kernel, as described above. No failure of the driver raises an exception."""
    os.environ["CUDA_CACHE_DISABLE"] = "1"  # the kernel is compiled now, not taken from the cache of an older driver
    result: dict[str, object] = {"library": None, "version": None, "load": [], "error": None, "devices": []}
    result["variables"] = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    channel.note(variables=result["variables"])
    try:
        _ask(job, channel, result)
    except LoadError as failure:
        result["load"] = failure.attempts
    except CallError as failure:
        result["error"] = failure.as_json()
    return result


def _ask(job: dict[str, object], channel: Channel, result: dict[str, object]) -> None:
    names, burn = job["libraries"], job["burn"]
    assert isinstance(names, list)
    assert isinstance(burn, (int, float))
    driver = Driver(names, channel)
    result["library"] = driver.path()
    result["version"] = _number(driver, "cuDriverGetVersion")  # allowed before cuInit, so known even if that fails
    channel.note(library=result["library"], version=result["version"])
    driver.call("cuInit", 0)
    count = _number(driver, "cuDeviceGetCount")
    chosen = _chosen(job["gpus"], count)
    devices = result["devices"]
    assert isinstance(devices, list)
    for index in sorted(chosen.union(range(count))):
        device = _device(driver, index, burn if index in chosen else None)
        channel.note(device=device)
        devices.append(device)


def _chosen(gpus: object, count: int) -> set[int]:
    """Indices of the devices that run the kernel. A missing one is included, so that the driver reports it."""
    if gpus is None:
        return {0} if count else set()
    if gpus == "all":
        return set(range(count))
    assert isinstance(gpus, list)
    return set(gpus)


def _device(driver: Driver, index: int, burn: float | None) -> dict[str, object]:
    """The report on one device, whether or not it works; the kernel runs on it if ``burn`` is not None."""
    device: dict[str, object] = dict.fromkeys(("name", "uuid", "capability", "memory", "kernel"))
    device["index"] = driver.device = index
    started = time.perf_counter()
    outcome: dict[str, object] = {}
    try:
        handle, capability = _describe(driver, index, device)
        if burn is None:
            return device
        started = time.perf_counter()
        outcome["ok"] = _run(driver, handle, capability, burn, outcome)
    except CallError as failure:
        outcome.update(failure.as_json(), ok=False)
    outcome["seconds"] = round(time.perf_counter() - started, 4)
    device["kernel"] = outcome
    return device


def _describe(driver: Driver, index: int, device: dict[str, object]) -> tuple[int, tuple[int, int]]:
    """Add the driver's facts about a device; returns its handle and compute capability."""
    handle = _number(driver, "cuDeviceGet", index)
    name = ctypes.create_string_buffer(256)
    driver.call("cuDeviceGetName", name, len(name), handle)
    device["name"] = name.value.decode("utf-8", "replace")
    memory = ctypes.c_size_t()
    driver.call("cuDeviceTotalMem_v2", ctypes.byref(memory), handle)
    device["memory"] = memory.value
    major = _number(driver, "cuDeviceGetAttribute", CAPABILITY_MAJOR, handle)
    minor = _number(driver, "cuDeviceGetAttribute", CAPABILITY_MINOR, handle)
    device["capability"] = "{}.{}".format(major, minor)
    device["uuid"] = _uuid(driver, handle)
    return handle, (major, minor)


def _uuid(driver: Driver, handle: int) -> str | None:
    """The GPU's UUID in nvidia-smi's form; None if this driver does not report it, which is no fault."""
    identity = ctypes.create_string_buffer(16)
    try:
        driver.call("cuDeviceGetUuid", identity, handle)
    except CallError as failure:
        if failure.code in (None, NOT_SUPPORTED):
            return None
        raise
    return "GPU-{}".format(uuid.UUID(bytes=identity.raw))


def _run(driver: Driver, handle: int, capability: tuple[int, int], burn: float, outcome: dict[str, object]) -> bool:
    """Run the kernel in the primary context, which frameworks use, and return whether every result is right.

    After a failure nothing is released: on a broken GPU that may hang, and this process ends soon.
    """
    context, module, function = Handle(), Handle(), Handle()
    driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
    driver.call("cuCtxSetCurrent", context)
    _load(driver, module, capability, outcome)
    driver.call("cuModuleGetFunction", ctypes.byref(function), module, ENTRY)
    memory = [DevicePointer() for _ in range(3)]
    for pointer in memory:
        driver.call("cuMemAlloc_v2", ctypes.byref(pointer), SIZE)
    vectors = Vectors()
    wrong = _round(driver, function, memory, vectors.of_round(0))
    if wrong is None and burn:
        wrong = _burn(driver, function, memory, vectors, burn, outcome)
    if wrong is not None:
        outcome.update(wrong, stage="compare")
        return False
    for pointer in memory:
        driver.call("cuMemFree_v2", pointer)
    driver.call("cuModuleUnload", module)
    driver.call("cuDevicePrimaryCtxRelease", handle)
    return True


def _load(driver: Driver, module: Handle, capability: tuple[int, int], outcome: dict[str, object]) -> None:
    """Let the driver compile the kernel. The output of its compiler is reported, especially if it fails."""
    logs = [ctypes.create_string_buffer(LOG_BYTES) for _ in range(2)]
    options = (ctypes.c_int * 4)(INFO_LOG_SIZE, INFO_LOG, ERROR_LOG_SIZE, ERROR_LOG)
    info, error = (ctypes.cast(log, ctypes.c_void_p) for log in logs)
    values = (ctypes.c_void_p * 4)(LOG_BYTES, info, LOG_BYTES, error)
    try:
        driver.call("cuModuleLoadDataEx", ctypes.byref(module), ptx_for(capability), 4, options, values)
    finally:
        outcome["jit_log"] = "\n".join(filter(None, (log.value.decode("utf-8", "replace").strip() for log in logs)))


def _round(
    driver: Driver, function: Handle, memory: list[DevicePointer], vectors: tuple[bytes, bytes, bytes]
) -> dict[str, object] | None:
    """Add one pair of vectors, and return how the output differs from the sum; None if it does not."""
    left, right, total = vectors
    driver.call("cuMemcpyHtoD_v2", memory[0], left, SIZE)
    driver.call("cuMemcpyHtoD_v2", memory[1], right, SIZE)
    driver.call("cuMemsetD8_v2", memory[2], POISON, SIZE)
    arguments = (ctypes.c_void_p * 3)(*(ctypes.addressof(pointer) for pointer in memory))
    driver.call("cuLaunchKernel", function, BLOCKS, 1, 1, THREADS, 1, 1, 0, None, arguments, None)
    driver.call("cuCtxSynchronize")
    found = ctypes.create_string_buffer(SIZE)
    driver.call("cuMemcpyDtoH_v2", found, memory[2], SIZE)
    return difference(found.raw, total)


def _burn(
    driver: Driver,
    function: Handle,
    memory: list[DevicePointer],
    vectors: Vectors,
    seconds: float,
    outcome: dict[str, object],
) -> dict[str, object] | None:
    """Repeat the round for ``seconds``, and return how the first wrong one differs. Its calls are not announced."""
    driver.announce("burn")
    driver.announces = False
    first = None
    rounds = wrong_rounds = 0
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            rounds += 1
            wrong = _round(driver, function, memory, vectors.of_round(rounds))
            wrong_rounds += wrong is not None
            first = first or wrong
    finally:
        driver.announces = True
        outcome["burn"] = {"seconds": seconds, "rounds": rounds, "wrong_rounds": wrong_rounds}
    return first


def _number(driver: Driver, call: str, *arguments: object) -> int:
    """The int that a call writes through its first argument."""
    number = ctypes.c_int()
    driver.call(call, ctypes.byref(number), *arguments)
    return number.value
