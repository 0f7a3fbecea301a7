"""Rules on a driver that does not start, and on errors told by number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Rule
from envsolve.diagnose.rules import rule_named
from envsolve.diagnose.rules.driver_ability import ability
from envsolve.diagnose.rules.driver_too_old import presumably_too_old, proven_too_old
from envsolve.diagnose.rules.roots import NUMBERS, Fields, explained, told_with


def numbered(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Errors told by number, each as its symptom, where no words tell the same."""
    groups: dict[str, list[Sighting]] = {}
    for it in sightings:
        symptom = NUMBERS.get(int(it.fields["number"]))
        if symptom is not None and not case.saw(symptom):
            groups.setdefault(symptom, []).append(it)
    for symptom, found in groups.items():
        rule = rule_named(symptom)
        seen = tuple(it._replace(fields={}) for it in found)
        if rule is not None:
            yield from rule(case, seen)
        else:
            yield Diagnosis((Cause(symptom),), seen)


def fabric_manager(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Error 802: NVSwitch without its manager, which is of the driver's version."""
    fields: Fields = {}
    if case.driver is not None:
        fields["package"] = f" (package nvidia-fabricmanager-{case.driver.parts[0]}, version {case.driver})"
    yield Diagnosis((Cause("fabric-manager-not-ready", fields),), sightings)


_LXC = re.compile(r"\b(?:lx[cd]|incus|proxmox)\b", re.IGNORECASE)


def unknown_error(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """CUDA's unknown error at the start: nvidia_uvm, in its various troubles."""
    if explained(case, ("driver-version-mismatch", "gpu-lost", "container-runtime-failed", "container-lost-gpu")):
        return
    uvm, container = Cause("driver-unknown-error"), Cause("container-without-uvm")
    if case.windows or case.wsl:
        causes: tuple[Cause, ...] = (Cause("driver-restart-windows"), uvm)
    elif case.container or any(_LXC.search(it.line) for it in sightings):
        causes = (container, uvm)
    else:
        causes = (uvm, container)
    yield Diagnosis(causes, sightings)


_LEAST_MAJOR = 11
"""The CUDA major of the drivers that builds of the last years need at the least."""


def _old_driver(case: Case) -> Cause | None:
    """A driver from before CUDA 11, where nothing tells for which CUDA the build is."""
    can = ability(case)
    if case.driver is None or can is None or can.full.major >= _LEAST_MAJOR or case.built_cuda is not None:
        return None
    return presumably_too_old(case, can)


_AT_START = re.compile(r"driver initialization failed|cuInit|NOT_INITIALIZED|cudaGetDeviceCount", re.IGNORECASE)


def not_initialized(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Error 3: of the driver itself when it is started, else mostly of a forked process."""
    if explained(case, ("forked-cuda", "driver-version-mismatch")):
        return
    itself, forked = Cause("driver-not-initialized"), Cause("forked-cuda")
    too_old = proven_too_old(case)
    if not any(_AT_START.search(it.line) for it in sightings):
        causes: tuple[Cause, ...] = (forked, itself)
    else:
        causes = (itself, forked) if too_old is None else (too_old, itself)
        if too_old is None and (old := _old_driver(case)) is not None:
            causes = (old, itself, forked)
    yield Diagnosis(causes, sightings)


def out_of_memory_at_start(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Error 2 at the first call, when nothing has asked for memory of the GPU yet: mostly in WSL, which has no jobs."""
    wsl, limit, taken = Cause("wsl-out-of-memory-at-start"), Cause("host-memory-limit"), Cause("gpu-memory-taken")
    if case.saw("slurm") and not case.wsl:
        yield Diagnosis((told_with(case, "host-memory-limit", "slurm"), taken), sightings)
    elif _driver_of_linux(case):
        yield Diagnosis((limit, taken), sightings)
    else:
        yield Diagnosis((wsl, limit, taken), sightings)


_NUMBERS_OF_LINUX = 3


def _driver_of_linux(case: Case) -> bool:
    """Whether the driver is that of Linux itself: those of Windows, which WSL has, are of two numbers only."""
    return case.driver is not None and len(case.driver.parts) == _NUMBERS_OF_LINUX and not case.wsl


def unavailable(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Error 46: held alone by another process, or stuck."""
    if case.saw("exclusive-mode"):
        yield Diagnosis((told_with(case, "gpu-unavailable", "exclusive-mode"),), sightings)
        return
    held, stuck = Cause("gpu-unavailable"), Cause("gpu-stuck")
    yield Diagnosis((stuck, held) if case.wsl or case.windows else (held, stuck), sightings)


RULES: Mapping[str, Rule] = {
    "cuda-error-number": numbered,
    "fabric-manager-not-ready": fabric_manager,
    "driver-unknown-error": unknown_error,
    "driver-not-initialized": not_initialized,
    "out-of-memory-at-start": out_of_memory_at_start,
    "gpu-unavailable": unavailable,
}
