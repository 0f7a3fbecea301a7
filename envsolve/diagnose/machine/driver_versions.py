"""Whether the parts of the driver have the same version, and whether that version supports these GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from envsolve.diagnose.machine.driver_library import is_compatibility
from envsolve.diagnose.machine.survey import Survey
from envsolve.model.finding import Finding
from envsolve.model.host import Gpu, Platform
from envsolve.model.release import Architecture

_MISMATCH = "driver-version-mismatch"
_WITH_BRANCHES = (Platform.LINUX_64, Platform.LINUX_AARCH64, Platform.WIN_64)
_TURING = (7, 5)
_BLACKWELL = (10, 0)


def check_versions(survey: Survey) -> Iterator[Finding]:
    """The kernel module and the libraries beside it; forward compatibility has a check of its own."""
    module, libcuda, nvml = survey.module_version, survey.libcuda, survey.nvml
    if survey.is_wsl or survey.l4t is not None or survey.libcuda_works or is_compatibility(survey):
        return
    parts = [(str(it), it.version) for it in (libcuda, nvml) if it is not None and it.version is not None]
    evidence = (f"kernel module {module}", *(path for path, _ in parts))
    if module is not None and any(version != module for _, version in parts):
        others = tuple(sorted({str(version) for _, version in parts if version != module}))
        yield survey.finding(_MISMATCH, evidence, module_version=module, places=others)
    elif len({version for _, version in parts}) > 1:
        found = tuple(f"{version} ({path})" for path, version in parts)
        yield survey.finding(_MISMATCH, evidence[1:], places=found)


def check_branch(survey: Survey) -> Iterator[Finding]:
    """GPUs that the branch of the installed driver no longer supports, or does not support yet."""
    driver = survey.installed_driver
    if driver is None or survey.platform not in _WITH_BRANCHES:
        return
    branch = survey.matrix.cuda.branch_of(driver)
    number = driver.parts[0] if branch is None else branch.branch
    lives = [(gpu, life) for gpu in _idle_gpus(survey) for life in (survey.life_of(gpu),) if life is not None]
    dropped = [(gpu, life.last_branch) for gpu, life in lives if life.last_branch and number > life.last_branch]
    unknown = [(gpu, life.first_branch) for gpu, life in lives if life.first_branch and number < life.first_branch]
    evidence = (f"driver {driver}", *survey.gpus_seen)
    if dropped:
        named = tuple(f"{gpu.label} (last branch: R{last})" for gpu, last in dropped)
        yield survey.finding("driver-drops-gpu", evidence, driver=driver, gpus=named)
    if unknown:
        named = tuple(f"{gpu.label} (first branch: R{first})" for gpu, first in unknown)
        needed = max(first for _, first in unknown)
        yield survey.finding("driver-does-not-know-gpu", evidence, driver=driver, gpus=named, branch=needed)


def check_doubtful(survey: Survey) -> Iterator[Finding]:
    """GPUs that the driver lists although no driver of its branch supports them: one of the two was misread."""
    driver = survey.host.driver
    if driver is None or survey.platform not in _WITH_BRANCHES:
        return
    branch = survey.matrix.cuda.branch_of(driver)
    number = driver.parts[0] if branch is None else branch.branch
    for reading in survey.live_readings:
        for gpu in reading.gpus or ():
            life = survey.life_of(gpu)
            bound = None if life is None else _broken_bound(survey, life, number)
            if life is not None and bound is not None:
                origin = survey.host.origin.get("driver", "the detection")
                yield survey.finding(
                    "driver-and-gpu-disagree",
                    (f"driver {driver}, by {origin}", f"{gpu.label}, by {reading.source} ({bound})"),
                    about=gpu.label,
                    sources=tuple(dict.fromkeys(it.reference for it in life.evidence)),
                    driver=driver,
                    origins=origin,
                    gpu=gpu.label,
                    source=reading.source,
                    bound=bound,
                )


def check_module_kind(survey: Survey) -> Iterator[Finding]:
    """GPUs that the loaded kind of kernel module, open or closed, does not support.

    Sources: the chapter kernel_open of the driver's README (580.159.03), negativo17/nvidia-driver#158.
    """
    if not survey.has_own_driver or survey.module_is_open is None:
        return
    known = [(gpu, gpu.compute_capability) for gpu in _idle_gpus(survey) if gpu.compute_capability is not None]
    old = tuple(gpu.label for gpu, capability in known if capability < _TURING)
    new = tuple(gpu.label for gpu, capability in known if capability >= _BLACKWELL)
    if survey.module_is_open and old:
        evidence = ("/proc/driver/nvidia/version: the open kernel module", *old)
        yield survey.finding("open-modules-on-this-old-gpu", evidence, gpus=old)
    elif not survey.module_is_open and new:
        evidence = ("/proc/driver/nvidia/version: the closed kernel module", *new)
        yield survey.finding("open-modules-needed-here", evidence, gpus=new)


def _idle_gpus(survey: Survey) -> list[Gpu]:
    """GPUs that no working driver lists."""
    working = {gpu.compute_capability for gpu in survey.working_gpus}
    return [gpu for gpu in survey.gpus if gpu.compute_capability not in working]


def _broken_bound(survey: Survey, life: Architecture, branch: int) -> str | None:
    """Which end of a GPU's support the branch is beyond; facts that the matrix only infers are no reason for doubt."""
    rows = cast("list[dict[str, object]]", survey.matrix.document("cuda")["architecture"])
    row = next((it for it in rows if it["capability"] == str(life.capability)), {})
    inferred = cast("list[str]", row.get("inferred", []))
    if life.first_branch is not None and branch < life.first_branch and "first_branch" not in inferred:
        return f"first branch: R{life.first_branch}"
    if life.last_branch is not None and branch > life.last_branch and "last_branch" not in inferred:
        return f"last branch: R{life.last_branch}"
    return None
