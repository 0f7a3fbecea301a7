"""What the GPUs themselves ask attention for: several kinds in one machine, and MIG without an instance."""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.diagnose.machine.survey import Survey, name_of
from envsolve.host.probe import Source
from envsolve.host.trouble import Trouble
from envsolve.model.finding import Finding, Severity

_CAPABILITIES = "/proc/driver/nvidia/capabilities"
_ORDER = "CUDA_DEVICE_ORDER"


def check_kinds(survey: Survey) -> Iterator[Finding]:
    """GPUs of several compute capabilities: one build has to cover all, and their numbers are not nvidia-smi's."""
    host = survey.host
    if len(host.capabilities) < 2:  # noqa: PLR2004 - two are several
        return
    order = survey.environ.get(_ORDER)
    numbers = ""
    if order != "PCI_BUS_ID":
        numbers = f" CUDA numbers the fastest first, nvidia-smi by place on the bus, as {_ORDER} is not PCI_BUS_ID."
    yield Finding(
        "gpus-differ",
        "The GPUs are of different kinds",
        Severity.WARNING,
        f"This machine has {', '.join(map(name_of, host.gpus))}. A build without code for one of these compute "
        f"capabilities fails on that GPU alone.{numbers}",
        "Have a build solved for all of them, as envsolve does with --gpu auto, or let programs see one kind with "
        "CUDA_VISIBLE_DEVICES.",
        () if survey.platform.is_windows or order == "PCI_BUS_ID" else (f"export {_ORDER}=PCI_BUS_ID",),
        tuple(f"{gpu.count} x {name_of(gpu)}" for gpu in host.gpus),
    )


def check_instances(survey: Survey) -> Iterator[Finding]:
    """MIG that is switched on, and no instance to compute on."""
    if any(gpu.mig for gpu in survey.host.gpus) and _has_no_instance(survey):
        yield Finding(
            "mig-without-instances",
            "MIG is on, and there is no instance",
            Severity.ERROR,
            "The GPU is in MIG mode, where programs compute on instances of it only, and libcuda finds none.",
            "Make an instance, or switch MIG off. In a container or a job: ask for an instance.",
            (
                "nvidia-smi -L",
                "sudo nvidia-smi mig -lgip",
                "sudo nvidia-smi mig -cgi PROFILE -C",
                "sudo nvidia-smi -mig 0",
            ),
            tuple(f"{name_of(gpu)}: MIG on" for gpu in survey.host.gpus if gpu.mig),
        )


def _has_no_instance(survey: Survey) -> bool:
    reading = survey.reading(Source.LIBCUDA)
    if reading is not None:
        nothing = reading.problem is not None and reading.problem.code == Trouble.NO_DEVICE
        return nothing or reading.gpus == ()
    gpus = [name for name in survey.files.names(_CAPABILITIES) if name.startswith("gpu")]
    instances = [
        name for gpu in gpus for name in survey.files.names(f"{_CAPABILITIES}/{gpu}/mig") if name.startswith("gi")
    ]
    return bool(gpus) and not instances
