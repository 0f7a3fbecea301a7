"""NVML, NVIDIA's management library: the best single source, and the only module that imports nvidia-ml-py.

It ignores CUDA_VISIBLE_DEVICES and needs no CUDA context. Machines without a driver do not pay for the import: whether
the library loads at all is tried first.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from envsolve.host.library import query_library
from envsolve.host.loader import load_first, nvml_candidates
from envsolve.host.machine import Machine
from envsolve.host.probe import Source
from envsolve.host.trouble import Trouble, nvml_problem
from envsolve.model.host import Reading, SourceFailure

if TYPE_CHECKING:
    from envsolve.host.child import Facts


class NvmlProbe(NamedTuple):
    """Driver, CUDA version and GPUs from NVML."""

    machine: Machine
    name: str = Source.NVML

    def read(self) -> Reading | None:
        """Return NVML's facts, or the problem that prevents an answer."""
        return query_library(self.machine, Source.NVML, nvml_facts, nvml_candidates(self.machine))


def nvml_facts(names: Sequence[str]) -> Facts:
    """The facts from NVML: ``driver``, ``driver_cuda``, ``gpus`` and ``problem``; runs in a child process."""
    loaded = load_first(names)
    if isinstance(loaded, SourceFailure):
        return {"problem": loaded}
    try:
        calls = _Calls(import_module("pynvml"))
    except ImportError as error:
        return {"problem": SourceFailure(Trouble.BINDINGS_MISSING, f"nvidia-ml-py: {error}")}
    calls.query("nvmlInit")
    if calls.problem is not None:
        return {"problem": calls.problem}
    driver, driver_cuda, gpus = _driver(calls), _driver_cuda(calls), _gpus(calls)
    return {"driver": driver, "driver_cuda": driver_cuda, "gpus": gpus, "problem": calls.problem}


class _Calls:
    """NVML's functions with errors as values; the first one is stored as the problem to report."""

    def __init__(self, nvml: ModuleType) -> None:
        self.nvml = nvml
        self.problem: SourceFailure | None = None

    def query(self, function: str, *arguments: object) -> object | None:
        """The function's answer; None after an error that is worth reporting."""
        return self._call(function, arguments, optional=False)

    def query_optional(self, function: str, *arguments: object) -> object | None:
        """The function's answer; None if this driver or this GPU does not support it."""
        return self._call(function, arguments, optional=True)

    def _call(self, function: str, arguments: tuple[object, ...], *, optional: bool) -> object | None:
        try:
            answer: object = getattr(self.nvml, function)(*arguments)
        except self.nvml.NVMLError as error:
            if not optional:
                self.problem = self.problem or nvml_problem(int(getattr(error, "value", 0)), function)
            return None
        return answer


def _driver(calls: _Calls) -> str | None:
    answer = calls.query("nvmlSystemGetDriverVersion")
    return None if answer is None else _text(answer)


def _driver_cuda(calls: _Calls) -> int | None:
    """The second version of the call queries the installed libcuda; drivers before R410 only have the first one."""
    for function in ("nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"):
        answer = calls.query_optional(function)
        if isinstance(answer, int):
            return answer
    return None


def _gpus(calls: _Calls) -> list[tuple[object, ...]] | None:
    count = calls.query("nvmlDeviceGetCount")
    if not isinstance(count, int):
        return None
    handles = [calls.query("nvmlDeviceGetHandleByIndex", index) for index in range(count)]
    return [_gpu(calls, handle) for handle in handles if handle is not None]


def _gpu(calls: _Calls, handle: object) -> tuple[object, ...]:
    name = calls.query("nvmlDeviceGetName", handle)
    capability = calls.query("nvmlDeviceGetCudaComputeCapability", handle)
    memory = getattr(calls.query_optional("nvmlDeviceGetMemoryInfo", handle), "total", None)
    modes = calls.query_optional("nvmlDeviceGetMigMode", handle)
    return (
        None if name is None else _text(name),
        *(capability if isinstance(capability, tuple) else (None, None)),
        memory,
        isinstance(modes, list) and modes[0] == 1,
    )


def _text(answer: object) -> str:
    return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else str(answer)
