"""Whether there is a driver for the GPUs of a machine: installed, loaded, and not kept away by another one."""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.diagnose.machine.seen import addresses, gpu_names, gpus_seen, misplaced_libraries
from envsolve.diagnose.machine.survey import Survey
from envsolve.host.gpus import total
from envsolve.host.pci import PciDevice
from envsolve.model.finding import Finding, Severity

_FREE_DRIVERS = ("nouveau", "nova_core", "nova-core", "nvidiafb")
"""Drivers of the kernel itself for NVIDIA GPUs, none of which can run CUDA."""
_FOR_MACHINES = ("vfio-pci", "pci-stub", "pciback", "xen-pciback")
_JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "FLUX_JOB_ID")
"""Variables of batch systems, which give a job some of a machine's GPUs."""
_SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
"""The variable of the UEFI specification: four bytes of attributes, then 1 where Secure Boot is on."""


def check_hardware(survey: Survey) -> Iterator[Finding]:
    """Say that there is no NVIDIA GPU, where nothing shows one."""
    if survey.has_gpu or not survey.platform.has_cuda:
        return
    mark = None if survey.container is None else survey.container.mark
    yield survey.finding("no-gpu", survey.host.notes, mark=mark)


def check_other_drivers(survey: Survey) -> Iterator[Finding]:
    """GPUs that another kernel driver holds."""
    if not survey.has_own_driver:
        return
    free = [device for device in survey.bus if device.bound_to in _FREE_DRIVERS]
    if free:
        yield _bound_to_nouveau(survey, free)
    reserved = [device for device in survey.bus if device.bound_to in _FOR_MACHINES]
    if reserved:
        yield _reserved(survey, reserved)


def check_installed(survey: Survey) -> Iterator[Finding]:
    """No driver at all, or one that is installed and not loaded."""
    if not survey.has_own_driver or survey.module_is_loaded or survey.working_gpus or not survey.has_gpu:
        return
    if survey.bus and all(device.bound_to is not None for device in survey.bus):
        return
    if survey.libcuda is None and not misplaced_libraries(survey):
        evidence = (*gpus_seen(survey), "/sys/module/nvidia is not there")
        yield _with_way(
            survey, survey.finding("no-driver", evidence, gpus=gpu_names(survey), way=survey.installation.text)
        )
    elif _module_is_built(survey) is False:
        yield _module_not_built(survey)
    else:
        yield _module_not_loaded(survey)
        yield from _secure_boot(survey)


def check_undriven(survey: Survey) -> Iterator[Finding]:
    """GPUs that the loaded driver does not take, or does not list."""
    if not survey.has_own_driver or not survey.module_is_loaded:
        return
    driven = [device for device in survey.bus if device.bound_to == "nvidia"]
    loose = [device for device in survey.bus if device.bound_to is None]
    if loose:
        yield _undriven(survey, loose, nothing_left=not driven)
    listed = [total(it.gpus) for it in survey.live_readings if it.gpus]
    if listed and max(listed) < len(driven):
        yield _unlisted(survey, driven, max(listed))


def _bound(devices: list[PciDevice]) -> tuple[dict[str, object], list[str]]:
    """Facts on GPUs that another kernel driver holds, and where that is seen."""
    facts: dict[str, object] = {"gpus": addresses(devices), "free_driver": devices[0].bound_to}
    return facts, [f"/sys/bus/pci/devices/{it.address}/driver: {it.bound_to}" for it in devices]


def _with_way(survey: Survey, finding: Finding) -> Finding:
    """The finding with the commands that install a driver here first."""
    return finding._replace(commands=(*survey.installation.commands, *finding.commands))


def _bound_to_nouveau(survey: Survey, devices: list[PciDevice]) -> Finding:
    facts, evidence = _bound(devices)
    return _with_way(survey, survey.finding("nouveau-has-gpu", evidence, **facts, way=survey.installation.text))


def _reserved(survey: Survey, devices: list[PciDevice]) -> Finding:
    alone = len(devices) == len(survey.bus) and not survey.working_gpus
    severity = Severity.ERROR if alone else None
    facts, evidence = _bound(devices)
    return survey.finding("gpu-reserved-for-virtual-machine", evidence, severity=severity, **facts)


def _module_not_built(survey: Survey) -> Finding:
    kernel = _kernel(survey)
    debian = survey.distribution is not None and survey.distribution.is_a("debian", "ubuntu")
    evidence = (*gpus_seen(survey), f"/lib/modules/{kernel}/modules.dep names no nvidia.ko")
    return survey.finding(
        "kernel-module-missing", evidence, path=_library(survey), kernel_release=kernel, debian=debian
    )


def _module_not_loaded(survey: Survey) -> Finding:
    evidence = (*gpus_seen(survey), "/sys/module/nvidia is not there")
    return survey.finding("module-not-loaded", evidence, path=_library(survey))


def _secure_boot(survey: Survey) -> Iterator[Finding]:
    value = survey.files.data(_SECURE_BOOT)
    if value is not None and value[4:5] == b"\x01":
        yield survey.finding("kernel-module-refused", (f"{_SECURE_BOOT}: 1",))


def _undriven(survey: Survey, devices: list[PciDevice], *, nothing_left: bool) -> Finding:
    evidence = [f"PCI {it.address}: 10de:{it.device}, no driver" for it in devices]
    severity = Severity.ERROR if nothing_left else None
    return survey.finding("gpu-not-driven", evidence, severity=severity, gpus=addresses(devices))


def _unlisted(survey: Survey, devices: list[PciDevice], listed: int) -> Finding:
    job = next((name for name in _JOBS if survey.environ.get(name)), None)
    evidence = [f"PCI {it.address}: 10de:{it.device}" for it in devices]
    severity = None if job is None else Severity.INFO
    return survey.finding(
        "gpus-not-listed", evidence, severity=severity, on_bus=len(devices), listed=str(listed), job=job
    )


def _library(survey: Survey) -> str:
    return str(survey.libcuda or ", ".join(misplaced_libraries(survey)))


def _module_is_built(survey: Survey) -> bool | None:
    """Whether the running kernel has a module of the driver; None where that cannot be known."""
    text = survey.files.text(f"/lib/modules/{_kernel(survey)}/modules.dep")
    return None if not text else any("/nvidia.ko" in line.partition(":")[0] for line in text.splitlines())


def _kernel(survey: Survey) -> str:
    return survey.files.text("/proc/sys/kernel/osrelease") or "unknown"
