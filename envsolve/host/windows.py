"""Windows display adapters in the registry: the driver version if neither NVML nor nvidia-smi answers."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from typing import NamedTuple

from envsolve.host.gpus import grouped
from envsolve.host.pci import PciTable, gpu_of_device
from envsolve.host.probe import Source
from envsolve.model.host import Gpu, Reading
from envsolve.model.versions import DriverVersion

DISPLAY_CLASS_KEY = r"SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}"

_WDDM = re.compile(r"\d+\.\d+\.(\d+)\.(\d{1,4})\Z")
_DEVICE_ID = re.compile(r"VEN_10DE&DEV_([0-9A-F]{4})", re.IGNORECASE)


class DisplayAdapter(NamedTuple):
    """An adapter in the registry: its driver's name, version in Windows' form, and PCI id."""

    description: str
    driver_version: str
    matching_device: str


def nvidia_version(wddm: str) -> DriverVersion | None:
    """NVIDIA's version from Windows' form: the last five digits, so 31.0.15.8065 is 580.65."""
    match = _WDDM.match(wddm.strip())
    if match is None:
        return None
    digits = match[1] + match[2].zfill(4)
    try:
        return DriverVersion.parse(f"{digits[-5:-2]}.{digits[-2:]}")
    except ValueError:
        return None


if sys.platform == "win32":
    import winreg

    def read_adapters() -> Iterable[DisplayAdapter]:
        """The display adapters in this machine's registry."""
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, DISPLAY_CLASS_KEY) as display_class:
            names = [winreg.EnumKey(display_class, index) for index in range(winreg.QueryInfoKey(display_class)[0])]
        return tuple(_adapter(name) for name in names if name.isdigit())

    def _adapter(name: str) -> DisplayAdapter:
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, rf"{DISPLAY_CLASS_KEY}\{name}") as key:
            return DisplayAdapter(
                _value(key, "DriverDesc"), _value(key, "DriverVersion"), _value(key, "MatchingDeviceId")
            )

    def _value(key: winreg.HKEYType, name: str) -> str:
        try:
            return str(winreg.QueryValueEx(key, name)[0])
        except OSError:
            return ""

else:

    def read_adapters() -> Iterable[DisplayAdapter]:
        """No display adapters: there is no registry here."""
        return ()


class RegistryProbe(NamedTuple):
    """The NVIDIA adapters in the registry. Removed adapters remain there, so it is the last choice for GPUs."""

    table: PciTable | None = None
    adapters: Callable[[], Iterable[DisplayAdapter]] = read_adapters
    name: str = Source.REGISTRY

    def read(self) -> Reading | None:
        """Return the first NVIDIA adapter's driver and all NVIDIA adapters as GPUs; None if there is none."""
        nvidia = [adapter for adapter in self.adapters() if _DEVICE_ID.search(adapter.matching_device)]
        if not nvidia:
            return None
        versions = [nvidia_version(adapter.driver_version) for adapter in nvidia]
        driver = next((version for version in versions if version is not None), None)
        return Reading(self.name, driver=driver, gpus=grouped(self._gpu(adapter) for adapter in nvidia))

    def _gpu(self, adapter: DisplayAdapter) -> Gpu:
        match = _DEVICE_ID.search(adapter.matching_device)
        gpu = gpu_of_device(match[1].lower() if match else "", self.table)
        return Gpu(adapter.description or gpu.name, gpu.compute_capability)
