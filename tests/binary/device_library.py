"""Libraries with device code in them, compiled by gcc."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest


def device_library(
    path: Path,
    fat_binaries: bytes,
    *,
    section: str = ".nv_fatbin",
    soname: str | None = None,
    options: Iterable[str] = (),
) -> Path:
    """A library at ``path`` whose ``section`` holds the given bytes; skips the test where gcc is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    held = path.with_name(f"{path.name}.bytes")
    held.write_bytes(fat_binaries)
    source = f'.section {section}, "a"\n.balign 8\n.incbin "{held}"\n.section .note.GNU-stack, ""\n'
    named = [] if soname is None else [f"-Wl,-soname,{soname}"]
    command = ["gcc", "-shared", "-nostdlib", "-x", "assembler", "-", "-x", "none", "-o", str(path), *named, *options]
    try:
        subprocess.run(command, input=source, text=True, check=True)
    except FileNotFoundError:
        pytest.skip("needs gcc")
    held.unlink()
    return path
