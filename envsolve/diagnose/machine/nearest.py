"""Keep the finding nearest to the cause of a problem: without a driver there is no driver library."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from envsolve.model.finding import Finding, merged, worst_first

_SYMPTOMS = (
    *("driver-library-missing", "kernel-module-not-loaded", "driver-not-initialized", "driver-unknown-error"),
    *("driver-error", "driver-too-old", "no-device", "device-nodes-missing", "gpu-not-driven", "gpus-not-listed"),
    *("no-gpu-for-framework", "no-gpu"),
)
"""Findings on a machine without a driver, or with one that does not support its GPU."""
_UNREACHED = (
    *("driver-not-initialized", "driver-unknown-error", "driver-error", "no-device", "gpus-not-listed"),
    *("driver-refused-by-system", "no-gpu-for-framework"),
)
"""Findings on a machine whose driver libraries are there and reach no GPU."""
_INCOMPATIBLE = (
    *("driver-symbol-missing", "driver-library-does-not-start", "driver-unknown-error", "driver-error"),
    *("driver-not-initialized", "no-device", "no-gpu-for-framework"),
)
_UNLOADED = ("no-driver", "kernel-module-missing", "kernel-module-refused")
_MODULES = ("open-modules-needed", "open-modules-on-old-gpu")

EXPLAINS: Mapping[str, tuple[str, ...]] = {
    "two-distributions": ("leftover-cuda-packages",),
    "wsl-1": (*_SYMPTOMS, *_UNLOADED),
    "musl": ("driver-library-missing", "driver-library-unusable"),
    "nouveau-has-gpu": (*_SYMPTOMS, *_UNLOADED),
    "gpu-reserved-for-virtual-machine": (*_SYMPTOMS, *_UNLOADED),
    "driver-too-new-for-gpu": (*_SYMPTOMS, *_UNLOADED, *_MODULES, "no-kernel-image"),
    "driver-too-old-for-gpu": (*_SYMPTOMS, *_UNLOADED, *_MODULES, "no-kernel-image"),
    "open-modules-needed": _SYMPTOMS,
    "open-modules-on-old-gpu": _SYMPTOMS,
    "no-driver": _SYMPTOMS,
    "kernel-module-missing": (*_SYMPTOMS, "kernel-module-refused"),
    "kernel-module-not-loaded": _UNREACHED,
    "container-without-gpu": (*_SYMPTOMS, "driver-library-unusable"),
    "container-without-compute": (*_SYMPTOMS, "driver-library-unusable"),
    "container-without-uvm": ("driver-unknown-error", "driver-not-initialized", "no-device", "no-gpu-for-framework"),
    "library-link-broken": ("driver-library-missing",),
    "library-empty": ("driver-library-unusable",),
    "library-damaged": ("driver-library-unusable",),
    "driver-library-missing": ("no-gpu-for-framework", "driver-too-old", "no-device"),
    "wsl-driver-not-reached": _SYMPTOMS,
    "linux-driver-in-wsl": (*_SYMPTOMS, "driver-version-mismatch", "driver-library-unusable"),
    "stub-driver-library": ("driver-library-unusable", "kernel-module-not-loaded", "no-gpu-for-framework"),
    "driver-version-mismatch": _INCOMPATIBLE,
    "stale-compat-library": (*_INCOMPATIBLE, "driver-version-mismatch"),
    "device-nodes-missing": (*_UNREACHED, "kernel-module-not-loaded"),
    "device-nodes-denied": (*_UNREACHED, "kernel-module-not-loaded", "gpu-not-permitted", "gpu-unavailable"),
    "gpu-lost": ("gpus-not-listed", "gpu-not-driven", "driver-unknown-error", "driver-error", "no-device"),
    "mig-without-instances": ("no-device", "no-gpu-for-framework"),
    "gpus-hidden": ("no-device", "no-gpu-for-framework"),
}
"""Maps a finding to those that it makes superfluous, including ids of the validation of environments."""

SETTLES: Mapping[str, tuple[str, ...]] = {
    "library-path-unused": ("cuda-on-library-path",),
    "library-mismatch": ("cuda-on-library-path",),
    "nvml-missing": ("no-device", "driver-error"),
    "ptx-compilation-forced": ("extension-without-code", "cublas-arguments", "cudnn-broken"),
}
"""Findings of a closer examination: they replace a coarser one of any severity."""

_ABOUT_FILES = ("library-link-broken", "library-empty", "library-damaged")
_DRIVER_FILE = "libcuda.so"


def nearest_the_cause(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings without those that another one explains, the most severe first.

    Two with the same id about the same thing become the more severe one, with the evidence of both. A finding can only
    be explained by one that is at least as severe.
    """
    joined = _joined(findings)
    unexplained = [it for it in joined if not any(explains(other, it) for other in joined)]
    return worst_first(unexplained)


def _joined(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    found: dict[tuple[str, str | None], Finding] = {}
    for it in findings:
        key = (it.id, it.about)
        found[key] = merged(found[key], it) if key in found else it
    return tuple(found.values())


def explains(nearer: Finding, other: Finding) -> bool:
    """Whether ``other`` follows from ``nearer``, which is at least as severe or was examined more closely."""
    if other.id in SETTLES.get(nearer.id, ()):
        return True
    if other.id not in EXPLAINS.get(nearer.id, ()) or nearer.severity.rank > other.severity.rank:
        return False
    return nearer.id not in _ABOUT_FILES or any(_DRIVER_FILE in line for line in nearer.evidence)
