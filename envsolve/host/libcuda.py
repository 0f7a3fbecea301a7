"""libcuda, the CUDA driver library: what CUDA programs use."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from envsolve.host.library import query_library
from envsolve.host.loader import cuda_candidates, load_first
from envsolve.host.machine import Machine
from envsolve.host.probe import Source
from envsolve.host.trouble import Trouble, cuda_problem
from envsolve.model.host import Reading, SourceFailure

if TYPE_CHECKING:
    from ctypes import CDLL, c_int

    from envsolve.host.child import Facts

_CAPABILITY_MAJOR = 75
_CAPABILITY_MINOR = 76
"""Numbers of device attributes from CUdevice_attribute in cuda.h."""


class LibcudaProbe(NamedTuple):
    """CUDA version and GPUs from libcuda. It does not know the driver version."""

    machine: Machine
    name: str = Source.LIBCUDA

    def read(self) -> Reading | None:
        """Return libcuda's facts, or the problem that prevents an answer."""
        return query_library(self.machine, Source.LIBCUDA, libcuda_facts, cuda_candidates(self.machine))


def load_problem_of_libcuda(machine: Machine) -> SourceFailure | None:
    """The problem that prevents loading libcuda; quicker than reading its facts."""
    return query_library(machine, Source.LIBCUDA, libcuda_loads, cuda_candidates(machine)).problem


def libcuda_loads(names: Sequence[str]) -> Facts:
    """The ``problem`` of loading libcuda; runs in a child process."""
    loaded = load_first(names)
    return {"problem": loaded if isinstance(loaded, SourceFailure) else None}


def libcuda_facts(names: Sequence[str]) -> Facts:
    """The facts from libcuda up to the first call that fails; runs in a child process.

    ``driver_cuda``, ``gpus`` and ``problem``. Variables that hide GPUs are ignored: a host's GPUs do not depend on a
    shell.
    """
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    loaded = load_first(names)
    if isinstance(loaded, SourceFailure):
        return {"problem": loaded}
    facts: Facts = {}
    gpus: list[object] = []
    try:
        driver = _Driver(loaded)
        facts["driver_cuda"] = driver.version()
        driver.call("cuInit", 0)
        facts["gpus"] = gpus
        gpus.extend(driver.gpu(index) for index in range(driver.count()))
    except _CallError as error:
        place = _library_path()
        loaded_from = f" (loaded from {place})" if place else ""
        facts["problem"] = error.problem._replace(text=error.problem.text + loaded_from)
        facts["gpus"] = gpus or None
    return facts


class _CallError(Exception):
    """A call of the driver failed, or the library does not have it."""

    def __init__(self, problem: SourceFailure) -> None:
        super().__init__(problem.text)
        self.problem = problem


class _Driver:
    """The loaded library; every failing call raises _CallError."""

    def __init__(self, library: CDLL) -> None:
        import ctypes

        self._library = library
        self._types = ctypes

    def call(self, name: str, *arguments: object) -> None:
        """Call ``name``. Raises _CallError for anything but CUDA_SUCCESS."""
        try:
            function = getattr(self._library, name)
        except AttributeError as error:
            raise _CallError(SourceFailure(Trouble.LIBRARY_UNUSABLE, f"{name} is missing: {error}")) from None
        result = function(*arguments)
        if result != 0:
            raise _CallError(cuda_problem(result, name))

    def version(self) -> int:
        """The newest CUDA that the library supports. Allowed before cuInit, so it is known even if cuInit fails."""
        return self._number("cuDriverGetVersion")

    def count(self) -> int:
        """The number of devices."""
        return self._number("cuDeviceGetCount")

    def gpu(self, index: int) -> tuple[object, ...]:
        """Name, compute capability in two numbers and bytes of memory of one device; it never counts as split."""
        types = self._types
        handle, memory = types.c_int(), types.c_size_t()
        name = types.create_string_buffer(256)
        self.call("cuDeviceGet", types.byref(handle), index)
        self.call("cuDeviceGetName", name, len(name), handle)
        self.call("cuDeviceTotalMem_v2", types.byref(memory), handle)
        capability = (self._attribute(number, handle) for number in (_CAPABILITY_MAJOR, _CAPABILITY_MINOR))
        return (name.value.decode("utf-8", "replace"), *capability, memory.value, False)

    def _attribute(self, attribute: int, handle: c_int) -> int:
        return self._number("cuDeviceGetAttribute", attribute, handle)

    def _number(self, name: str, *arguments: object) -> int:
        number = self._types.c_int()
        self.call(name, self._types.byref(number), *arguments)
        return number.value


def _library_path() -> str | None:
    """The file that was loaded: it distinguishes a toolkit's stub or a compatibility package from the driver's own."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:  # noqa: PTH123 - one read
            return next((line.split(None, 5)[5].strip() for line in maps if "/libcuda.so" in line), None)
    except OSError:
        return None
