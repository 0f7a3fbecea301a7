"""What this machine is: its NVIDIA driver, its GPUs, its platform and C library, each with where it was learned.

Every source is a :class:`~envsolve.host.probe.Probe`; ``choose`` decides between them. Importing this package is cheap:
ctypes, subprocess, json and pynvml are loaded by the functions that need them.
"""

from __future__ import annotations

from envsolve.host.detection import detect
from envsolve.host.host_file import host_as_json, read_host_file
from envsolve.host.pci import PciTable

__all__ = ["PciTable", "detect", "host_as_json", "read_host_file"]
