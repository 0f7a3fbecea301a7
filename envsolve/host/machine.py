"""The machine to detect: its file tree, environment and platform."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from envsolve.errors import Hint, UsageError
from envsolve.host.pci import gpus_on_bus
from envsolve.model.host import Platform
from envsolve.model.versions import LibcVersion

TIMEOUT_VARIABLE = "ENVSOLVE_PROBE_TIMEOUT"
"""Seconds to wait for a driver library or nvidia-smi."""

PROBE_TIMEOUT = 10.0
SECONDS_PER_GPU = 3.0
"""Without persistence mode the driver starts every GPU for the first program, which takes 1 to 3 seconds for each
(https://docs.nvidia.com/deploy/driver-persistence/overview.html).
"""
LONGEST_TIMEOUT = 3600.0

_PLATFORMS = {
    ("linux", "x86_64"): Platform.LINUX_64,
    ("linux", "amd64"): Platform.LINUX_64,
    ("linux", "aarch64"): Platform.LINUX_AARCH64,
    ("linux", "arm64"): Platform.LINUX_AARCH64,
    ("win32", "amd64"): Platform.WIN_64,
    ("win32", "x86_64"): Platform.WIN_64,
    ("darwin", "x86_64"): Platform.OSX_64,
    ("darwin", "arm64"): Platform.OSX_ARM64,
}


class Machine(NamedTuple):
    """One machine to detect.

    ``live`` says whether this process runs on it: only then do the libraries that the loader finds and the programs on
    PATH belong to it. A copied directory tree is not live, and only its files are read.
    """

    platform: Platform
    environ: Mapping[str, str] = MappingProxyType({})
    root: Path = Path("/")
    live: bool = True

    def check(self) -> None:
        """Raise UsageError for an invalid variable, before a probe could hide the error."""
        _ = self.timeout

    @property
    def timeout(self) -> float:
        """Seconds that a child process may take; by default with those in which the driver starts the GPUs."""
        text = self.environ.get(TIMEOUT_VARIABLE, "")
        try:
            seconds = float(text) if text else PROBE_TIMEOUT + self.seconds_to_start
        except ValueError:
            seconds = 0.0
        if not 0 < seconds < LONGEST_TIMEOUT:
            message = f"{TIMEOUT_VARIABLE} is {text!r}; it must be a number of seconds"
            raise UsageError("invalid-environment-variable", message, hints=(Hint(f"unset {TIMEOUT_VARIABLE}"),))
        return seconds

    @property
    def seconds_to_start(self) -> float:
        """Seconds in which the driver may start the GPUs on the bus."""
        return SECONDS_PER_GPU * len(gpus_on_bus(self.root) or ())


def this_platform() -> Platform:
    """The platform of this process, from ``sys.platform`` and the kernel's machine name."""
    operating_system = "linux" if sys.platform.startswith("linux") else sys.platform
    machine = _machine_name()
    platform = _PLATFORMS.get((operating_system, machine.lower()))
    if platform is None:
        message = f"envsolve does not know the platform {operating_system} on {machine}"
        raise UsageError("unsupported-platform", message, hints=(Hint("name the target", "--platform linux-64"),))
    return platform


def this_glibc() -> LibcVersion | None:
    """The C library's version; None for musl, macOS and Windows, which have no glibc."""
    if sys.platform == "win32":
        return None
    else:
        try:
            text = os.confstr("CS_GNU_LIBC_VERSION") or ""
            return LibcVersion.parse(text.rpartition(" ")[2])
        except (OSError, ValueError):
            return None


def _machine_name() -> str:
    if sys.platform == "win32":
        import platform

        return platform.machine()
    else:
        return os.uname().machine
