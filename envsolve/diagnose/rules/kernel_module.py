"""Rules on the driver's kernel module: not loaded, missing; and GPUs that it does not reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from envsolve.diagnose.case import Case, Sighting, merged
from envsolve.diagnose.cause import Cause, Diagnosis, Rule
from envsolve.diagnose.rules.driver_ability import ability, driver_is, gpu_fields, too_new_for_gpu, too_old_for_gpu
from envsolve.diagnose.rules.driver_absent import no_gpu_allocated, no_library, windows_too_old_for_wsl
from envsolve.diagnose.rules.roots import ROOTS, Fields, explained, plainly_not_loaded, told_with


def not_loaded(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A driver that is installed and not loaded."""
    if explained(case, ROOTS):
        return
    if not plainly_not_loaded(case):
        if not explained(case, ("driver-library-missing", "driver-too-old", "no-device")):
            yield Diagnosis(tuple(no_library(case, {})), sightings)
        return
    yield Diagnosis(tuple(_of_not_loaded(case)), sightings)


def _of_not_loaded(case: Case) -> Iterator[Cause]:
    fields = gpu_fields(case)
    if case.saw("wsl-1"):
        yield told_with(case, "wsl-1", "wsl-1")
        return
    if case.saw("gpu-before-fermi"):
        yield told_with(case, "gpu-too-old-for-cuda", "gpu-before-fermi")
        return
    if too_new_for_gpu(case):
        yield Cause("driver-too-new-for-gpu", fields)
    elif too_old_for_gpu(case):
        yield Cause("driver-too-old-for-gpu", fields)
    if case.wsl:
        yield from windows_too_old_for_wsl(case)
        yield Cause("wsl-driver-not-reached")
    elif case.saw("colab"):
        yield no_gpu_allocated(case)
    yield Cause("kernel-module-not-loaded")


def module_missing(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """No module for the running kernel; in WSL there is none, and none is needed."""
    fields = merged(sightings)
    if "directory" in fields:
        fields["directory_words"] = f" ({fields['directory']})"
    missing = Cause("kernel-module-missing", fields)
    yield Diagnosis((Cause("wsl-driver-not-reached"), missing) if case.wsl else (missing,), sightings)


def init_failed(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A GPU that the module found and could not start."""
    if explained(case, ("gpu-not-supported-by-module", "driver-branch-ended", "gpu-lost")):
        return
    yield Diagnosis(tuple(_of_dead_gpu(case, "gpu-init-failed", merged(sightings))), sightings)


def no_devices_found(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """nvidia-smi without a GPU."""
    if explained(case, (*ROOTS, "driver-not-loaded", "driver-library-missing")):
        return
    fields: Fields = {"driver_is": driver_is(case, ability(case))}
    yield Diagnosis(tuple(_of_dead_gpu(case, "no-devices-found", fields)), sightings)


_FIRST_WITH_OPEN_MODULES_ONLY = 10
"""The major of the compute capability of Blackwell."""


def _of_dead_gpu(case: Case, last: str, fields: Fields) -> Iterator[Cause]:
    fields = {**gpu_fields(case), **fields}
    if too_new_for_gpu(case):
        yield Cause("driver-too-new-for-gpu", fields)
    elif too_old_for_gpu(case):
        yield Cause("driver-too-old-for-gpu", fields)
    elif case.capability is not None and case.capability.major >= _FIRST_WITH_OPEN_MODULES_ONLY and not case.wsl:
        yield Cause("open-modules-needed", fields)
    if case.wsl:
        yield Cause("wsl-driver-not-reached")
    yield Cause(last, fields)


def lost(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A GPU off the bus; in WSL handles are refused for one in TCC mode, and of several it is seldom the hardware."""
    cause = Cause("gpu-lost", merged(sightings))
    if case.wsl:
        yield Diagnosis((told_with(case, "wsl-tcc-mode", "tcc-mode"), cause), sightings)
        return
    handle_only = all("device handle" in it.line.casefold() for it in sightings)
    others: tuple[Cause, ...] = (Cause("container-lost-gpu"),) if case.container and handle_only else ()
    if len({it.get("bus") for it in sightings}) > 1 and case.saw("no-devices-found"):
        others = (*others, Cause("wsl-tcc-mode"))
    yield Diagnosis((cause, *others), sightings)


_HARDWARE_XIDS = {
    "48": "an ECC error of two bits",
    "62": "a halt of the internal microcontroller",
    "63": "an event of row remapping",
    "64": "a failure of row remapping",
    "74": "an error of NVLink",
    "92": "a high rate of ECC errors",
    "94": "a contained ECC error",
    "95": "an uncontained ECC error",
    "110": "a security fault",
    "140": "an unrecovered ECC error",
}


_GSP_XIDS = ("119", "120")


def xid(_case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Xid errors of hardware and GSP; those of programs are told by what the programs say, 79 as a lost GPU."""
    for number in dict.fromkeys(it.get("xid") for it in sightings):
        seen = tuple(it for it in sightings if it.get("xid") == number)
        if number in _GSP_XIDS:
            yield Diagnosis((Cause("gsp-timeout", seen[0].fields),), seen)
        elif number in _HARDWARE_XIDS:
            fields = {**seen[0].fields, "meaning": _HARDWARE_XIDS[number]}
            yield Diagnosis((Cause("gpu-hardware-error", fields),), seen)


RULES: Mapping[str, Rule] = {
    "driver-not-loaded": not_loaded,
    "kernel-module-missing": module_missing,
    "gpu-init-failed": init_failed,
    "no-devices-found": no_devices_found,
    "gpu-lost": lost,
    "gpu-xid": xid,
}
