"""Rules on GPUs that a process does not see: no driver's library, no device, hidden ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from envsolve.diagnose.case import Case, Sighting, merged
from envsolve.diagnose.cause import Cause, Diagnosis, Remedy, Rule
from envsolve.diagnose.rules.driver_ability import ability, driver_is, gpu_fields, too_new_for_gpu
from envsolve.diagnose.rules.driver_absent import no_gpu_allocated, no_library, on_mac, windows_too_old_for_wsl
from envsolve.diagnose.rules.roots import ROOTS, Fields, explained, plainly_not_loaded, seen_in, told_with
from envsolve.model.versions import parsed_version


def library_missing(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """No libcuda, or no NVML: the driver is not there, or not for this process."""
    if explained(case, ("kubernetes-runtime", "container-runtime-failed", "wsl-gpu-blocked", "amd-gpu")):
        return
    fields = merged(sightings)
    yield Diagnosis(tuple(no_library(case, fields)), sightings)


_RAY = re.compile(r"\bray::|\(ray\b|RayWorker|raylet|\bray\.exceptions", re.IGNORECASE)


_ABOVE_NO_DEVICE = (
    *ROOTS,
    "no-devices-found",
    "driver-library-missing",
    "libcuda-not-found-by-cudnn",
    "forward-compatibility-unsupported",
    "fabric-manager-not-ready",
    "stub-driver-library",
    "driver-unknown-error",
    "image-without-driver",
    "forked-cuda",
)
"""Why no device is found."""


def no_device(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A driver that answers and finds no GPU; on a Mac, unless the text is of Linux too, there is none to look for."""
    if explained(case, _ABOVE_NO_DEVICE) or plainly_not_loaded(case):
        return
    mac = (Cause("macos-without-cuda"),) if on_mac(case) else ()
    only_mac = mac and (case.given.platform is not None or case.told("linux") is None)
    others = () if only_mac else tuple(_of_no_device(case, sightings))
    yield Diagnosis((*mac, *others)[:4], sightings)


def _of_no_device(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Cause]:
    fields: Fields = {"driver_is": driver_is(case, ability(case)), **gpu_fields(case)}
    hidden, allocated = Cause("gpus-hidden"), no_gpu_allocated(case)
    none = Cause("no-device", fields)
    if case.saw("gpus-hidden"):
        yield from (_hidden(case), none)
    elif (case.told("available") or "").casefold() == "true":
        yield from (hidden, none)
    elif too_new_for_gpu(case):
        yield Cause("driver-too-new-for-gpu", fields)
        yield none
    elif case.wsl:
        yield from windows_too_old_for_wsl(case)
        yield from (none, Cause("wsl-driver-not-reached"), hidden)
    elif case.jetson:
        yield from (Cause("jetson-device-files"), none)
    elif case.saw("slurm", "colab"):
        yield from (allocated, hidden, none)
    elif case.container:
        yield from (Cause("container-without-gpu"), hidden, none)
    elif any(_RAY.search(it.line) for it in sightings):
        yield from (hidden, allocated, none)
    elif case.saw("driver-not-loaded"):
        yield from (Cause("kernel-module-not-loaded", fields), Cause("container-without-gpu"), hidden)
    else:
        yield from (hidden, none, allocated)


def invalid_device(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A GPU number that is not there; with MIG a process has one device whatever it counts."""
    wrong = Cause("invalid-device", merged(sightings))
    if case.saw("mig-devices"):
        yield Diagnosis((told_with(case, "mig-one-device", "mig-devices"), wrong), sightings)
    elif any("device <" in it.line for it in sightings):
        yield Diagnosis((wrong, Cause("mig-one-device")), sightings)
    else:
        yield Diagnosis((wrong,), sightings)


_COUNTS_NUMBERS_ONLY = (1, 13)
"""The PyTorch that reads only numbers in CUDA_VISIBLE_DEVICES: pytorch/pytorch#84879 to #92315."""


def device_count(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A count of GPUs that surprises: none of those named by UUID, or one of several MIG devices."""
    by_uuid = case.of("visible-by-uuid")
    none = tuple(it for it in sightings if it.get("count") in {"0", "zero"})
    others = tuple(it for it in sightings if it not in none)
    if none and by_uuid:
        yield Diagnosis(tuple(_of_uuid(case)), (*none, *by_uuid[:1]))
    elif others and case.saw("mig-devices") and not explained(case, ("invalid-device",)):
        yield Diagnosis((told_with(case, "mig-one-device", "mig-devices"),), others)


def _of_uuid(case: Case) -> Iterator[Cause]:
    fields: Fields = merged(case.of("visible-by-uuid"))
    if fields.get("kind") == "MIG":
        fields["mig_words"] = " (MIG)"
    version = parsed_version(case.version_of("pytorch"))
    if case.framework in {None, "pytorch"} and (version is None or version.release[:2] == _COUNTS_NUMBERS_ONLY):
        yield Cause("uuid-not-counted", fields, Remedy(frameworks=("pytorch>=2.0",)))
    if version is None or version.release[:2] != _COUNTS_NUMBERS_ONLY:
        yield Cause("uuid-not-there", fields)


def _hidden(case: Case) -> Cause:
    seen = case.of("gpus-hidden")
    value = (seen[0].get("value") or "").strip("'\" ") or "empty"
    return Cause("gpus-hidden", {"value": value}, evidence=tuple(it.line for it in seen))


def hidden(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """GPUs hidden by a variable: told of its own only beside another trouble; with no device it is its cause."""
    if case.saw("driver-too-old", "cuda-unavailable") and "no-device" not in seen_in(case):
        yield Diagnosis((_hidden(case),), sightings)


RULES: Mapping[str, Rule] = {
    "driver-library-missing": library_missing,
    "no-device": no_device,
    "invalid-device": invalid_device,
    "gpus-hidden": hidden,
    "device-count": device_count,
}
