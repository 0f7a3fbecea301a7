"""Problems of the GPUs themselves: several kinds in one machine, and MIG without an instance."""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.diagnose.machine.survey import Survey, name_of
from envsolve.host.probe import Source
from envsolve.host.trouble import Trouble
from envsolve.model.finding import Finding

_CAPABILITIES = "/proc/driver/nvidia/capabilities"
_ORDER = "CUDA_DEVICE_ORDER"


def check_kinds(survey: Survey) -> Iterator[Finding]:
    """GPUs of several compute capabilities: one build must support all, and their numbers differ from nvidia-smi's."""
    host = survey.host
    if len(host.capabilities) < 2:  # noqa: PLR2004 - two are several
        return
    yield survey.finding(
        "gpus-differ",
        [f"{gpu.count} x {name_of(gpu)}" for gpu in host.gpus],
        gpus=tuple(map(name_of, host.gpus)),
        by_bus=survey.environ.get(_ORDER) == "PCI_BUS_ID",
    )


def check_instances(survey: Survey) -> Iterator[Finding]:
    """MIG enabled without an instance to compute on."""
    if any(gpu.mig for gpu in survey.host.gpus) and _has_no_instance(survey):
        evidence = [f"{name_of(gpu)}: MIG on" for gpu in survey.host.gpus if gpu.mig]
        yield survey.finding("mig-without-instances", evidence)


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
