"""Rules on containers that do not get the GPU or lose it, and on WSL, where the driver is that of Windows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from envsolve.diagnose.case import Case, Sighting, merged
from envsolve.diagnose.cause import Cause, Diagnosis, Rule
from envsolve.diagnose.rules.driver_absent import on_mac, windows_too_old_for_wsl
from envsolve.diagnose.rules.roots import Fields, explained, told_with


def runtime_failed(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """nvidia-container-cli by its own words; what other symptoms tell of the same line is theirs."""
    told = merged(sightings)
    said = told.get("reason", "").casefold()
    if explained(case, ("wsl-without-adapter", "driver-version-mismatch", "device-files-denied", "libdxcore-missing")):
        return
    explanation = next((name for words, name in _REASONS if re.search(words, said)), "container-runtime-failed")
    if told.get("stage") == "ldcache":
        explanation = "container-ldconfig"
    fields: Fields = {"stage": told.get("stage", ""), "reason": _cut(told.get("reason", ""))}
    causes = [Cause(explanation, fields)]
    if case.saw("snap-docker") and explanation in ("container-host-driver", "container-runtime-failed"):
        causes.insert(0, told_with(case, "snap-docker", "snap-docker"))
    elif explanation == "container-host-driver" and (case.wsl or case.windows):
        causes[:0] = (*windows_too_old_for_wsl(case), Cause("wsl-driver-not-reached"))
    yield Diagnosis(tuple(causes), sightings)


_REASONS = (
    ("cgroup|device rules|bpf_", "container-cgroup"),
    ("file exists", "container-file-exists"),
    ("unknown device", "container-device-unknown"),
    ("driver not loaded|load library failed|driver error|cuda error|nvml error|driver rpc", "container-host-driver"),
)


_LONGEST_REASON = 160


def _cut(reason: str) -> str:
    """The reason without what the runtime wraps around it."""
    text = re.split(r'\\+n|\\+"|: unknown\b(?! device)|", ', reason)[0].strip(" .\\\"'")
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"


def dxcore(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """WSL's library that a sandbox hides."""
    missing = Cause("libdxcore-missing")
    if case.saw("snap-docker"):
        yield Diagnosis((told_with(case, "snap-docker", "snap-docker"), missing), sightings)
    elif not explained(case, ("wsl-without-adapter",)):
        yield Diagnosis((missing,), sightings)


def toolkit_missing(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Docker without NVIDIA's runtime, or with a part of it."""
    told = merged(sightings)
    if on_mac(case):
        yield Diagnosis((Cause("macos-without-cuda"),), sightings)
        return
    if case.windows and not case.wsl and not told:
        yield Diagnosis((Cause("container-on-windows"), Cause("container-toolkit-missing")), sightings)
        return
    fields: Fields = {}
    if "runtime" in told:
        fields["missing"] = "The runtime nvidia is not registered in Docker's daemon.json."
    if "cdi" in told:
        fields["missing"] = "Docker 29 looks for GPUs by CDI and finds no specification of a GPU vendor."
    if name := told.get("program") or told.get("hook"):
        fields["missing"] = f"The program {name} is not there: the toolkit's packages are missing, old or incomplete."
    toolkit = Cause("container-toolkit-missing", fields)
    snap = (told_with(case, "snap-docker", "snap-docker"),) if case.saw("snap-docker") else ()
    yield Diagnosis((*snap, toolkit), sightings)


def cdi_unknown(_case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A CDI device without a specification."""
    told = merged(sightings)
    device = (told.get("device") or told.get("file") or "").rstrip(":.,\"'")
    yield Diagnosis((Cause("cdi-device-unknown", {"device": device} if device else {}),), sightings)


def image_without_driver(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """What images and apptainer say at their start; on a Mac no container has a GPU."""
    if on_mac(case):
        yield Diagnosis((Cause("macos-without-cuda"),), sightings)
        return
    nv = tuple(it for it in sightings if "nv files" in it.line.casefold())
    others = tuple(it for it in sightings if it not in nv)
    if nv:
        yield Diagnosis((Cause("apptainer-without-driver"),), nv)
    if others:
        yield Diagnosis((Cause("container-without-gpu"),), others)


def capability_missing(_case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A part of the driver that the container did not ask for."""
    told = merged(sightings)
    library = told.get("library") or told.get("other", "")
    graphics = re.search(r"optix|GLX|EGL", library, re.IGNORECASE)
    fields: Fields = {"library": library, "capability": "graphics" if graphics else "video"}
    yield Diagnosis((Cause("driver-capability-missing", fields),), sightings)


def lost_gpu(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """NVML's unknown error, of containers mostly; error 800 only where it happened in one."""
    by_number = all(it.symptom == "cuda-error-number" for it in sightings)
    if by_number and not case.container:
        return
    causes = (Cause("container-lost-gpu"),)
    yield Diagnosis(causes if case.container else (*causes, Cause("gpu-stuck")), sightings)


def wsl_blocked(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """NVML in WSL: the mode of the GPU in Windows, or Windows itself."""
    tcc, blocked = told_with(case, "wsl-tcc-mode", "tcc-mode"), Cause("wsl-gpu-blocked")
    if case.saw("tcc-mode"):
        yield Diagnosis((tcc,), sightings)
    elif case.saw("windows-without-gpu-for-wsl"):
        yield Diagnosis((*windows_too_old_for_wsl(case), blocked), sightings)
    else:
        yield Diagnosis((blocked, tcc), sightings)


RULES: Mapping[str, Rule] = {
    "container-runtime-failed": runtime_failed,
    "container-toolkit-missing": toolkit_missing,
    "libdxcore-missing": dxcore,
    "cdi-device-unknown": cdi_unknown,
    "image-without-driver": image_without_driver,
    "driver-capability-missing": capability_missing,
    "container-lost-gpu": lost_gpu,
    "wsl-gpu-blocked": wsl_blocked,
}
