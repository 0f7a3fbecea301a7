"""Libraries with device code, compiled by gcc."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

NV_FATBIN = ".nv_fatbin"


def device_library(
    path: Path,
    fat_binaries: bytes,
    *,
    section: str = NV_FATBIN,
    soname: str | None = None,
    needed: tuple[str, ...] = (),
    options: tuple[str, ...] = (),
) -> Path:
    """A library at ``path`` whose ``section`` holds the given bytes; skips the test without gcc."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_compiled(fat_binaries, section, soname, needed, options))
    path.chmod(0o755)
    return path


@cache
def _compiled(
    fat_binaries: bytes, section: str, soname: str | None, needed: tuple[str, ...], options: tuple[str, ...]
) -> bytes:
    """The bytes of a library, made once for all tests that lay out the same one."""
    with TemporaryDirectory() as folder:
        here = Path(folder)
        device_code, made, stubs = here / "held", here / "made", [here / f"{name}.stub" for name in needed]
        device_code.write_bytes(fat_binaries)
        for name, stub in zip(needed, stubs, strict=True):
            stub.write_bytes(_compiled(b"", NV_FATBIN, name, (), ()))
        source = (
            f'.text\nnop\n.section {section}, "a"\n.balign 8\n.incbin "{device_code}"\n.section .note.GNU-stack, ""\n'
        )
        named = [] if soname is None else [f"-Wl,-soname,{soname}"]
        command = ["gcc", "-shared", "-nostdlib", "-x", "assembler", "-", "-x", "none", "-o", str(made), *named]
        command += ["-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined", *map(str, stubs), *options]
        try:
            subprocess.run(command, input=source, text=True, check=True)
        except FileNotFoundError:
            pytest.skip("needs gcc")
        return made.read_bytes()


def library_for_torch(*, needs: tuple[str, ...] = (), has: tuple[str, ...] = (), weak: tuple[str, ...] = ()) -> bytes:
    """A library that needs some symbols, optionally uses others, and defines some of its own."""
    lines = [f".globl {name}\n{name}: .quad 0" for name in has] + [f".quad {name}" for name in needs]
    lines += [f".weak {name}\n.quad {name}" for name in weak]
    source = ".data\n" + "\n".join(lines) + '\n.section .note.GNU-stack, ""\n'
    with TemporaryDirectory() as folder:
        made = Path(folder) / "made"
        command = ["gcc", "-shared", "-nostdlib", "-x", "assembler", "-", "-o", str(made)]
        try:
            subprocess.run([*command, "-Wl,--allow-shlib-undefined"], input=source, text=True, check=True)
        except FileNotFoundError:
            pytest.skip("needs gcc")
        return made.read_bytes()
