"""A program, not a module: ask the CUDA driver library about itself and print the answer as one line of JSON.

It runs in its own process because the driver may crash or hang, and it imports nothing but the standard library so that
``python -I`` on this file always works. Arguments: names to load the library by, in order.

Answer: {"library": path, "version": 13000, "devices": [{"name", "major", "minor", "memory"}],
"error": {"call", "number", "text"}}
"""

from __future__ import annotations

import ctypes
import json
import os
import sys

COMPUTE_CAPABILITY_MAJOR = 75
COMPUTE_CAPABILITY_MINOR = 76


class CallError(Exception):
    """A call of the driver failed; ``number`` is its CUresult, None where the call does not exist or nothing loaded."""

    def __init__(self, call: str, number: int | None, text: str = "") -> None:
        super().__init__(call)
        self.answer = {"call": call, "number": number, "text": text}


class Driver:
    """The loaded library, with every failing call turned into CallError."""

    def __init__(self, names: list[str]) -> None:
        self.library = self._load(names)

    @staticmethod
    def _load(names: list[str]) -> ctypes.CDLL:
        text = ""
        for name in names:
            try:
                return ctypes.CDLL(name)
            except OSError as error:
                text = text or str(error)
        raise CallError("load", None, text)

    def call(self, name: str, *arguments: object) -> None:
        """Call ``name``; anything but CUDA_SUCCESS raises."""
        try:
            function = getattr(self.library, name)
        except AttributeError as error:
            raise CallError(name, None, str(error)) from None
        result = function(*arguments)
        if result != 0:
            raise CallError(name, result)

    def version(self) -> int:
        """The newest CUDA the library supports. Legal before cuInit, so it is known even when cuInit fails."""
        number = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(number))
        return number.value

    def count(self) -> int:
        """How many devices there are."""
        number = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(number))
        return number.value

    def device(self, index: int) -> dict[str, object]:
        """Name, compute capability and bytes of memory of one device."""
        handle = ctypes.c_int()
        name = ctypes.create_string_buffer(256)
        memory = ctypes.c_size_t()
        self.call("cuDeviceGet", ctypes.byref(handle), index)
        self.call("cuDeviceGetName", name, len(name), handle)
        self.call("cuDeviceTotalMem_v2", ctypes.byref(memory), handle)
        return {
            "name": name.value.decode("utf-8", "replace"),
            "major": self._attribute(COMPUTE_CAPABILITY_MAJOR, handle),
            "minor": self._attribute(COMPUTE_CAPABILITY_MINOR, handle),
            "memory": memory.value,
        }

    def _attribute(self, attribute: int, handle: ctypes.c_int) -> int:
        number = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(number), attribute, handle)
        return number.value


def library_path() -> str | None:
    """The file that was really loaded: it tells a toolkit's stub or a compatibility package from the driver's own."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:  # noqa: PTH123 - few imports
            return next((line.split(None, 5)[5].strip() for line in maps if "/libcuda.so" in line), None)
    except OSError:
        return None


def ask(names: list[str]) -> dict[str, object]:
    """Everything the driver says, up to the first call that fails."""
    answer: dict[str, object] = {}
    devices: list[dict[str, object]] = []
    try:
        driver = Driver(names)
        answer["library"] = library_path()
        answer["version"] = driver.version()
        driver.call("cuInit", 0)
        answer["devices"] = devices
        devices.extend(driver.device(index) for index in range(driver.count()))
    except CallError as failure:
        answer["error"] = failure.answer
    return answer


if __name__ == "__main__":
    sys.stdout.write(json.dumps(ask(sys.argv[1:])) + "\n")
    sys.stdout.flush()
    os._exit(0)  # without the driver's clean-up, which can hang
