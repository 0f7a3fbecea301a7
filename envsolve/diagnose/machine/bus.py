"""The GPUs on the PCI bus one by one, each with the kernel driver that is bound to it."""

from __future__ import annotations

import posixpath

from envsolve.diagnose.machine.files import MachineFiles
from envsolve.host.pci import DEVICES, PciDevice, nvidia_gpus

_PLACE = f"/{DEVICES}"


def gpus_on_bus(files: MachineFiles) -> tuple[PciDevice, ...]:
    """NVIDIA's display controllers; none if the bus cannot be read, as on Windows, WSL and in some containers."""

    def link(path: str) -> str | None:
        target = files.link(f"{_PLACE}/{path}")
        return None if target is None else posixpath.basename(target)

    return tuple(nvidia_gpus(files.names(_PLACE), lambda path: files.text(f"{_PLACE}/{path}"), link))
