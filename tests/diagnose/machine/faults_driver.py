"""Faults of the driver and of its files, each with the findings that it gives."""

from __future__ import annotations

from envsolve.host.probe import Source
from envsolve.host.trouble import Trouble
from envsolve.model.capability import ComputeCapability
from envsolve.model.finding import Severity
from envsolve.model.host import Gpu, GpuStatus, Reading
from envsolve.model.versions import DriverVersion
from tests.diagnose.machine.recorded import (
    DEVICE_FILES,
    DRIVER,
    KERNEL,
    MULTIARCH,
    NO_DRIVER,
    RTX_4090,
    SECURE_BOOT,
    TOOLKIT,
    WORKING,
    Case,
    driver_libraries,
    failed_reading,
    gpu_on_bus,
    library,
    module,
    removed,
)

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
NO_MODULE = {**removed(module()), "sys/module/nvidia": None, **removed(DEVICE_FILES)}
UNBOUND = {**gpu_on_bus(driver=None), "sys/bus/pci/devices/0000:01:00.0/driver@": None}
NO_LIBRARIES = removed(driver_libraries())
COMPAT = driver_libraries("590.48.01", "usr/local/cuda-13.1/compat")
COMPAT_PATH = {"LD_LIBRARY_PATH": "/usr/local/cuda-13.1/compat"}
V100 = Gpu("Tesla V100-SXM2-32GB", ComputeCapability(7, 0))
GB10 = Gpu("NVIDIA GB10", ComputeCapability(12, 1))


def listing(driver: str, gpu: Gpu) -> tuple[Reading, ...]:
    """NVML and libcuda of a driver that lists this GPU."""
    nvml, libcuda = WORKING
    return (nvml._replace(driver=DriverVersion.parse(driver), gpus=(gpu,)), libcuda._replace(gpus=(gpu,)))


DRIVER_FAULTS: dict[str, tuple[Case, dict[str, Severity]]] = {
    "no driver": (Case(NO_DRIVER, cached=()), {"no-driver": ERROR}),
    "nouveau holds the GPU": (
        Case({**NO_DRIVER, **gpu_on_bus(driver="nouveau")}, cached=()),
        {"nouveau-has-gpu": ERROR},
    ),
    "nouveau holds the GPU beside an installed driver": (
        Case({**NO_MODULE, **gpu_on_bus(driver="nouveau")}),
        {"nouveau-has-gpu": ERROR},
    ),
    "the only GPU is for a virtual machine": (
        Case({**NO_MODULE, **gpu_on_bus(driver="vfio-pci")}),
        {"gpu-reserved-for-virtual-machine": ERROR},
    ),
    "a second GPU is for a virtual machine": (
        Case(gpu_on_bus(driver="vfio-pci", address="0000:02:00.0"), readings=WORKING),
        {"gpu-reserved-for-virtual-machine": INFO},
    ),
    "the module is not loaded": (Case({**NO_MODULE, **UNBOUND}), {"kernel-module-not-loaded": ERROR}),
    "the module is not loaded and Secure Boot is on": (
        Case({**NO_MODULE, **UNBOUND, SECURE_BOOT: b"\x06\0\0\0\x01"}),
        {"kernel-module-not-loaded": ERROR, "kernel-module-refused": WARNING},
    ),
    "the module is not loaded and Secure Boot is off": (
        Case({**NO_MODULE, **UNBOUND, SECURE_BOOT: b"\x06\0\0\0\0"}),
        {"kernel-module-not-loaded": ERROR},
    ),
    "a new kernel has no module": (
        Case(
            {
                **NO_MODULE,
                **UNBOUND,
                f"lib/modules/{KERNEL}/modules.dep": "kernel/a.ko:\n",
                SECURE_BOOT: b"\0\0\0\0\1",
            }
        ),
        {"kernel-module-missing": ERROR},
    ),
    "the libraries are newer than the module": (
        Case({**NO_LIBRARIES, **driver_libraries("580.95.05")}),
        {"driver-version-mismatch": ERROR},
    ),
    "the libraries are newer than the module, and the driver says so": (
        Case(
            {**NO_LIBRARIES, **driver_libraries("580.95.05")},
            readings=(
                failed_reading(Source.NVML, Trouble.VERSION_MISMATCH, "nvmlInit failed with NVML error 18", 18),
                failed_reading(Source.LIBCUDA, Trouble.VERSION_MISMATCH, "cuInit failed with CUDA error 803", 803),
            ),
        ),
        {"driver-version-mismatch": ERROR},
    ),
    "libraries of two drivers": (
        Case(
            {
                **NO_MODULE,
                **UNBOUND,
                f"{MULTIARCH}/libcuda.so.570.86.10": library("libcuda"),
                f"{MULTIARCH}/libcuda.so.1@": "libcuda.so.570.86.10",
            }
        ),
        {"kernel-module-not-loaded": ERROR, "driver-version-mismatch": ERROR},
    ),
    "the driver dropped the GPU": (
        Case(
            {
                **gpu_on_bus("1db5", None),
                "sys/bus/pci/devices/0000:01:00.0/driver@": None,
                **module("595.45.04"),
                **NO_LIBRARIES,
                **driver_libraries("595.45.04"),
            },
        ),
        {"driver-too-new-for-gpu": ERROR},
    ),
    "the driver dropped the GPU and its module does not load": (
        Case(
            {
                **NO_MODULE,
                **gpu_on_bus("1db5", None),
                "sys/bus/pci/devices/0000:01:00.0/driver@": None,
                **NO_LIBRARIES,
                **driver_libraries("595.45.04"),
            }
        ),
        {"driver-too-new-for-gpu": ERROR},
    ),
    "the driver does not know the GPU yet": (
        Case({**gpu_on_bus("2b85"), **module("550.163.01"), **NO_LIBRARIES, **driver_libraries("550.163.01")}),
        {"driver-too-old-for-gpu": ERROR},
    ),
    "the driver lists a GPU that is newer than its branch": (
        Case(
            {**module("510.47.03"), **NO_LIBRARIES, **driver_libraries("510.47.03")},
            readings=listing("510.47.03", RTX_4090),
        ),
        {"driver-and-gpu-disagree": WARNING},
    ),
    "the driver lists a GPU that its branch dropped": (
        Case(
            {**module("595.45.04"), **NO_LIBRARIES, **driver_libraries("595.45.04")},
            readings=listing("595.45.04", V100),
        ),
        {"driver-and-gpu-disagree": WARNING},
    ),
    "the driver lists a GPU whose first branch is only inferred": (
        Case(
            {**module("570.86.10"), **NO_LIBRARIES, **driver_libraries("570.86.10")},
            readings=listing("570.86.10", GB10),
        ),
        {},
    ),
    "the closed module has a GPU of Blackwell": (
        Case({**gpu_on_bus("2b85"), **module(is_open=False)}),
        {"open-modules-needed": ERROR},
    ),
    "the open module has a GPU of Pascal": (
        Case(gpu_on_bus("1b06")),
        {"open-modules-on-old-gpu": ERROR},
    ),
    "the libraries for computing are missing": (
        Case(removed({name: "" for name in driver_libraries() if "libcuda" in name}), cached=()),
        {"driver-library-missing": ERROR},
    ),
    "the driver lies where the loader does not look": (
        Case({**NO_LIBRARIES, **driver_libraries(directory="usr/local/nvidia/lib64")}, cached=()),
        {"driver-library-missing": ERROR},
    ),
    "the driver of NixOS": (
        Case({**NO_LIBRARIES, **driver_libraries(directory="run/opengl-driver/lib")}, cached=()),
        {"driver-library-missing": WARNING},
    ),
    "the link to the driver's library is broken": (
        Case({f"{MULTIARCH}/libcuda.so.{DRIVER}": None}),
        {"library-link-broken": ERROR, "loader-cache-stale": WARNING},
    ),
    "the driver's library is empty": (
        Case({f"{MULTIARCH}/libcuda.so.{DRIVER}": ""}),
        {"library-empty": ERROR},
    ),
    "the cache leads to an empty file elsewhere": (
        Case({**NO_LIBRARIES, "opt/x/libcuda.so.1": ""}, cached=(("libcuda.so.1", "/opt/x/libcuda.so.1"),)),
        {"driver-library-unusable": ERROR},
    ),
    "the stub is in front of the driver": (
        Case(
            {f"{TOOLKIT}/lib64/stubs/libcuda.so.1": library("libcuda.so.1")},
            environ={"LD_LIBRARY_PATH": f"/{TOOLKIT}/lib64/stubs"},
        ),
        {"stub-driver-library": ERROR},
    ),
    "the stub is on the library path under another name": (
        Case(
            {f"{TOOLKIT}/lib64/stubs/libcuda.so": library("libcuda.so.1")},
            environ={"LD_LIBRARY_PATH": f"/{TOOLKIT}/lib64/stubs"},
        ),
        {"stub-driver-library": WARNING},
    ),
    "a compatibility package is older than the driver": (
        Case(
            driver_libraries("550.54.15", "usr/local/cuda-12.4/compat"),
            environ={"LD_LIBRARY_PATH": f"/{TOOLKIT}/compat"},
        ),
        {"stale-compat-library": ERROR},
    ),
    "a compatibility package of the driver's branch": (
        Case(
            driver_libraries("580.65.05", "usr/local/cuda-12.4/compat"),
            environ={"LD_LIBRARY_PATH": f"/{TOOLKIT}/compat"},
        ),
        {"stale-compat-library": ERROR},
    ),
    "a compatibility package of the driver's branch, and libcuda works": (
        Case(
            driver_libraries("580.65.05", "usr/local/cuda-12.4/compat"),
            environ={"LD_LIBRARY_PATH": f"/{TOOLKIT}/compat"},
            readings=WORKING,
        ),
        {"stale-compat-library": WARNING},
    ),
    "NVML is missing, and CUDA works": (
        Case(
            {name: None for name in NO_LIBRARIES if "libnvidia-ml" in name},
            cached=(),
            readings=(
                failed_reading(Source.NVML, Trouble.LIBRARY_MISSING, "libnvidia-ml.so.1: cannot open shared object"),
                WORKING[1],
                failed_reading(Source.NVIDIA_SMI, Trouble.OTHER_ERROR, "nvidia-smi ended with 127"),
            ),
        ),
        {"nvml-missing": WARNING},
    ),
    "a compatibility package on a GeForce": (
        Case(COMPAT, environ=COMPAT_PATH),
        {"forward-compatibility-unsupported": ERROR},
    ),
    "a compatibility package on a GeForce, and the driver says so": (
        Case(
            COMPAT,
            environ=COMPAT_PATH,
            readings=(
                failed_reading(Source.LIBCUDA, Trouble.FORWARD_COMPATIBILITY, "cuInit failed with CUDA error 804", 804),
            ),
        ),
        {"forward-compatibility-unsupported": ERROR},
    ),
    "a compatibility package on a data-centre GPU": (
        Case({**gpu_on_bus("20b0"), **COMPAT}, environ=COMPAT_PATH),
        {"forward-compatibility-in-use": INFO},
    ),
    "a compatibility package that the loader does not reach": (Case(COMPAT), {}),
    "a compatibility library mounted over the driver's own": (
        Case(
            {
                **gpu_on_bus("20b0"),
                f"{MULTIARCH}/libcuda.so.590.48.01": library("libcuda"),
                f"{MULTIARCH}/libcuda.so.1@": "libcuda.so.590.48.01",
            }
        ),
        {"forward-compatibility-in-use": INFO},
    ),
    "a compatibility package of conda": (
        Case(
            driver_libraries("550.54.15", "opt/conda/envs/a/cuda-compat"),
            environ={"CONDA_PREFIX": "/opt/conda/envs/a", "LD_LIBRARY_PATH": "/opt/conda/envs/a/cuda-compat"},
        ),
        {"stale-compat-library": ERROR},
    ),
    "the device files are missing": (Case(removed(DEVICE_FILES)), {"device-nodes-missing": ERROR}),
    "the file for unified memory is missing": (Case({"dev/nvidia-uvm": None}), {"device-nodes-missing": WARNING}),
    "the file for unified memory is missing, and libcuda fails": (
        Case(
            {"dev/nvidia-uvm": None},
            readings=(failed_reading(Source.LIBCUDA, Trouble.UNKNOWN_ERROR, "cuInit failed with CUDA error 999", 999),),
        ),
        {"device-nodes-missing": ERROR},
    ),
    "the device files are closed": (
        Case(is_closed=lambda path: path.name.startswith("nvidia")),
        {"device-nodes-denied": ERROR},
    ),
    "a GPU is on the bus and not taken": (
        Case({**gpu_on_bus(driver=None, address="0000:02:00.0")}, readings=WORKING),
        {"gpu-not-driven": WARNING},
    ),
    "a GPU is taken and not listed": (
        Case(gpu_on_bus(address="0000:02:00.0"), readings=WORKING),
        {"gpus-not-listed": WARNING},
    ),
    "a job has a share of the GPUs": (
        Case(gpu_on_bus(address="0000:02:00.0"), readings=WORKING, environ={"SLURM_JOB_ID": "7"}),
        {"gpus-not-listed": INFO},
    ),
    "no GPU at all": (
        Case({**NO_DRIVER, "sys/bus/pci/devices/0000:01:00.0": None}, cached=()),
        {"no-gpu": INFO},
    ),
    "the driver's packages on a login node": (
        Case(
            {**NO_MODULE, "sys/bus/pci/devices/0000:01:00.0": None, "sys/bus/pci/devices/": ""},
            readings=(failed_reading(Source.NVML, Trouble.DRIVER_NOT_LOADED, "nvmlInit failed with NVML error 9", 9),),
            changes={"status": GpuStatus.NO_HARDWARE},
        ),
        {"no-gpu": INFO},
    ),
}
