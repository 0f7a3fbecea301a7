"""How many frameworks are tested at once: each needs memory for a copy of everything."""

from __future__ import annotations

import os
from pathlib import Path

HOST_MEMORY = 4 << 30
"""Bytes of main memory for one framework with its CUDA libraries and context; the largest, TensorFlow and PyTorch, use
2 to 3 GB after their first kernels.
"""
GPU_MEMORY = 3 << 30
"""Bytes of GPU memory for one framework: a context, the libraries' kernels and workspaces."""
_UNKNOWN = 1
"""If memory cannot be read, one after the other."""


def at_once(
    count: int, gpu_memory: int | None, *, meminfo: Path = Path("/proc/meminfo"), cgroup: Path = Path("/sys/fs/cgroup")
) -> int:
    """How many of ``count`` frameworks to run at once; ``gpu_memory`` is that of the GPU in bytes, None on the CPU."""
    available = available_memory(meminfo)
    if available is None:
        return _UNKNOWN
    allowed = allowed_memory(cgroup)
    limits = [count, os.cpu_count() or 1, min(available, allowed if allowed is not None else available) // HOST_MEMORY]
    if gpu_memory is not None:
        limits.append(gpu_memory // GPU_MEMORY)
    return max(1, min(limits))


def allowed_memory(cgroup: Path) -> int | None:
    """Bytes that this container may still allocate (memory.max, cgroup v2); None if there is no limit."""
    try:
        limit, used = ((cgroup / name).read_text(encoding="ascii").strip() for name in ("memory.max", "memory.current"))
    except OSError:
        return None
    return int(limit) - int(used) if limit.isdecimal() and used.isdecimal() else None


def available_memory(meminfo: Path) -> int | None:
    """Bytes of main memory that are available without swapping (MemAvailable, proc(5)); None if unknown."""
    try:
        lines = meminfo.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    words = next((line.split() for line in lines if line.startswith("MemAvailable:")), [])
    return int(words[1]) * 1024 if len(words) > 1 and words[1].isdecimal() else None
