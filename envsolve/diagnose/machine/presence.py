"""Whether there is a driver for the GPUs: installed, loaded, not blocked by another, and passed into a container.

Whether this user can open the driver's device files, through which every program accesses a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from envsolve.binary.unreadable import Damage
from envsolve.diagnose.machine.survey import Survey
from envsolve.host.evidence import Surroundings as Variables
from envsolve.host.gpus import total
from envsolve.host.pci import PciDevice
from envsolve.host.probe import Source
from envsolve.model.finding import Finding, Severity

_FREE_DRIVERS = ("nouveau", "nova_core", "nova-core", "nvidiafb")
"""Drivers of the kernel itself for NVIDIA GPUs, none of which can run CUDA."""
_FOR_MACHINES = ("vfio-pci", "pci-stub", "pciback", "xen-pciback")
_JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "FLUX_JOB_ID")
"""Variables of batch systems, which give a job some of the machine's GPUs."""
_SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
"""The variable of the UEFI specification: four bytes of attributes, then 1 if Secure Boot is on."""
DEVICES, CAPABILITIES = "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"
_GPU = re.compile(r"nvidia\d+\Z")
_CONTROL, _MEMORY = "/dev/nvidiactl", "/dev/nvidia-uvm"
_JETSON = ("/dev/nvhost-ctrl-gpu", "/dev/nvmap", "/dev/nvgpu/igpu0/ctrl")
"""The device files of its GPU; which of them exist depends on the release."""
_WSL = "/dev/dxg"
_NO_MEMORY_FILE = (3, 100, 304, 999)
"""Errors of cuInit if /dev/nvidia-uvm cannot be used."""


def check_hardware(survey: Survey) -> Iterator[Finding]:
    """Report a machine without any sign of an NVIDIA GPU."""
    if survey.has_gpu or not survey.platform.has_cuda:
        return
    mark = None if survey.container is None else survey.container.mark
    yield survey.finding("no-gpu", survey.host.notes, mark=mark)


def check_other_drivers(survey: Survey) -> Iterator[Finding]:
    """GPUs that are bound to another kernel driver."""
    if not survey.has_own_driver:
        return
    free = [device for device in survey.bus if device.bound_to in _FREE_DRIVERS]
    if free:
        known = {"gpus": _addresses(free), "free_driver": free[0].bound_to}
        yield survey.finding("nouveau-has-gpu", _bound(free), **known)
    reserved = [device for device in survey.bus if device.bound_to in _FOR_MACHINES]
    if reserved:
        alone = len(reserved) == len(survey.bus) and not survey.working_gpus
        severity = Severity.ERROR if alone else None
        known = {"gpus": _addresses(reserved), "free_driver": reserved[0].bound_to}
        yield survey.finding("gpu-reserved-for-virtual-machine", _bound(reserved), severity=severity, **known)


def check_installed(survey: Survey) -> Iterator[Finding]:
    """A missing driver, or one that is installed and not loaded."""
    if not survey.has_own_driver or survey.module_is_loaded or survey.working_gpus or not survey.has_gpu:
        return
    if survey.bus and all(device.bound_to is not None for device in survey.bus):
        return
    evidence = (*survey.gpus_seen, "/sys/module/nvidia is not there")
    kernel = survey.files.text("/proc/sys/kernel/osrelease") or "unknown"
    path = str(survey.libcuda or ", ".join(survey.misplaced_libraries))
    if survey.libcuda is None and not survey.misplaced_libraries:
        yield survey.finding("no-driver", evidence, gpus=", ".join(it.label for it in survey.gpus))
    elif _module_is_built(survey, kernel) is False:
        debian = survey.distribution is not None and survey.distribution.is_a("debian", "ubuntu")
        evidence = (*survey.gpus_seen, f"/lib/modules/{kernel}/modules.dep names no nvidia.ko")
        yield survey.finding("kernel-module-missing", evidence, path=path, kernel_release=kernel, debian=debian)
    else:
        yield survey.finding("module-not-loaded", evidence, path=path)
        secure_boot = survey.files.data(_SECURE_BOOT)
        if secure_boot is not None and secure_boot[4:5] == b"\x01":
            yield survey.finding("kernel-module-refused", (f"{_SECURE_BOOT}: 1",))


def check_undriven(survey: Survey) -> Iterator[Finding]:
    """GPUs that the loaded driver does not support, or does not list."""
    if not survey.has_own_driver or not survey.module_is_loaded:
        return
    driven = [device for device in survey.bus if device.bound_to == "nvidia"]
    loose = [device for device in survey.bus if device.bound_to is None]
    if loose:
        evidence = (f"PCI {it.address}: 10de:{it.device}, no driver" for it in loose)
        severity = None if driven else Severity.ERROR
        yield survey.finding("gpu-not-driven", evidence, severity=severity, gpus=_addresses(loose))
    listed = max((total(it.gpus) for it in survey.live_readings if it.gpus), default=len(driven))
    if listed < len(driven):
        job = next((name for name in _JOBS if survey.environ.get(name)), None)
        evidence = (f"PCI {it.address}: 10de:{it.device}" for it in driven)
        severity = None if job is None else Severity.INFO
        known = {"on_bus": len(driven), "listed": str(listed), "job": job}
        yield survey.finding("gpus-not-listed", evidence, severity=severity, **known)


def _bound(devices: list[PciDevice]) -> Iterator[str]:
    """Evidence that GPUs are bound to another kernel driver."""
    return (f"/sys/bus/pci/devices/{it.address}/driver: {it.bound_to}" for it in devices)


def _addresses(devices: list[PciDevice]) -> str:
    """GPUs by their address on the bus, for the beginning of a sentence, which continues in the singular."""
    if len(devices) == 1:
        return f"The GPU at {devices[0].address}"
    return f"Each of the GPUs at {', '.join(it.address for it in devices)}"


def _module_is_built(survey: Survey, kernel: str) -> bool | None:
    """Whether a module of the driver exists for the running kernel; None if unknown."""
    text = survey.files.text(f"/lib/modules/{kernel}/modules.dep")
    return None if not text else any("/nvidia.ko" in line.partition(":")[0] for line in text.splitlines())


def check_container(survey: Survey) -> Iterator[Finding]:
    """A container without the driver's library, on a machine that has a driver or a GPU."""
    container = survey.container
    if container is None or survey.is_wsl or survey.libcuda_works or not _lacks_library(survey):
        return
    if survey.misplaced_libraries or not (survey.module_is_loaded or survey.bus):
        return
    capabilities = survey.environ.get(CAPABILITIES)
    without_compute = Variables(driver_capabilities=capabilities).container_without_compute
    variable = CAPABILITIES if without_compute else DEVICES
    value = survey.environ.get(variable)
    module = f"kernel module {survey.module_version or 'of no known version'}" if survey.module_is_loaded else None
    evidence = (
        *([] if value is None else [f"{variable}={value}"]),
        f"{container.mark} ({container.kind})",
        *([] if module is None else [module]),
        *([] if survey.libcuda is None else [f"{survey.libcuda} is empty"]),
        *survey.gpus_seen,
    )
    identifier = "container-without-compute" if without_compute else "container-without-gpu"
    nodes = tuple(_nodes(survey))
    known = {"value": value, "kind": container.kind, "files": nodes, "module_version": module}
    yield survey.finding(identifier, (*evidence, *nodes), **known)


def _lacks_library(survey: Survey) -> bool:
    """Whether there is no CUDA library, or only the empty file that a runtime left in the image."""
    found = survey.libcuda
    return found is None or (found.damage is not None and found.damage.damage is Damage.EMPTY)


def check_device_files(survey: Survey) -> Iterator[Finding]:
    """Device files that are missing or not accessible to this user. There are none if libcuda lists GPUs."""
    if not survey.is_linux or survey.libcuda_works:
        return
    if survey.l4t is not None:
        yield from _closed(survey, [path for path in _JETSON if survey.files.exists(path)])
    elif survey.is_wsl:
        if survey.has_gpu:
            yield from _missing(survey, [] if survey.files.exists(_WSL) else [_WSL])
        yield from _closed(survey, [_WSL] if survey.files.exists(_WSL) else [])
    elif survey.module_is_loaded:
        yield from _of_driver(survey)


def _of_driver(survey: Survey) -> Iterator[Finding]:
    nodes = _nodes(survey)
    present = [path for path in (_CONTROL, _MEMORY) if survey.files.exists(path)]
    missing = [] if _CONTROL in present else [_CONTROL]
    missing += [] if nodes else ["/dev/nvidia0"]
    if missing and (survey.container is None or survey.libcuda is not None):
        yield from _missing(survey, missing)
    elif _MEMORY not in present and survey.libcuda is not None:
        yield _without_memory_file(survey)
    yield from _closed(survey, [*present, *nodes])


def _nodes(survey: Survey) -> list[str]:
    """The device files of GPUs."""
    return [f"/dev/{name}" for name in survey.files.names("/dev") if _GPU.match(name)]


def _missing(survey: Survey, missing: list[str]) -> Iterator[Finding]:
    if missing:
        evidence = [f"{path} is not there" for path in missing]
        yield survey.finding("device-nodes-missing", evidence, places=tuple(missing))


def _without_memory_file(survey: Survey) -> Finding:
    """The finding for a missing /dev/nvidia-uvm.

    On a host libcuda creates it at its first use, through nvidia-modprobe; in a container it cannot.
    """
    reading = survey.reading(Source.LIBCUDA)
    number = reading.problem.number if reading is not None and reading.problem is not None else None
    failed = number in _NO_MEMORY_FILE
    severity = Severity.ERROR if failed else None
    evidence = (f"{_MEMORY} is not there",)
    return survey.finding("memory-device-missing", evidence, severity=severity, fails=failed)


def _closed(survey: Survey, paths: list[str]) -> Iterator[Finding]:
    closed = [path for path in paths if not survey.may_open(survey.files.file(path))]
    if closed:
        evidence = [f"{path} may not be opened for reading and writing" for path in closed]
        yield survey.finding("device-nodes-denied", evidence, places=tuple(closed), files_typed=" ".join(closed))
