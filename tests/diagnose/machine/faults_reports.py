"""Problems that the sources of the detection report, and variables that hide GPUs, each with its findings."""

from __future__ import annotations

from envsolve.host.probe import Source
from envsolve.host.trouble import Trouble
from envsolve.model.capability import ComputeCapability
from envsolve.model.finding import Severity
from envsolve.model.host import Reading
from envsolve.model.versions import CudaVersion, DriverVersion
from tests.diagnose.machine.recorded import (
    DRIVER,
    RTX_4090,
    WORKING,
    Case,
    failed_reading,
    gpu_on_bus,
)

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
MIG = RTX_4090._replace(name="NVIDIA H100", compute_capability=ComputeCapability(9, 0), mig=True)

REPORTED: dict[str, tuple[Case, dict[str, Severity]]] = {
    "the fabric manager is not running": (
        Case(
            readings=(failed_reading(Source.LIBCUDA, Trouble.FABRIC_MANAGER, "cuInit failed with CUDA error 802", 802),)
        ),
        {"fabric-manager-not-ready": ERROR},
    ),
    "an unknown error": (
        Case(
            readings=(failed_reading(Source.LIBCUDA, Trouble.UNKNOWN_ERROR, "cuInit failed with CUDA error 999", 999),)
        ),
        {"driver-unknown-error": ERROR},
    ),
    "a hang": (
        Case(readings=(failed_reading(Source.NVML, Trouble.HANG, "NVML did not answer in time"),)),
        {"driver-hang": ERROR},
    ),
    "a crash": (
        Case(readings=(failed_reading(Source.NVML, Trouble.CRASH, "NVML died with signal 11", 11),)),
        {"driver-crash": ERROR},
    ),
    "a GPU fell off the bus": (
        Case(
            readings=(failed_reading(Source.NVML, Trouble.GPU_LOST, "nvmlDeviceGetName failed with NVML error 15", 15),)
        ),
        {"gpu-lost": ERROR},
    ),
    "a GPU fell off the bus, and another works": (
        Case(
            gpu_on_bus(address="0000:02:00.0"),
            readings=(
                WORKING[0]._replace(problem=failed_reading(Source.NVML, Trouble.GPU_LOST, "NVML error 15", 15).problem),
                WORKING[1],
            ),
        ),
        {"gpu-lost": WARNING},
    ),
    "a GPU is held by another process": (
        Case(readings=(failed_reading(Source.LIBCUDA, Trouble.NO_PERMISSION, "cuInit failed with CUDA error 46", 46),)),
        {"gpu-unavailable": ERROR},
    ),
    "MIG without an instance": (
        Case(
            readings=(
                Reading(Source.NVML, DriverVersion.parse(DRIVER), CudaVersion(13, 0), (MIG,)),
                failed_reading(Source.LIBCUDA, Trouble.NO_DEVICE, "cuInit failed with CUDA error 100", 100),
            )
        ),
        {"mig-without-instances": ERROR},
    ),
    "MIG with an instance": (
        Case(readings=(WORKING[0]._replace(gpus=(MIG,)), WORKING[1]._replace(gpus=(MIG._replace(mig=False),)))),
        {},
    ),
    "the bindings of NVML are missing": (
        Case(readings=(failed_reading(Source.NVML, Trouble.BINDINGS_MISSING, "nvidia-ml-py: no module"), WORKING[1])),
        {"source-not-asked": INFO},
    ),
}


HIDDEN: dict[str, tuple[Case, dict[str, Severity]]] = {
    value: (
        Case(readings=WORKING, environ={"CUDA_VISIBLE_DEVICES": value}),
        {"gpus-hidden": severity} if severity else {},
    )
    for value, severity in {
        "": ERROR,
        "-1": ERROR,
        "NoDevFiles": ERROR,
        "none": ERROR,
        "1": ERROR,
        "0,0": ERROR,
        ",0": ERROR,
        "GPU-ffff": ERROR,
        "0,3": WARNING,
        "0": None,
        " 0 ": None,
        "GPU-8932f937": None,
        "MIG-0123": None,
    }.items()
}
