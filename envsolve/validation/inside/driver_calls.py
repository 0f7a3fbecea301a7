"""The calls of the CUDA driver library that the driver probe makes, with the types from cuda.h.

Names that end in ``_v2`` are those that cuda.h maps the plain names to. The others are exported by every libcuda since
CUDA 7.0, the call for the UUID since CUDA 9.2.
"""

from __future__ import annotations

import ctypes
import sys

from .channel import Channel

Handle = ctypes.c_void_p
"""CUcontext, CUmodule and CUfunction: opaque pointers."""
DevicePointer = ctypes.c_uint64
"""CUdeviceptr on 64-bit systems."""
LONGEST_PATH = 32768

_int, _unsigned, _size, _pointer = ctypes.c_int, ctypes.c_uint, ctypes.c_size_t, ctypes.c_void_p

SIGNATURES = {
    "cuGetErrorName": (_int, ctypes.POINTER(ctypes.c_char_p)),
    "cuDriverGetVersion": (ctypes.POINTER(_int),),
    "cuInit": (_unsigned,),
    "cuDeviceGetCount": (ctypes.POINTER(_int),),
    "cuDeviceGet": (ctypes.POINTER(_int), _int),
    "cuDeviceGetName": (ctypes.c_char_p, _int, _int),
    "cuDeviceTotalMem_v2": (ctypes.POINTER(_size), _int),
    "cuDeviceGetUuid": (_pointer, _int),
    "cuDeviceGetAttribute": (ctypes.POINTER(_int), _int, _int),
    "cuDevicePrimaryCtxRetain": (ctypes.POINTER(Handle), _int),
    "cuDevicePrimaryCtxRelease": (_int,),
    "cuCtxSetCurrent": (Handle,),
    "cuCtxSynchronize": (),
    "cuModuleLoadDataEx": (
        ctypes.POINTER(Handle),
        ctypes.c_char_p,
        _unsigned,
        ctypes.POINTER(_int),
        ctypes.POINTER(_pointer),
    ),
    "cuModuleGetFunction": (ctypes.POINTER(Handle), Handle, ctypes.c_char_p),
    "cuModuleUnload": (Handle,),
    "cuMemAlloc_v2": (ctypes.POINTER(DevicePointer), _size),
    "cuMemFree_v2": (DevicePointer,),
    "cuMemcpyHtoD_v2": (DevicePointer, ctypes.c_char_p, _size),
    "cuMemcpyDtoH_v2": (_pointer, DevicePointer, _size),
    "cuMemsetD8_v2": (DevicePointer, ctypes.c_ubyte, _size),
    "cuLaunchKernel": (Handle,) + (_unsigned,) * 7 + (Handle, ctypes.POINTER(_pointer), ctypes.POINTER(_pointer)),
}
"""Every call returns a CUresult, 0 for success."""


class CallError(Exception):
    """A call failed. ``code`` is its CUresult; None if the library has no such call, or none was loaded."""

    def __init__(self, call: str, code: int | None, name: str | None = None, text: str = "") -> None:
        super().__init__(call)
        self.call = call
        self.code = code
        self.name = name
        self.text = text

    def as_json(self) -> dict[str, object]:
        """The failure for the result of the probe."""
        return {"stage": self.call, "code": self.code, "error": self.name, "text": self.text}


class LoadError(Exception):
    """No library loaded. ``attempts`` has the loader's message for each name."""

    def __init__(self, attempts: list[dict[str, object]]) -> None:
        super().__init__("no CUDA driver library loads")
        self.attempts = attempts


class Driver:
    """The loaded library. Each call is announced before it is made, so that one that never returns is known.

    ``device`` is the index of the current device, which the announcement includes: ``cuLaunchKernel@1``.
    """

    def __init__(self, names: list[str], channel: Channel) -> None:
        self.device: int | None = None
        self.announces = True
        self._channel = channel
        self._library = self._load(names)

    def _load(self, names: list[str]) -> ctypes.CDLL:
        attempts: list[dict[str, object]] = []
        for name in names:
            self._channel.stage("loading {}".format(name))
            try:
                return ctypes.CDLL(name)
            except OSError as error:
                attempts.append({"name": name, "text": str(error), "windows": getattr(error, "winerror", None)})
        raise LoadError(attempts)

    def announce(self, name: str) -> None:
        """Report the next step."""
        self._channel.stage(name if self.device is None else "{}@{}".format(name, self.device))

    def call(self, name: str, *arguments: object) -> None:
        """Make a call. Raises CallError for anything but CUDA_SUCCESS."""
        if self.announces:
            self.announce(name)
        result = self._function(name)(*arguments)
        if result != 0:
            raise CallError(name, result, self._error_name(result))

    def path(self) -> str | None:
        """The file that was loaded: a toolkit's stub, a compatibility package, or the driver's own."""
        return _path_of(self._library)

    def _function(self, name: str) -> ctypes._NamedFuncPointer:
        try:
            function = getattr(self._library, name)
        except AttributeError as error:
            raise CallError(name, None, text=str(error)) from None
        function.argtypes = SIGNATURES[name]
        function.restype = ctypes.c_int
        return function  # type: ignore[no-any-return]

    def _error_name(self, code: int) -> str | None:
        """The driver's name for ``code``; None for an unknown one."""
        name = ctypes.c_char_p()
        try:
            self._function("cuGetErrorName")(code, ctypes.byref(name))
        except CallError:
            return None
        return name.value.decode("ascii", "replace") if name.value else None


if sys.platform == "win32":

    def _path_of(library: ctypes.CDLL) -> str | None:
        path = ctypes.create_unicode_buffer(LONGEST_PATH)
        ask = ctypes.WinDLL("kernel32").GetModuleFileNameW
        ask.argtypes = [ctypes.c_void_p, ctypes.c_wchar_p, ctypes.c_ulong]
        return path.value if ask(library._handle, path, LONGEST_PATH) else None  # noqa: SLF001 - nothing else has it

else:

    def _path_of(library: ctypes.CDLL) -> str | None:  # noqa: ARG001 - Linux tells of all files at once
        try:
            with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
                return next((line.split(None, 5)[5].strip() for line in maps if "/libcuda.so" in line), None)
        except OSError:
            return None
