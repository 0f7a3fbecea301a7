"""A container without the driver of its host."""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.binary.unreadable import Damage
from envsolve.diagnose.machine.survey import Survey
from envsolve.host.evidence import Surroundings as Variables
from envsolve.model.finding import Finding

DEVICES, CAPABILITIES = "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"


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
    module = f"kernel module {survey.module_version or 'of no known version'}"
    evidence = (
        *([] if value is None else [f"{variable}={value}"]),
        f"{container.mark} ({container.kind})",
        *([module] if survey.module_is_loaded else []),
        *([] if survey.libcuda is None else [f"{survey.libcuda} is empty"]),
        *survey.gpus_seen,
    )
    identifier = "container-without-compute" if without_compute else "container-without-gpu"
    yield survey.finding(identifier, evidence, value=value, kind=container.kind)


def _lacks_library(survey: Survey) -> bool:
    """Whether there is no CUDA library, or only the empty file that a runtime left in the image."""
    found = survey.libcuda
    return found is None or (found.damage is not None and found.damage.damage is Damage.EMPTY)
