"""Which files of an index a target can install: wheel tags, Python versions.

The order of the tags is that of packaging.tags, which the tests compare with; generating its thousands of tags for a
target costs more than a whole lock of a small project, so here each part of a tag has its rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
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
"""The names from before PEP 600, as aliases; the last two exist for x86 alone."""
_FIRST_GLIBC = {"x86_64": 5, "aarch64": 17}
"""The oldest glibc 2.x that manylinux wheels of an architecture are built for (PEP 513, PEP 599)."""
ASSUMED_MACOS = (14, 0)
_OLDEST_INTERPRETER = 2
"""abi3 wheels are built for CPython 3.2 or newer (PEP 384)."""


class Interpreter(NamedTuple):
    """The CPython and the system that a lock is for. ``python`` is the full version: major, minor, patch."""

    python: tuple[int, int, int]
    platform: Platform
    glibc: LibcVersion | None = None

    @property
    def full_version(self) -> str:
        """``3.11.7``."""
        return ".".join(map(str, self.python))

    def marker_values(self) -> dict[str, str]:
        """The values of environment markers (PEP 508); those that only a running machine has are empty."""
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
            "python_version": f"{self.python[0]}.{self.python[1]}",
            "sys_platform": {"Linux": "linux", "Windows": "win32", "Darwin": "darwin"}[system],
        }


class Ranks:
    """Where the tags of a wheel stand among those that an interpreter takes: lower is better."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._interpreter = interpreter
        self._known: dict[str, tuple[int, int] | None] = {}

    def of_wheel(self, file_name: str) -> tuple[int, int] | None:
        """The rank of a wheel by its file name; None where the interpreter cannot install it."""
        tags = "-".join(file_name.removesuffix(".whl").split("-")[-3:])
        if tags not in self._known:
            self._known[tags] = self._rank(tags)
        return self._known[tags]

    def may_be_had(self, file_name: str) -> bool:
        """Whether another Python 3 on the same platform could install a wheel."""
        pythons, _, platforms = (it.lower().split(".") for it in file_name.removesuffix(".whl").split("-")[-3:])
        on_platform = any(it == "any" or it in self._platforms for it in platforms)
        return on_platform and any(it.startswith(("py3", "cp3")) for it in pythons)

    def needed_glibc(self, file_name: str) -> LibcVersion | None:
        """The oldest glibc with which the interpreter can install a wheel; None where that is not what it lacks."""
        pythons, abis, platforms = (it.lower().split(".") for it in file_name.removesuffix(".whl").split("-")[-3:])
        if not any((python, abi, False) in self._kinds for python in pythons for abi in abis):
            return None
        architecture = _ARCHITECTURES[self._interpreter.platform]
        found = (re.fullmatch(rf"manylinux_2_(\d+)_{architecture}", it) for it in platforms)
        return min((LibcVersion(2, int(it[1])) for it in found if it is not None), default=None)

    def _rank(self, tags: str) -> tuple[int, int] | None:
        pythons, abis, platforms = (part.lower().split(".") for part in tags.split("-"))
        ranks = [
            (kind, place)
            for platform in platforms
            if (place := 0 if platform == "any" else self._platforms.get(platform)) is not None
            for python in pythons
            for abi in abis
            if (kind := self._kinds.get((python, abi, platform == "any"))) is not None
        ]
        return min(ranks, default=None)

    @cached_property
    def _kinds(self) -> Mapping[tuple[str, str, bool], int]:
        """The rank of interpreter and ABI, with a platform and without (packaging.tags, cpython_tags and on)."""
        _, minor, _ = self._interpreter.python
        this = f"cp3{minor}"
        generic = [f"py3{minor}", "py3", *(f"py3{older}" for older in range(minor - 1, -1, -1))]
        ordered = [
            (this, this, False),
            (this, "abi3", False),
            (this, "none", False),
            *((f"cp3{older}", "abi3", False) for older in range(minor - 1, _OLDEST_INTERPRETER - 1, -1)),
            *((python, "none", False) for python in generic),
            (this, "none", True),
            *((python, "none", True) for python in generic),
        ]
        return {kind: rank for rank, kind in enumerate(ordered)}

    @cached_property
    def _platforms(self) -> Mapping[str, int]:
        return {platform: rank for rank, platform in enumerate(platform_tags(self._interpreter))}


def _system(platform: Platform) -> tuple[str, str]:
    """``platform_system`` and ``platform_machine``."""
    architecture = _ARCHITECTURES[platform]
    if platform.is_windows:
        return "Windows", architecture.upper()
    return ("Linux" if platform in (Platform.LINUX_64, Platform.LINUX_AARCH64) else "Darwin"), architecture


def platform_tags(interpreter: Interpreter) -> Iterator[str]:
    """The platform tags that the interpreter takes, best first, without ``any``."""
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
