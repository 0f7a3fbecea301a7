"""The CUDA libraries that a process has loaded after a framework's work: their files and versions."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator

from . import library_versions

LONGEST_PATH = 32768
"""Characters of the longest path on Windows."""
ALL_MODULES = 3
"""LIST_MODULES_ALL of psapi.h."""


def loaded_libraries() -> list[dict[str, object]]:
    """For each CUDA library in this process: the file (as resolved by the loader), component and version."""
    found: list[dict[str, object]] = []
    for path in sorted(set(_modules())):
        component = library_versions.component_of(path)
        if component is not None:
            found.append({"path": path, "component": component, "version": _version(component, path)})
    return found


def _version(component: str, path: str) -> str | None:
    """The version that the library reports; it is loaded already, so this loads nothing."""
    try:
        return library_versions.version_of(component, ctypes.CDLL(path))
    except OSError:
        return None  # a file that was replaced meanwhile


if sys.platform == "win32":

    def _modules() -> Iterator[str]:
        """Every module of this process, by EnumProcessModulesEx and GetModuleFileNameExW (psapi.h)."""
        psapi = ctypes.WinDLL("psapi")
        kernel32 = ctypes.WinDLL("kernel32")
        kernel32.GetCurrentProcess.restype = ctypes.c_void_p
        process = ctypes.c_void_p(kernel32.GetCurrentProcess())
        psapi.EnumProcessModulesEx.argtypes = [
            ctypes.c_void_p,
            ctypes.POINTER(ctypes.c_void_p),
            ctypes.c_ulong,
            ctypes.POINTER(ctypes.c_ulong),
            ctypes.c_ulong,
        ]
        psapi.GetModuleFileNameExW.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_wchar_p, ctypes.c_ulong]
        needed = ctypes.c_ulong()
        modules = (ctypes.c_void_p * 4096)()
        size = ctypes.sizeof(modules)
        if not psapi.EnumProcessModulesEx(process, modules, size, ctypes.byref(needed), ALL_MODULES):
            return
        name = ctypes.create_unicode_buffer(LONGEST_PATH)
        for module in modules[: needed.value // ctypes.sizeof(ctypes.c_void_p)]:
            if psapi.GetModuleFileNameExW(process, module, name, LONGEST_PATH):
                yield name.value

else:

    def _modules() -> Iterator[str]:
        """Files in the memory map of this process that are loaded as code. Nothing where /proc is not there."""
        try:
            with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
                lines = maps.readlines()
        except OSError:
            return
        for line in lines:
            _, permissions, _, _, *rest = line.rstrip("\n").split(
                None, 5
            )  # address, permissions, offset, device, inode
            path = rest[-1]
            if path.startswith("/") and "x" in permissions:
                yield _without_deleted(path)


def _without_deleted(path: str) -> str:
    return path[: -len(" (deleted)")] if path.endswith(" (deleted)") and not os.path.exists(path) else path
