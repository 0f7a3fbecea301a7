"""A container whose host has a driver, and which was not given it."""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.binary.unreadable import Damage
from envsolve.diagnose.machine.seen import gpus_seen, misplaced_libraries
from envsolve.diagnose.machine.survey import Survey
from envsolve.host.evidence import Surroundings as Variables
from envsolve.model.finding import Finding

DEVICES, CAPABILITIES = "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"


def check_container(survey: Survey) -> Iterator[Finding]:
    """A container without the driver's library on a machine that has a driver or a GPU."""
    if survey.container is None or survey.is_wsl or survey.libcuda_works or not _lacks_library(survey):
        return
    if misplaced_libraries(survey) or not (survey.module_is_loaded or survey.bus):
        return
    asked = Variables(driver_capabilities=survey.environ.get(CAPABILITIES))
    yield _without_compute(survey) if asked.container_without_compute else _without_gpus(survey)


def _lacks_library(survey: Survey) -> bool:
    """Whether there is no CUDA library, or only the empty file that a runtime left in the image."""
    found = survey.libcuda
    return found is None or (found.damage is not None and found.damage.damage is Damage.EMPTY)


def _without_compute(survey: Survey) -> Finding:
    value = survey.environ[CAPABILITIES]
    return survey.finding(
        "container-without-compute", (f"{CAPABILITIES}={value}", *_evidence(survey)), value=value, kind=_kind(survey)
    )


def _without_gpus(survey: Survey) -> Finding:
    value = survey.environ.get(DEVICES)
    setting = () if value is None else (f"{DEVICES}={value}",)
    return survey.finding("container-without-gpu", (*setting, *_evidence(survey)), value=value, kind=_kind(survey))


def _kind(survey: Survey) -> str:
    return survey.container.kind if survey.container is not None else ""


def _evidence(survey: Survey) -> tuple[str, ...]:
    mark = () if survey.container is None else (f"{survey.container.mark} ({survey.container.kind})",)
    module = (f"kernel module {survey.module_version or 'of no known version'}",) if survey.module_is_loaded else ()
    left = () if survey.libcuda is None else (f"{survey.libcuda} is empty",)
    return (*mark, *module, *left, *gpus_seen(survey))
