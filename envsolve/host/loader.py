"""Find the driver's libraries and nvidia-smi: by the loader's own search, then in the places that it misses.

NixOS has the driver in /run/opengl-driver, Google's container images in /usr/local/nvidia, Jetson in other directories;
none of these is always on the loader's path. On WSL the Windows driver's directory comes first, because a Linux driver
package may hide it. The current directory is never searched: a file there is not this machine's driver.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from envsolve.boundary.programs import absolute_entries, is_program
from envsolve.boundary.reading import exists
from envsolve.host.machine import Machine
from envsolve.host.trouble import Trouble
from envsolve.host.wsl import WSL_LIBRARIES, is_wsl
from envsolve.model.host import SourceFailure

if TYPE_CHECKING:
    from ctypes import CDLL

NVML_LIBRARY = "libnvidia-ml.so.1"
CUDA_LIBRARY = "libcuda.so.1"

LIBRARY_PATH = "LD_LIBRARY_PATH"
COMPATIBILITY_DIRECTORY = re.compile(r"/(?:compat(?:-orin)?|cuda-compat[^/]*)/")
"""The directories of packages for forward compatibility: of a toolkit, of Jetson, of conda."""

_MISSING = re.compile("No such file|not found|Could not find|no suitable image")

_SYSTEM_DIRECTORIES = (
    *("/lib", "/usr/lib", "/lib64", "/usr/lib64"),
    *(f"{root}/{machine}-linux-gnu" for root in ("/lib", "/usr/lib") for machine in ("x86_64", "aarch64")),
)
"""The default directories of glibc, as distributions build it."""
UNUSUAL_DIRECTORIES = (
    "run/opengl-driver/lib",
    "usr/local/nvidia/lib64",
    "usr/lib/aarch64-linux-gnu/nvidia",
    "usr/lib/aarch64-linux-gnu/tegra",
)


def library_entries(value: str | None) -> list[str]:
    """The entries of LD_LIBRARY_PATH, including empty ones; none if it is not set (ld.so(8): colons or semicolons)."""
    return re.split("[:;]", value) if value else []


def nvml_candidates(machine: Machine) -> tuple[str, ...]:
    """Names to load NVML by, in order."""
    if machine.platform.is_windows:
        program_files = machine.environ.get("ProgramFiles", r"C:\Program Files")
        return (_system32(machine, "nvml.dll"), rf"{program_files}\NVIDIA Corporation\NVSMI\nvml.dll")
    return _linux_candidates(machine, NVML_LIBRARY)


def cuda_candidates(machine: Machine) -> tuple[str, ...]:
    """Names to load the CUDA driver library by, in order."""
    if machine.platform.is_windows:
        return (_system32(machine, "nvcuda.dll"),)
    return _linux_candidates(machine, CUDA_LIBRARY)


def find_nvidia_smi(machine: Machine) -> str | None:
    """The program on PATH, or in its usual places on WSL and Windows. Relative entries of PATH are not searched."""
    name = "nvidia-smi.exe" if machine.platform.is_windows else "nvidia-smi"
    directories = (*absolute_entries(machine.environ.get("PATH", "")), *_known_directories(machine))
    return next((str(it) for directory in directories if is_program(it := Path(directory, name))), None)


def _known_directories(machine: Machine) -> tuple[str, ...]:
    if not machine.platform.is_windows:
        return (str(machine.root / WSL_LIBRARIES),)
    system_root = machine.environ.get("SystemRoot", r"C:\Windows")
    program_files = machine.environ.get("ProgramFiles", r"C:\Program Files")
    return (rf"{system_root}\System32", rf"{program_files}\NVIDIA Corporation\NVSMI")


def load_first(names: Iterable[str]) -> CDLL | SourceFailure:
    """Load the first of ``names`` that loads, in a child process (child.py); the problem if none does."""
    import ctypes

    problem = SourceFailure(Trouble.LIBRARY_MISSING, "there is no name to load it by")
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            problem = _worse(problem, load_problem(name, str(error)))
    return problem


def missing(names: Sequence[str], environ: Mapping[str, str]) -> SourceFailure | None:
    """The problem if certainly none of ``names`` can be loaded; None if loading has to be tried.

    The loader of glibc searches the library path, its cache, and the directories of the system and of the program. If
    the kernel has the driver, there may be libraries in unusual places.
    """
    if exists(Path("/proc/driver/nvidia")):
        return None
    entries = [entry for entry in library_entries(environ.get(LIBRARY_PATH)) if entry.startswith(("/", "$"))]
    directories = (*entries, *_SYSTEM_DIRECTORIES, f"{sys.prefix}/lib", f"{sys.base_prefix}/lib")
    cache = _loader_cache()
    for name in names:
        if os.path.isabs(name):  # noqa: PTH117 - a text
            may_load = exists(Path(name))
        else:
            may_load = cache is None or name.encode() + b"\0" in cache or any("$" in it for it in entries)
            may_load = may_load or any(exists(Path(it, name)) for it in directories)
        if may_load:
            return None
    return load_problem(names[-1], f"{names[-1]}: cannot open shared object file: No such file or directory")


def _loader_cache() -> bytes | None:
    """The cache of glibc's loader, which contains the names of libraries; None if there is none."""
    try:
        return Path("/etc/ld.so.cache").read_bytes()
    except OSError:
        return None


def load_problem(name: str, text: str) -> SourceFailure:
    """The meaning of a loader's message: there is no such file, or it cannot be used."""
    missing = _MISSING.search(text) is not None
    return SourceFailure(
        Trouble.LIBRARY_MISSING if missing else Trouble.LIBRARY_UNUSABLE, text or f"{name} does not load"
    )


def without_relative_entries(environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` with only absolute directories in the library path (an empty entry is the current directory)."""
    cleaned = dict(environ)
    entries = [entry for entry in library_entries(environ.get(LIBRARY_PATH)) if entry.startswith("/")]
    if entries:
        cleaned[LIBRARY_PATH] = ":".join(entries)
    else:
        cleaned.pop(LIBRARY_PATH, None)
    return cleaned


def find_in_current_directory(names: Iterable[str], environ: Mapping[str, str]) -> str | None:
    """The library that a relative or empty entry of the library path leads to. It is not loaded."""
    relative = [entry for entry in library_entries(environ.get(LIBRARY_PATH)) if not entry.startswith("/")]
    plain = (name for name in names if "/" not in name and "\\" not in name)
    return next((name for name in plain for entry in relative if exists(Path(entry) / name)), None)


def _linux_candidates(machine: Machine, soname: str) -> tuple[str, ...]:
    before = [WSL_LIBRARIES] if is_wsl(machine.root) else []
    return (*_existing(machine.root, before, soname), soname, *_existing(machine.root, UNUSUAL_DIRECTORIES, soname))


def _existing(root: Path, directories: Iterable[str], soname: str) -> Iterator[str]:
    paths = (root / directory / soname for directory in directories)
    return (str(path) for path in paths if exists(path))


def _system32(machine: Machine, file_name: str) -> str:
    windows = machine.environ.get("SystemRoot") or machine.environ.get("WINDIR") or r"C:\Windows"
    return rf"{windows}\System32\{file_name}"


def _worse(first: SourceFailure, second: SourceFailure) -> SourceFailure:
    """The more informative problem: an unusable file rather than a missing one."""
    return second if first.code == Trouble.LIBRARY_MISSING else first
