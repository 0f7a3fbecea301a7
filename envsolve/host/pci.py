"""GPUs on the PCI bus: the only source that needs no driver, and that says which driver is bound to them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.reading import is_directory, link_name, names_of, short_text
from envsolve.host.gpus import grouped
from envsolve.host.probe import Source
from envsolve.host.trouble import Trouble
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Gpu, Reading, SourceFailure

PciTable = Callable[[str], "tuple[str, ComputeCapability] | None"]
"""Maps four lower-case hex digits of a device id to product name and compute capability; the caller passes the table.
"""

NVIDIA_VENDOR = "0x10de"
DISPLAY_CLASS = "0x03"
"""VGA (0x0300) and 3D (0x0302) controllers; the card's audio and USB functions have other classes."""


class PciDevice(NamedTuple):
    """One NVIDIA GPU on the bus and the kernel driver bound to it; None for no driver."""

    address: str
    device: str
    bound_to: str | None


class PciProbe(NamedTuple):
    """``/sys/bus/pci/devices``.

    A readable bus without a GPU is a reading (``gpus`` empty); without a bus there is none.
    """

    root: Path
    table: PciTable | None = None
    name: str = Source.PCI

    def read(self) -> Reading | None:
        """Return the NVIDIA GPUs on the bus, with a problem if one is not bound to NVIDIA's driver."""
        devices = gpus_on_bus(self.root)
        if devices is None:
            return None
        gpus = grouped(gpu_of_device(device.device, self.table) for device in devices)
        return Reading(self.name, gpus=gpus, problem=_binding_problem(devices))


def gpu_of_device(device: str, table: PciTable | None) -> Gpu:
    """The GPU with this PCI device id; if no table knows it, its name is the id and it has no capability."""
    known = table(device) if table is not None else None
    return Gpu(*known) if known is not None else Gpu(f"NVIDIA device 10de:{device}", None)


def gpus_on_bus(root: Path) -> tuple[PciDevice, ...] | None:
    """NVIDIA's display controllers; None if there is no bus, as on Windows, WSL and in some containers."""
    directory = root / "sys/bus/pci/devices"
    return tuple(_nvidia_gpus(directory)) if is_directory(directory) else None


def _nvidia_gpus(directory: Path) -> Iterator[PciDevice]:
    for address in names_of(directory):
        place = directory / address
        kind = short_text(place / "class") or ""
        if short_text(place / "vendor") == NVIDIA_VENDOR and kind.startswith(DISPLAY_CLASS):
            device = (short_text(place / "device") or "").removeprefix("0x").lower()
            yield PciDevice(address, device, link_name(place / "driver"))


def _binding_problem(devices: Iterable[PciDevice]) -> SourceFailure | None:
    strays = [device for device in devices if device.bound_to != "nvidia"]
    if not strays:
        return None
    bound = any(device.bound_to is not None for device in strays)
    bindings = ", ".join(f"{device.address} ({_binding(device.bound_to)})" for device in strays)
    code = Trouble.BOUND_ELSEWHERE if bound else Trouble.NOT_BOUND
    return SourceFailure(code, f"not driven by the NVIDIA driver: {bindings}")


def _binding(driver: str | None) -> str:
    if driver is None:
        return "no driver"
    return f"bound to {driver}, for a virtual machine" if driver == "vfio-pci" else f"bound to {driver}"
