"""NVML, NVIDIA's management library: the best single source, and the only module that imports nvidia-ml-py.

It is asked inside this process, ignores CUDA_VISIBLE_DEVICES, and needs no CUDA context. Machines without a driver
never pay for the import: whether the library loads at all is tried first.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import NamedTuple

from envsolve.host.gpus import grouped
from envsolve.host.loader import load_first, nvml_candidates
from envsolve.host.machine import Machine
from envsolve.host.probe import Source
from envsolve.host.trouble import Trouble, nvml_problem
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Gpu, Problem, Reading
from envsolve.model.versions import CudaVersion, DriverVersion


class NvmlProbe(NamedTuple):
    """Driver, CUDA version and GPUs from NVML."""

    machine: Machine
    name: str = Source.NVML

    def read(self) -> Reading | None:
        """Return NVML's facts, or the problem that keeps it from answering."""
        problem = load_first(nvml_candidates(self.machine), self.machine.environ)
        if problem is not None:
            return Reading(self.name, problem=problem)
        try:
            nvml = import_module("pynvml")
        except ImportError as error:
            return Reading(self.name, problem=Problem(Trouble.BINDINGS_MISSING, f"nvidia-ml-py: {error}"))
        return _read_facts(_Calls(nvml), self.name)


class _Calls:
    """NVML's functions with their errors turned into values; the first one is kept as the problem to report."""

    def __init__(self, nvml: ModuleType) -> None:
        self.nvml = nvml
        self.problem: Problem | None = None

    def ask(self, function: str, *arguments: object) -> object | None:
        """The function's answer, or None after an error that is worth reporting."""
        return self._call(function, arguments, optional=False)

    def ask_optional(self, function: str, *arguments: object) -> object | None:
        """The function's answer, or None where this driver or this GPU does not offer it."""
        return self._call(function, arguments, optional=True)

    def _call(self, function: str, arguments: tuple[object, ...], *, optional: bool) -> object | None:
        try:
            answer: object = getattr(self.nvml, function)(*arguments)
        except self.nvml.NVMLError as error:
            if not optional:
                self.problem = self.problem or nvml_problem(int(getattr(error, "value", 0)), function)
            return None
        return answer


def _read_facts(calls: _Calls, source: str) -> Reading:
    calls.ask("nvmlInit")
    if calls.problem is not None:
        return Reading(source, problem=calls.problem)
    try:
        driver = _driver(calls)
        driver_cuda = _driver_cuda(calls)
        gpus = _gpus(calls)
    finally:
        calls.ask_optional("nvmlShutdown")
    return Reading(source, driver=driver, driver_cuda=driver_cuda, gpus=gpus, problem=calls.problem)


def _driver(calls: _Calls) -> DriverVersion | None:
    answer = calls.ask("nvmlSystemGetDriverVersion")
    if answer is None:
        return None
    try:
        return DriverVersion.parse(_text(answer))
    except ValueError as error:
        calls.problem = calls.problem or Problem(Trouble.UNREADABLE_ANSWER, str(error))
        return None


def _driver_cuda(calls: _Calls) -> CudaVersion | None:
    """The second version asks the libcuda that is installed; the first is all that drivers before R410 have."""
    for function in ("nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"):
        answer = calls.ask_optional(function)
        if isinstance(answer, int):
            return CudaVersion.from_driver_api(answer)
    return None


def _gpus(calls: _Calls) -> tuple[Gpu, ...] | None:
    count = calls.ask("nvmlDeviceGetCount")
    if not isinstance(count, int):
        return None
    handles = [calls.ask("nvmlDeviceGetHandleByIndex", index) for index in range(count)]
    return grouped(_gpu(calls, handle) for handle in handles if handle is not None)


def _gpu(calls: _Calls, handle: object) -> Gpu:
    name = calls.ask("nvmlDeviceGetName", handle)
    capability = calls.ask("nvmlDeviceGetCudaComputeCapability", handle)
    memory = getattr(calls.ask_optional("nvmlDeviceGetMemoryInfo", handle), "total", None)
    modes = calls.ask_optional("nvmlDeviceGetMigMode", handle)
    return Gpu(
        None if name is None else _text(name),
        ComputeCapability(*capability) if isinstance(capability, tuple) else None,
        memory_mib=memory // (1024 * 1024) if isinstance(memory, int) else None,
        mig=isinstance(modes, list) and modes[0] == 1,
    )


def _text(answer: object) -> str:
    return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else str(answer)
