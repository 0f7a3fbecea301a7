"""What is built into the loader of a system: default directories, cache, and preferred subdirectories.

Since glibc 2.33 the loader reports this (``ld.so --list-diagnostics``). Older ones do not support glibc-hwcaps, and
their directories are those that distributions compile in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from envsolve.binary.elf import Abi
from envsolve.binary.loader_cache import FLAGS, chosen_files, read_cache
from envsolve.boundary.programs import run_program

_TIMEOUT = 10.0
_LINE = re.compile(r'([\w.]+)(?:\[0x([0-9a-f]+)\])?=(?:"(.*)"|0x([0-9a-f]+))')
_LOADERS = {
    ("EM_X86_64", 64): ("/lib64/ld-linux-x86-64.so.2", "x86_64"),
    ("EM_AARCH64", 64): ("/lib/ld-linux-aarch64.so.1", "aarch64"),
}
"""The loader of an ABI, and the name of its processor in Debian's directories and in ``$PLATFORM``."""


class LoaderSystem(NamedTuple):
    """The built-in facts of a loader. Directories end in a slash; ``hwcaps`` are those of glibc-hwcaps, best first."""

    abi: Abi
    interpreter: Path
    directories: tuple[str, ...]
    hwcaps: tuple[str, ...]
    lib: str
    platform: str
    cache: Path
    cached: Mapping[str, Path]


def loader_system(abi: Abi) -> LoaderSystem | None:
    """The loader of this machine for programs of ``abi``; None if there is no known one."""
    known = _LOADERS.get((abi.machine, abi.bits))
    if known is None or not Path(known[0]).exists():
        return None
    interpreter, processor = known
    diagnostics = _diagnostics(interpreter)
    directories = diagnostics.get("path.system_dirs") or _usual_directories(processor)
    return _system(abi, interpreter, directories, diagnostics, processor)


def _system(
    abi: Abi, interpreter: str, directories: list[str], diagnostics: Mapping[str, list[str]], processor: str
) -> LoaderSystem:
    names = "".join(diagnostics.get("dl_hwcaps_subdirs", [])).split(":")
    active = int("".join(diagnostics.get("dl_hwcaps_subdirs_active", [])) or "0")
    hwcaps = tuple(name for place, name in enumerate(names) if name and active >> place & 1)
    cache = Path("".join(diagnostics.get("path.sysconfdir", [])) or "/etc") / "ld.so.cache"
    return LoaderSystem(
        abi=abi,
        interpreter=Path(interpreter),
        directories=tuple(f"{directory.rstrip('/')}/" for directory in directories),
        hwcaps=hwcaps,
        lib="".join(diagnostics.get("dl_dst_lib", [])) or _usual_lib(processor),
        platform="".join(diagnostics.get("dl_platform", [])) or processor,
        cache=cache,
        cached=chosen_files(read_cache(cache), FLAGS[abi.machine, abi.bits], hwcaps),
    )


def _diagnostics(interpreter: str) -> dict[str, list[str]]:
    """What the loader reports about itself, by key, with decimal numbers; empty if it is older than 2.33."""
    try:
        finished = run_program([interpreter, "--list-diagnostics"], {}, _TIMEOUT)
    except OSError:
        return {}
    found: dict[str, list[str]] = {}
    for line in finished.output.splitlines() if finished.exit_code == 0 else ():
        match = _LINE.fullmatch(line)
        if match is not None:
            found.setdefault(match[1], []).append(match[3] if match[4] is None else str(int(match[4], 16)))
    return found


def _usual_directories(processor: str) -> list[str]:
    """The directories that Debian and its derivatives, or all others, compile in."""
    multiarch = f"{processor}-linux-gnu"
    if Path("/usr/lib", multiarch).is_dir():
        return [f"/lib/{multiarch}", f"/usr/lib/{multiarch}", "/lib", "/usr/lib"]
    return ["/lib64", "/usr/lib64"]


def _usual_lib(processor: str) -> str:
    multiarch = f"lib/{processor}-linux-gnu"
    return multiarch if Path("/usr", multiarch).is_dir() else "lib64"
