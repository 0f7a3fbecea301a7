"""Whether there is a driver for the GPUs of a machine: installed, loaded, and not kept away by another one."""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.diagnose.machine.seen import addresses, gpu_names, gpus_seen, misplaced_libraries
from envsolve.diagnose.machine.survey import Survey
from envsolve.host.gpus import total
from envsolve.host.loader import CUDA_LIBRARY
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
    where = ""
    if survey.container is not None:
        where = f" This is a container ({survey.container.mark}): its host may have GPUs that it was not given."
    elif survey.is_wsl:
        where = " In WSL, GPUs appear when Windows has NVIDIA's driver and the distribution runs as WSL 2."
    yield Finding(
        "no-gpu",
        "There is no NVIDIA GPU",
        Severity.INFO,
        f"No source shows an NVIDIA GPU on this machine.{where}",
        "Nothing has to be done for computing on the CPU; ask for it with --gpu none.",
        evidence=tuple(survey.host.notes),
    )


def check_other_drivers(survey: Survey) -> Iterator[Finding]:
    """GPUs that another kernel driver holds."""
    if not survey.has_own_driver:
        return
    free = [device for device in survey.bus if device.bound_to in _FREE_DRIVERS]
    if free:
        yield _held_by_free_driver(survey, free)
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
        yield _not_installed(survey)
    elif _module_is_built(survey) is False:
        yield _module_not_built(survey)
    else:
        yield _module_not_loaded(survey)
        yield from _secure_boot(survey)


def check_undriven(survey: Survey) -> Iterator[Finding]:
    """GPUs that the loaded driver does not take, or does not list."""
    if not survey.has_own_driver or not survey.module_is_loaded:
        return
    held = [device for device in survey.bus if device.bound_to == "nvidia"]
    loose = [device for device in survey.bus if device.bound_to is None]
    if loose:
        yield _undriven(loose, nothing_left=not held)
    listed = [total(it.gpus) for it in survey.live_readings if it.gpus]
    if listed and max(listed) < len(held):
        yield _unlisted(survey, held, max(listed))


def _held_by_free_driver(survey: Survey, devices: list[PciDevice]) -> Finding:
    driver = str(devices[0].bound_to)
    return Finding(
        "nouveau-has-gpu",
        f"The GPU is held by {driver}, not by NVIDIA's driver",
        Severity.ERROR,
        f"{addresses(devices)} is bound to the kernel's own driver {driver}, which cannot run CUDA and keeps NVIDIA's "
        "driver from the GPU.",
        f"{survey.installation.text} Where NVIDIA's driver is installed already, forbid {driver} to load, make the "
        "initial RAM disk anew (update-initramfs -u, dracut --force or mkinitcpio -P), and restart.",
        (
            *survey.installation.commands,
            f"echo 'blacklist {driver}' | sudo tee /etc/modprobe.d/blacklist-{driver}.conf",
        ),
        tuple(f"/sys/bus/pci/devices/{it.address}/driver: {it.bound_to}" for it in devices),
    )


def _reserved(survey: Survey, devices: list[PciDevice]) -> Finding:
    driver = devices[0].bound_to
    alone = len(devices) == len(survey.bus) and not survey.working_gpus
    return Finding(
        "gpu-reserved-for-virtual-machine",
        "A GPU is set aside for a virtual machine",
        Severity.ERROR if alone else Severity.INFO,
        f"{addresses(devices)} is bound to {driver}, which hands it to a virtual machine: this system cannot use it.",
        f"Take it out of the configuration of {driver} (kernel options, /etc/modprobe.d) and restart, or use it inside "
        "the virtual machine.",
        ("grep -r vfio /etc/modprobe.d /proc/cmdline",),
        tuple(f"/sys/bus/pci/devices/{it.address}/driver: {it.bound_to}" for it in devices),
    )


def _not_installed(survey: Survey) -> Finding:
    return Finding(
        "no-driver",
        "No NVIDIA driver is installed",
        Severity.ERROR,
        f"{gpu_names(survey)} is on the PCI bus, no NVIDIA kernel module is loaded, and the loader finds no "
        f"{CUDA_LIBRARY}: there is no driver. It belongs to the system; conda and pip cannot install it.",
        survey.installation.text,
        survey.installation.commands,
        (*gpus_seen(survey), "/sys/module/nvidia is not there"),
    )


def _module_not_built(survey: Survey) -> Finding:
    kernel = _kernel(survey)
    debian = survey.distribution is not None and survey.distribution.is_a("debian", "ubuntu")
    return Finding(
        "kernel-module-missing",
        "The driver has no module for the running kernel",
        Severity.ERROR,
        f"The driver's libraries are installed ({_library(survey)}), and no nvidia.ko was built for the running kernel "
        f"{kernel}: a newer kernel came without its headers, or building the module failed.",
        "Install the headers of the running kernel and have the module built (DKMS or akmods does that), or install "
        "the same driver again; then load the module or restart.",
        (f"sudo apt install linux-headers-{kernel}", "sudo dkms autoinstall", "sudo modprobe nvidia") if debian else (),
        (*gpus_seen(survey), f"/lib/modules/{kernel}/modules.dep names no nvidia.ko"),
    )


def _module_not_loaded(survey: Survey) -> Finding:
    return Finding(
        "kernel-module-not-loaded",
        "The NVIDIA kernel module is not loaded",
        Severity.ERROR,
        f"The driver's libraries are installed ({_library(survey)}), and its kernel module is not loaded: it was not "
        "loaded since the installation, or the kernel refused it.",
        "Load it; the kernel's log says why where it refuses.",
        ("sudo modprobe nvidia", "sudo dmesg | grep -iE 'nvidia|NVRM'"),
        (*gpus_seen(survey), "/sys/module/nvidia is not there"),
    )


def _secure_boot(survey: Survey) -> Iterator[Finding]:
    value = survey.files.data(_SECURE_BOOT)
    if value is not None and value[4:5] == b"\x01":
        yield Finding(
            "kernel-module-refused",
            "Secure Boot may keep the NVIDIA module from loading",
            Severity.WARNING,
            "Secure Boot is on, and then the kernel loads only modules that are signed with a key it knows. Whether "
            "that is why the NVIDIA module is not loaded cannot be seen from here.",
            "Where the kernel's log says `Key was rejected by service`: enrol the key that signs the module "
            "(mokutil --import, then restart), or install a driver whose module the distribution signs.",
            ("mokutil --sb-state", "sudo dmesg | grep -iE 'rejected|lockdown'"),
            (f"{_SECURE_BOOT}: 1",),
        )


def _undriven(devices: list[PciDevice], *, nothing_left: bool) -> Finding:
    return Finding(
        "gpu-not-driven",
        "The driver does not take a GPU that is there",
        Severity.ERROR if nothing_left else Severity.WARNING,
        f"{addresses(devices)} on the PCI bus has no kernel driver, though NVIDIA's module is loaded: the driver does "
        "not support the GPU, could not start it, or lost it.",
        "Look for NVRM and Xid lines in the kernel's log. A GPU that fell off the bus comes back with a restart; if it "
        "happens again, look at its power supply and its slot.",
        ("sudo dmesg | grep -E 'NVRM|Xid'",),
        tuple(f"PCI {it.address}: 10de:{it.device}, no driver" for it in devices),
    )


def _unlisted(survey: Survey, devices: list[PciDevice], listed: int) -> Finding:
    job = next((name for name in _JOBS if survey.environ.get(name)), None)
    share = f" This is a job of a batch system ({job}), which gives it a share of them." if job is not None else ""
    return Finding(
        "gpus-not-listed",
        "The driver lists fewer GPUs than there are",
        Severity.WARNING if job is None else Severity.INFO,
        f"The PCI bus holds {len(devices)} GPUs that NVIDIA's driver took, and the driver lists {listed} to this "
        f"process: it may use no more of them, or a GPU failed.{share}",
        "Where all should be there, look for NVRM and Xid lines in the kernel's log.",
        ("nvidia-smi -L", "sudo dmesg | grep -E 'NVRM|Xid'"),
        tuple(f"PCI {it.address}: 10de:{it.device}" for it in devices),
    )


def _library(survey: Survey) -> str:
    return str(survey.libcuda or ", ".join(misplaced_libraries(survey)))


def _module_is_built(survey: Survey) -> bool | None:
    """Whether the running kernel has a module of the driver; None where that cannot be told."""
    text = survey.files.text(f"/lib/modules/{_kernel(survey)}/modules.dep")
    return None if not text else any("/nvidia.ko" in line.partition(":")[0] for line in text.splitlines())


def _kernel(survey: Survey) -> str:
    return survey.files.text("/proc/sys/kernel/osrelease") or "unknown"
