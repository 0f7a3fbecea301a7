"""Writing the files of a simulated machine: sysfs, procfs, /dev and libraries under a temporary root."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from envsolve.model.capability import ComputeCapability

CLOSED_MODULE = """\
NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024
GCC version:  gcc version 12.2.0 (Debian 12.2.0-14)
"""
OPEN_MODULE = """\
NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  565.57.01  Release Build  (builder@example)  Thu Oct 10
GCC version:  gcc version 13.3.0
"""
JETSON_MODULE = "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  35.3.1  Release Build  (builder@example)\n"

PCI_TABLE = {
    "1b06": ("GeForce GTX 1080 Ti", ComputeCapability(6, 1)),
    "2684": ("GeForce RTX 4090", ComputeCapability(8, 9)),
    "102d": ("Tesla K80", ComputeCapability(3, 7)),
}


def write_tree(root: Path, files: Mapping[str, str]) -> Path:
    """Write ``files``; a name ending in "@" becomes a link to its text, one ending in "/" a directory."""
    for name, text in files.items():
        path = root / name.rstrip("@/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("@"):
            path.symlink_to(text)
        elif name.endswith("/"):
            path.mkdir(exist_ok=True)
        else:
            path.write_text(text, encoding="utf-8")
    return root


def pci_gpu(
    device: str = "1b06", driver: str | None = None, address: str = "0000:01:00.0", **changes: str
) -> dict[str, str]:
    """The sysfs files of one PCI device: an NVIDIA VGA controller unless ``changes`` say otherwise."""
    facts = {"vendor": "0x10de", "class": "0x030000", "device": f"0x{device}", **changes}
    place = f"sys/bus/pci/devices/{address}"
    link = {f"{place}/driver@": f"../../../../bus/pci/drivers/{driver}"} if driver else {}
    return {**{f"{place}/{name}": f"{value}\n" for name, value in facts.items()}, **link}


def loaded_module(version: str = "580.65.06") -> dict[str, str]:
    """The files of a loaded kernel module, without device nodes."""
    return {"sys/module/nvidia/version": f"{version}\n"}


def device_nodes(count: int = 1) -> dict[str, str]:
    """Plain files in place of the driver's device nodes."""
    return {"dev/nvidiactl": "", "dev/nvidia-uvm": "", **{f"dev/nvidia{index}": "" for index in range(count)}}


NO_PCI_GPU = pci_gpu("1000", vendor="0x1af4", address="0000:00:01.0")
"""A PCI bus with one network card and no GPU."""
