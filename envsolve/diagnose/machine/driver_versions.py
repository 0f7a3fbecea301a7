"""Whether the parts of the driver are of one version, and whether that version and these GPUs go together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from envsolve.diagnose.machine.compatibility import is_compatibility
from envsolve.diagnose.machine.driver_install import Way
from envsolve.diagnose.machine.findings import of_driver
from envsolve.diagnose.machine.seen import gpus_seen
from envsolve.diagnose.machine.survey import Survey, name_of
from envsolve.model.finding import Finding, Severity
from envsolve.model.host import Gpu, Platform
from envsolve.model.release import Architecture
from envsolve.model.versions import DriverVersion

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
        yield _module_differs(survey, module, parts, evidence)
    elif len({version for _, version in parts}) > 1:
        seen = " and ".join(f"{version} ({path})" for path, version in parts)
        yield of_driver(survey, _MISMATCH, f"The loader finds libraries of two drivers: {seen}.", evidence[1:])


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
    if dropped:
        yield _dropped(survey, driver, dropped)
    if unknown:
        yield _not_known_yet(survey, driver, unknown)


def check_doubtful(survey: Survey) -> Iterator[Finding]:
    """GPUs that the driver lists, and that no driver of its branch can know: one of the two was read wrongly."""
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
                yield _doubtful(survey, driver, gpu, life, bound, reading.source)


def check_module_kind(survey: Survey) -> Iterator[Finding]:
    """GPUs that the loaded kind of kernel module, open or closed, does not support."""
    if not survey.has_own_driver or survey.module_is_open is None:
        return
    known = [(gpu, gpu.compute_capability) for gpu in _idle_gpus(survey) if gpu.compute_capability is not None]
    old = [gpu for gpu, capability in known if capability < _TURING]
    new = [gpu for gpu, capability in known if capability >= _BLACKWELL]
    if survey.module_is_open and old:
        yield _wrong_kind(old, "open", "closed", "the open one supports GPUs from Turing (7.5) on")
    elif not survey.module_is_open and new:
        yield _wrong_kind(new, "closed", "open", "from Blackwell (10.0) on NVIDIA supports GPUs with the open one only")


def _idle_gpus(survey: Survey) -> list[Gpu]:
    """GPUs that are there and that no working driver lists."""
    working = {gpu.compute_capability for gpu in survey.working_gpus}
    return [gpu for gpu in survey.gpus if gpu.compute_capability not in working]


def _broken_bound(survey: Survey, life: Architecture, branch: int) -> str | None:
    """Which end of a GPU's life the branch lies beyond; what the matrix only infers is nothing to doubt others by."""
    rows = cast("list[dict[str, object]]", survey.matrix.document("cuda")["architecture"])
    row = next((it for it in rows if it["capability"] == str(life.capability)), {})
    inferred = cast("list[str]", row.get("inferred", []))
    if life.first_branch is not None and branch < life.first_branch and "first_branch" not in inferred:
        return f"first branch: R{life.first_branch}"
    if life.last_branch is not None and branch > life.last_branch and "last_branch" not in inferred:
        return f"last branch: R{life.last_branch}"
    return None


def _doubtful(survey: Survey, driver: DriverVersion, gpu: Gpu, life: Architecture, bound: str, source: str) -> Finding:
    origin = survey.host.origin.get("driver", "the detection")
    return Finding(
        "driver-and-gpu-disagree",
        "The driver lists a GPU that it cannot know",
        Severity.WARNING,
        f"The driver is {driver} by {origin}, and {source} lists {name_of(gpu)} ({bound}). No driver of that branch "
        "supports such a GPU, so one of the two facts is wrong, and so may be what is solved for them.",
        "See what each source says of driver and GPU, and name what is right with --driver and --gpu.",
        ("envsolve detect", "nvidia-smi"),
        (f"driver {driver}, by {origin}", f"{name_of(gpu)}, by {source} ({bound})"),
        about=name_of(gpu),
        sources=tuple(dict.fromkeys(it.reference for it in life.evidence)),
    )


def _module_differs(
    survey: Survey, module: DriverVersion, parts: list[tuple[str, DriverVersion]], evidence: tuple[str, ...]
) -> Finding:
    others = sorted({str(version) for _, version in parts if version != module})
    seen = f"The kernel module is {module}, and the libraries that programs load are {' and '.join(others)}."
    return of_driver(survey, _MISMATCH, seen, evidence)


def _dropped(survey: Survey, driver: DriverVersion, gpus: list[tuple[Gpu, int]]) -> Finding:
    named = ", ".join(f"{name_of(gpu)} (last branch: R{last})" for gpu, last in gpus)
    return Finding(
        "driver-too-new-for-gpu",
        "The NVIDIA driver no longer supports the GPU",
        Severity.ERROR,
        f"The driver is {driver}, which is newer than the last branch for {named}: it does not take the GPU.",
        f"Remove this driver. {survey.installation.text}",
        survey.installation.commands,
        (f"driver {driver}", *gpus_seen(survey)),
    )


def _not_known_yet(survey: Survey, driver: DriverVersion, gpus: list[tuple[Gpu, int]]) -> Finding:
    named = ", ".join(f"{name_of(gpu)} (first branch: R{first})" for gpu, first in gpus)
    first = max(first for _, first in gpus)
    way = survey.installation
    if survey.is_wsl:
        way = Way(f"Update NVIDIA's driver in Windows to R{first} or newer; none belongs inside WSL.")
    elif survey.container is not None:
        way = Way(f"Have the driver of the host updated to R{first} or newer.")
    return Finding(
        "driver-too-old-for-gpu",
        "The NVIDIA driver is too old for the GPU",
        Severity.ERROR,
        f"The driver is {driver}, which is older than the first branch for {named}: it does not know the GPU.",
        way.text,
        way.commands,
        (f"driver {driver}", *gpus_seen(survey)),
    )


def _wrong_kind(gpus: list[Gpu], loaded: str, wanted: str, because: str) -> Finding:
    """Sources: the chapter kernel_open of the driver's README (580.159.03), negativo17/nvidia-driver#158."""
    named = ", ".join(map(name_of, gpus))
    return Finding(
        "open-modules-needed" if wanted == "open" else "open-modules-on-old-gpu",
        f"The {loaded} kernel module does not support the GPU",
        Severity.ERROR,
        f"Of NVIDIA's two kernel modules the {loaded} one is loaded, and the driver does not list {named}: {because}.",
        f"Install the {wanted} kernel module of the same driver version (packages of the open one have `open` in their "
        "name), and restart.",
        ("cat /proc/driver/nvidia/version",),
        (f"/proc/driver/nvidia/version: the {loaded} kernel module", *map(name_of, gpus)),
    )
