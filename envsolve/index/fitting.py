"""Which wheels a target can install, and which of them it prefers: by their tags, as in packaging."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from envsolve.model.host import ASSUMED_GLIBC, Platform
from envsolve.model.versions import LibcVersion

_ARCHITECTURES = {
    Platform.LINUX_64: "x86_64",
    Platform.LINUX_AARCH64: "aarch64",
    Platform.WIN_64: "amd64",
    Platform.OSX_64: "x86_64",
    Platform.OSX_ARM64: "arm64",
}
_LEGACY = {(2, 17): "manylinux2014", (2, 12): "manylinux2010", (2, 5): "manylinux1"}
"""The names before PEP 600, as aliases; the last two exist only for x86."""
_FIRST_GLIBC = {"x86_64": 5, "aarch64": 17}
"""The oldest glibc 2.x that manylinux wheels of an architecture are built for (PEP 513, PEP 599)."""
ASSUMED_MACOS = (14, 0)


class Interpreter(NamedTuple):
    """The CPython and the system of a lock. ``python`` is the full version: major, minor, patch."""

    python: tuple[int, int, int]
    platform: Platform
    glibc: LibcVersion | None = None

    @property
    def full_version(self) -> str:
        """``3.11.7``."""
        return ".".join(map(str, self.python))

    @property
    def minor_version(self) -> str:
        """``3.11``."""
        return f"{self.python[0]}.{self.python[1]}"

    def marker_values(self) -> dict[str, str]:
        """The values of environment markers (PEP 508). Values that only a running machine has are empty."""
        system, machine = _system(self.platform)
        return {
            "implementation_name": "cpython",
            "implementation_version": self.full_version,
            "os_name": "nt" if self.platform.is_windows else "posix",
            "platform_machine": machine,
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": system,
            "platform_version": "",
            "python_full_version": self.full_version,
            "python_version": self.minor_version,
            "sys_platform": {"Linux": "linux", "Windows": "win32", "Darwin": "darwin"}[system],
        }


class Ranks:
    """The ranks of wheels by their tags, for an interpreter; lower is better."""

    def __init__(self, interpreter: Interpreter) -> None:
        from packaging.tags import compatible_tags, cpython_tags

        version = interpreter.python[:2]
        this = f"cp{version[0]}{version[1]}"
        platforms = list(platform_tags(interpreter))
        tags = (*cpython_tags(version, [this], platforms), *compatible_tags(version, this, platforms))
        self._architecture = _ARCHITECTURES[interpreter.platform]
        self._platforms = {"any", *platforms}
        self._ranks = {str(tag): rank for rank, tag in reversed(list(enumerate(tags)))}

    def of_wheel(self, file_name: str) -> int | None:
        """The rank of a wheel by its file name; None if the interpreter cannot install it."""
        found = (self._ranks.get("-".join(tag)) for tag in product(*_parts(file_name)))
        return min((rank for rank in found if rank is not None), default=None)

    def fits_another_python(self, file_name: str) -> bool:
        """Whether another Python 3 on the same platform could install a wheel."""
        pythons, _, platforms = _parts(file_name)
        return not self._platforms.isdisjoint(platforms) and any(it.startswith(("py3", "cp3")) for it in pythons)

    def needed_glibc(self, file_name: str) -> LibcVersion | None:
        """The oldest glibc with which the interpreter can install a wheel; None if another glibc does not help."""
        pythons, abis, platforms = _parts(file_name)
        if not any(
            f"{python}-{abi}-linux_{self._architecture}" in self._ranks for python, abi in product(pythons, abis)
        ):
            return None
        found = (re.fullmatch(rf"manylinux_2_(\d+)_{self._architecture}", it) for it in platforms)
        return min((LibcVersion(2, int(it[1])) for it in found if it is not None), default=None)


def _parts(file_name: str) -> list[list[str]]:
    """The Pythons, ABIs and platforms in the name of a wheel."""
    return [part.lower().split(".") for part in file_name.removesuffix(".whl").split("-")[-3:]]


def _system(platform: Platform) -> tuple[str, str]:
    """``platform_system`` and ``platform_machine``."""
    architecture = _ARCHITECTURES[platform]
    if platform.is_windows:
        return "Windows", architecture.upper()
    return ("Linux" if platform in (Platform.LINUX_64, Platform.LINUX_AARCH64) else "Darwin"), architecture


def platform_tags(interpreter: Interpreter) -> Iterator[str]:
    """The platform tags that the interpreter supports, best first, without ``any``."""
    system, _ = _system(interpreter.platform)
    architecture = _ARCHITECTURES[interpreter.platform]
    if system == "Windows":
        yield f"win_{architecture}"
    elif system == "Darwin":
        from packaging.tags import mac_platforms

        yield from mac_platforms(ASSUMED_MACOS, architecture)
    else:
        newest = (interpreter.glibc or ASSUMED_GLIBC).minor
        for minor in range(newest, _FIRST_GLIBC[architecture] - 1, -1):
            yield f"manylinux_2_{minor}_{architecture}"
            if (2, minor) in _LEGACY:
                yield f"{_LEGACY[2, minor]}_{architecture}"
        yield f"linux_{architecture}"
