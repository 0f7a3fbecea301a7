"""Whether this is still the machine that was looked at: cheap signs that change when a detection would say otherwise.

Only of machines without an NVIDIA driver. Where there is one, its GPUs may be switched, split or taken away without a
sign that costs less than asking the driver.
"""

from __future__ import annotations

import os
import sys

_DRIVER = (
    "/proc/driver/nvidia",
    "/sys/module/nvidia",
    "/dev/nvidiactl",
    "/dev/nvidia0",
    "/dev/dxg",
    "/dev/nvhost-ctrl-gpu",
)
"""What a driver leaves: on Linux, on Tegra, and inside WSL2, where /dev/dxg stands for the host's."""
_PCI = "/sys/bus/pci/devices"


def fingerprint() -> tuple[str, ...] | None:
    """The signs; None where only a detection can tell."""
    if sys.platform != "linux" or any(map(os.path.exists, _DRIVER)):
        return None
    try:
        devices = sorted(os.listdir(_PCI)) if os.path.isdir(_PCI) else []
        system = os.uname()
        return (system.sysname, system.machine, system.release, os.confstr("CS_GNU_LIBC_VERSION") or "", *devices)
    except (OSError, ValueError):
        return None
