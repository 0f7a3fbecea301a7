"""NVML, NVIDIA's management library: the best single source, and the only module that imports nvidia-ml-py.

It is asked in a forked copy of this process, because a driver in trouble hangs or aborts inside it; where there is no
fork, in this process. It ignores CUDA_VISIBLE_DEVICES and needs no CUDA context. Machines without a driver never pay
for the import: whether the library loads at all is tried first.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import NamedTuple, cast

from envsolve.host.forked import CAN_FORK, call_forked
from envsolve.host.gpus import grouped
from envsolve.host.loader import load_first, nvml_candidates
from envsolve.host.machine import Machine
from envsolve.host.probe import Source
from envsolve.host.trouble import Trouble, nvml_problem
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Gpu, Problem, Reading
from envsolve.model.versions import CudaVersion, DriverVersion

_Facts = tuple[
    str | None,
    int | None,
    list[tuple[str | None, tuple[int, int] | None, int | None, bool]] | None,
    tuple[str, str, int | None] | None,
]


class NvmlProbe(NamedTuple):
    """Driver, CUDA version and GPUs from NVML."""

    machine: Machine
    name: str = Source.NVML

    def read(self) -> Reading | None:
        """Return NVML's facts, or the problem that keeps it from answering."""
        problem = load_first(nvml_candidates(self.machine), self.machine.environ)
        if problem is not None:
            return Reading(self.name, problem=problem)
        if not CAN_FORK:
            return _reading(_facts(), self.name)
        outcome = call_forked(_facts, self.machine.timeout)
        if outcome.hung:
            return Reading(self.name, problem=Problem(Trouble.HANG, "NVML did not answer in time"))
        if outcome.signal is not None:
            text = f"NVML died with signal {outcome.signal}"
            return Reading(self.name, problem=Problem(Trouble.CRASH, text, outcome.signal))
        return _reading(outcome.answer, self.name)


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


def _facts() -> tuple[object, ...]:
    """Driver, CUDA version, GPUs and problem as plain values, which fit through a pipe."""
    try:
        calls = _Calls(import_module("pynvml"))
    except ImportError as error:
        return None, None, None, (Trouble.BINDINGS_MISSING.value, f"nvidia-ml-py: {error}", None)
    calls.ask("nvmlInit")
    if calls.problem is not None:
        return None, None, None, _plain(calls.problem)
    driver, driver_cuda, gpus = _driver(calls), _driver_cuda(calls), _gpus(calls)
    calls.ask_optional("nvmlShutdown")
    return driver, driver_cuda, gpus, _plain(calls.problem)


def _plain(problem: Problem | None) -> tuple[object, ...] | None:
    return None if problem is None else (str(problem.code), problem.text, problem.number)


def _reading(facts: object, source: str) -> Reading:
    """The facts as the model's values."""
    driver, driver_cuda, gpus, problem = cast("_Facts", facts)
    found = None if problem is None else Problem(Trouble(problem[0]), problem[1], problem[2])
    try:
        version = None if driver is None else DriverVersion.parse(driver)
    except ValueError as error:
        version, found = None, found or Problem(Trouble.UNREADABLE_ANSWER, str(error))
    return Reading(
        source,
        driver=version,
        driver_cuda=None if driver_cuda is None else CudaVersion.from_driver_api(driver_cuda),
        gpus=None if gpus is None else grouped(_gpu_of(*gpu) for gpu in gpus),
        problem=found,
    )


def _gpu_of(name: str | None, capability: tuple[int, int] | None, memory: int | None, mig: bool) -> Gpu:
    return Gpu(name, None if capability is None else ComputeCapability(*capability), memory_mib=memory, mig=mig)


def _driver(calls: _Calls) -> str | None:
    answer = calls.ask("nvmlSystemGetDriverVersion")
    return None if answer is None else _text(answer)


def _driver_cuda(calls: _Calls) -> int | None:
    """The second version asks the libcuda that is installed; the first is all that drivers before R410 have."""
    for function in ("nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"):
        answer = calls.ask_optional(function)
        if isinstance(answer, int):
            return answer
    return None


def _gpus(calls: _Calls) -> list[tuple[object, ...]] | None:
    count = calls.ask("nvmlDeviceGetCount")
    if not isinstance(count, int):
        return None
    handles = [calls.ask("nvmlDeviceGetHandleByIndex", index) for index in range(count)]
    return [_gpu(calls, handle) for handle in handles if handle is not None]


def _gpu(calls: _Calls, handle: object) -> tuple[object, ...]:
    name = calls.ask("nvmlDeviceGetName", handle)
    capability = calls.ask("nvmlDeviceGetCudaComputeCapability", handle)
    memory = getattr(calls.ask_optional("nvmlDeviceGetMemoryInfo", handle), "total", None)
    modes = calls.ask_optional("nvmlDeviceGetMigMode", handle)
    return (
        None if name is None else _text(name),
        tuple(capability) if isinstance(capability, tuple) else None,
        memory // (1024 * 1024) if isinstance(memory, int) else None,
        isinstance(modes, list) and modes[0] == 1,
    )


def _text(answer: object) -> str:
    return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else str(answer)
