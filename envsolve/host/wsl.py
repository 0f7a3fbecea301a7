"""Windows Subsystem for Linux 2: the GPU belongs to Windows, whose driver appears as libraries in /usr/lib/wsl/lib."""

from __future__ import annotations

from pathlib import Path

from envsolve.boundary.reading import exists, short_text

WSL_LIBRARIES = "usr/lib/wsl/lib"

_LOADER_DIRECTORIES = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib64", "usr/lib", "usr/local/lib")


def is_wsl(root: Path) -> bool:
    """Whether this is WSL 2 with GPU support, by the paravirtual device, Windows' libraries, or the kernel's name."""
    if exists(root / "dev/dxg") or exists(root / WSL_LIBRARIES / "libcuda.so.1"):
        return True
    release = short_text(root / "proc/sys/kernel/osrelease") or ""
    return "microsoft" in release.lower() and "wsl2" in release.lower()


def shadowing_library(root: Path) -> str | None:
    """A libcuda in the loader's default directories, left by a Linux driver package, that hides the one of Windows."""
    genuine = root / WSL_LIBRARIES / "libcuda.so.1"
    if not exists(genuine):
        return None
    for directory in _LOADER_DIRECTORIES:
        other = root / directory / "libcuda.so.1"
        if exists(other) and not _is_windows_driver(other, root):
            return f"/{directory}/libcuda.so.1"
    return None


def _is_windows_driver(other: Path, root: Path) -> bool:
    """Whether ``other`` leads to Windows' library or to the driver store beside it, as in containers."""
    return other.resolve().is_relative_to((root / "usr/lib/wsl").resolve())
