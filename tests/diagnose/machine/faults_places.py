"""Faults of containers, WSL, Jetsons and C libraries, each with the findings that it gives."""

from __future__ import annotations

from envsolve.model.capability import ComputeCapability
from envsolve.model.finding import Severity
from envsolve.model.host import Gpu, GpuStatus
from envsolve.model.versions import DriverVersion, LibcVersion
from tests.diagnose.machine.recorded import (
    CACHED,
    DEVICE_FILES,
    MULTIARCH,
    NO_DRIVER,
    RTX_4090,
    Case,
    driver_libraries,
    gpu_on_bus,
    library,
    module,
    removed,
)

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
NO_MODULE = {**removed(module()), "sys/module/nvidia": None, **removed(DEVICE_FILES)}
NO_LIBRARIES = removed(driver_libraries())
CONTAINER = {".dockerenv": "", **NO_LIBRARIES, **removed(DEVICE_FILES)}
WSL = {
    **NO_DRIVER,
    **removed(gpu_on_bus()),
    "sys/bus/pci/devices/": None,
    "dev/dxg": "",
    "proc/sys/kernel/osrelease": "5.15.153.1-microsoft-standard-WSL2",
    "usr/lib/wsl/lib/libcuda.so.1": library("libcuda.so.1"),
    "usr/lib/wsl/lib/libnvidia-ml.so.1": library("libnvidia-ml.so.1"),
}
WSL_CACHED = (
    ("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"),
    ("libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1"),
)
WSL_HOST = {"gpus": (RTX_4090,), "status": GpuStatus.READY, "driver": DriverVersion.parse("566.36"), "wsl": True}
JETSON = {
    "etc/nv_tegra_release": "# R36 (release), REVISION: 4.3, GCID: 1, BOARD: generic, EABI: aarch64\n",
    "proc/device-tree/model": "NVIDIA Jetson Orin Nano Developer Kit\0",
    **NO_MODULE,
    "sys/bus/pci/devices/": None,
    "dev/nvmap": "",
}
ORIN = Gpu("Orin", ComputeCapability(8, 7))

PLACE_FAULTS: dict[str, tuple[Case, dict[str, Severity]]] = {
    "a container without GPUs": (Case(CONTAINER, cached=()), {"container-without-gpu": ERROR}),
    "a container that asked for none": (
        Case(CONTAINER, cached=(), environ={"NVIDIA_VISIBLE_DEVICES": "void"}),
        {"container-without-gpu": ERROR},
    ),
    "a container with the wrong capabilities": (
        Case({**CONTAINER, **DEVICE_FILES}, cached=(), environ={"NVIDIA_DRIVER_CAPABILITIES": "utility"}),
        {"container-without-compute": ERROR},
    ),
    "a pod without GPUs": (
        Case({**NO_LIBRARIES, **removed(DEVICE_FILES)}, cached=(), environ={"KUBERNETES_SERVICE_HOST": "10.0.0.1"}),
        {"container-without-gpu": ERROR},
    ),
    "a container with its GPUs": (Case({".dockerenv": ""}, environ={"NVIDIA_VISIBLE_DEVICES": "void"}), {}),
    "a container with libraries and no device files": (
        Case({".dockerenv": "", **removed(DEVICE_FILES)}),
        {"device-nodes-missing": ERROR},
    ),
    "a container of an image that was made with GPUs": (
        Case({**CONTAINER, f"{MULTIARCH}/libcuda.so.1": "", f"{MULTIARCH}/libnvidia-encode.so.1": ""}, cached=()),
        {"container-without-gpu": ERROR},
    ),
    "a container without the file for unified memory": (
        Case({".dockerenv": "", "dev/nvidia-uvm": None}),
        {"container-without-uvm": WARNING},
    ),
    "a container on a machine without GPUs": (
        Case({".dockerenv": "", **NO_DRIVER, "sys/bus/pci/devices/0000:01:00.0": None}, cached=()),
        {"no-gpu": INFO},
    ),
    "WSL in good order": (Case(WSL, cached=WSL_CACHED, changes=WSL_HOST), {}),
    "a Linux driver in WSL": (
        Case({**WSL, **driver_libraries()}, cached=tuple(CACHED.items()), changes=WSL_HOST),
        {"linux-driver-in-wsl": ERROR},
    ),
    "packages of a Linux driver in WSL, and Windows' library in front": (
        Case(
            {
                **WSL,
                "var/lib/dpkg/status": "Package: libnvidia-compute-580\nStatus: install ok installed\nPriority: x\n",
            },
            cached=WSL_CACHED,
            changes=WSL_HOST,
        ),
        {"linux-driver-in-wsl": WARNING},
    ),
    "a toolkit's packages in WSL": (
        Case(
            {**WSL, "var/lib/dpkg/status": "Package: cuda-toolkit-12-4\nStatus: install ok installed\nPriority: x\n"},
            cached=WSL_CACHED,
            changes=WSL_HOST,
        ),
        {},
    ),
    "the loader does not know WSL's directory": (
        Case(WSL, cached=(), changes=WSL_HOST),
        {"wsl-driver-not-reached": ERROR},
    ),
    "WSL without its device": (
        Case({**WSL, "dev/dxg": None}, cached=WSL_CACHED, changes=WSL_HOST),
        {"device-nodes-missing": ERROR},
    ),
    "WSL 1": (
        Case(
            {**NO_DRIVER, "sys/bus/pci/devices/": None, "proc/sys/kernel/osrelease": "4.4.0-19041-Microsoft"}, cached=()
        ),
        {"wsl-1": ERROR},
    ),
    "a Jetson": (
        Case(JETSON, changes={"gpus": (ORIN,), "status": GpuStatus.READY, "driver": None}),
        {"jetson": INFO},
    ),
    "a Jetson whose user may not use the GPU": (
        Case(
            JETSON,
            changes={"gpus": (ORIN,), "status": GpuStatus.NO_ACCESS, "driver": None},
            is_closed=lambda path: path.name == "nvmap",
        ),
        {"jetson": INFO, "device-nodes-denied": ERROR},
    ),
    "musl": (
        Case({"lib/ld-musl-x86_64.so.1": library("musl"), f"{MULTIARCH}/libc.so.6": None}, glibc=None),
        {"musl": ERROR},
    ),
    "musl without a GPU": (
        Case(
            {
                **NO_DRIVER,
                "sys/bus/pci/devices/0000:01:00.0": None,
                "lib/ld-musl-x86_64.so.1": library("musl"),
                f"{MULTIARCH}/libc.so.6": None,
            },
            cached=(),
            glibc=None,
        ),
        {"musl": WARNING, "no-gpu": INFO},
    ),
    "musl beside glibc": (Case({"lib/ld-musl-x86_64.so.1": library("musl")}), {}),
    "an old glibc": (Case(glibc=LibcVersion(2, 27)), {"glibc-old": INFO}),
}
