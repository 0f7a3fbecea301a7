"""The registry of Windows, simulated by values; winreg itself exists on Windows only."""

from __future__ import annotations

import pytest

from envsolve.host.windows import DisplayAdapter, RegistryProbe, nvidia_version
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Gpu
from tests.host.tree import PCI_TABLE

INTEL = DisplayAdapter("Intel(R) UHD Graphics", "31.0.101.4502", r"PCI\VEN_8086&DEV_9BC5")
GTX = DisplayAdapter("NVIDIA GeForce GTX 1080 Ti", "31.0.15.8065", r"PCI\VEN_10DE&DEV_1B06&SUBSYS_376A1458")

VERSIONS = {
    "31.0.15.8065": "580.65",
    "32.0.15.6636": "566.36",
    "30.0.14.7168": "471.68",
    "9.18.13.4788": "347.88",
    "31.0.15.65": "500.65",
    "10.0.19041": None,
    "": None,
}


@pytest.mark.parametrize("text", VERSIONS)
def test_nvidias_number_is_the_last_five_digits(text: str) -> None:
    version = nvidia_version(text)
    assert version is None if VERSIONS[text] is None else str(version) == VERSIONS[text]


def test_the_nvidia_adapter_is_found_beside_another() -> None:
    reading = RegistryProbe(PCI_TABLE.get, lambda: (INTEL, GTX)).read()
    assert reading is not None
    assert str(reading.driver) == "580.65"
    assert reading.gpus == (Gpu("NVIDIA GeForce GTX 1080 Ti", ComputeCapability(6, 1)),)


def test_without_an_nvidia_adapter_the_registry_says_nothing() -> None:
    assert RegistryProbe(adapters=lambda: (INTEL,)).read() is None
    assert RegistryProbe().read() is None
