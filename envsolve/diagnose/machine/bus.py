"""The GPUs on the PCI bus one by one, each with the kernel driver that holds it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from envsolve.diagnose.machine.files import MachineFiles
from envsolve.host.pci import DISPLAY_CLASS, NVIDIA_VENDOR, PciDevice

_DEVICES = "/sys/bus/pci/devices"


def gpus_on_bus(files: MachineFiles) -> tuple[PciDevice, ...]:
    """NVIDIA's display controllers; none where the bus cannot be read, as on Windows, WSL and in some containers."""
    return tuple(_gpus(files))


def _gpus(files: MachineFiles) -> Iterator[PciDevice]:
    for address in files.names(_DEVICES):
        place = f"{_DEVICES}/{address}"
        if files.text(f"{place}/vendor") != NVIDIA_VENDOR:
            continue
        if not (files.text(f"{place}/class") or "").startswith(DISPLAY_CLASS):
            continue
        device = (files.text(f"{place}/device") or "").removeprefix("0x").lower()
        bound = files.link(f"{place}/driver")
        yield PciDevice(address, device, None if bound is None else posixpath.basename(bound))
