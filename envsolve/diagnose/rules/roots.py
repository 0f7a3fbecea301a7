"""What is nearer to the root of a failure, and what follows from it."""

from __future__ import annotations

from envsolve.diagnose.case import Case, merged
from envsolve.diagnose.cause import Cause

Fields = dict[str, str]

NUMBERS = {
    3: "driver-not-initialized",
    10: "invalid-device",
    30: "driver-unknown-error",
    34: "stub-driver-library",
    35: "driver-too-old",
    36: "driver-too-old-for-call",
    38: "no-device",
    46: "gpu-unavailable",
    100: "no-device",
    101: "invalid-device",
    200: "invalid-kernel-image",
    214: "gpu-ecc-error",
    221: "ptx-compiler-missing",
    222: "ptx-too-new",
    303: "driver-library-missing",
    304: "driver-refused-by-system",
    500: "wsl-container-library",
    800: "container-lost-gpu",
    802: "fabric-manager-not-ready",
    803: "driver-version-mismatch",
    804: "forward-compatibility-unsupported",
    805: "mps-in-trouble",
    806: "mps-in-trouble",
    807: "mps-in-trouble",
    999: "driver-unknown-error",
}
"""The symptom of each number of cuda.h and driver_types.h, with 10, 30 and 38 as the runtime counted before CUDA 10.1.

303 is TensorFlow's and JAX's, for a libcuda that does not load; 800 as Ollama meets it in containers.
"""


ROOTS = (
    "driver-version-mismatch",
    "driver-branch-ended",
    "gpu-not-supported-by-module",
    "kernel-module-refused",
    "kernel-module-missing",
    "nouveau-has-gpu",
    "gpu-lost",
    "gpu-init-failed",
    "wsl-gpu-blocked",
    "wsl-without-adapter",
    "wsl-container-library",
    "container-runtime-failed",
    "container-lost-gpu",
    "kubernetes-runtime",
    "device-files-denied",
)
"""Why a driver is not loaded or reached."""


def seen_in(case: Case) -> frozenset[str]:
    """Every symptom of the text, those told by number included."""
    numbered = (NUMBERS.get(int(it.fields["number"])) for it in case.of("cuda-error-number"))
    return frozenset((*(it.symptom for it in case.sightings), *(it for it in numbered if it is not None)))


def explained(case: Case, symptoms: tuple[str, ...]) -> bool:
    """Whether one of ``symptoms`` is in the text, in words or by its number."""
    return not seen_in(case).isdisjoint(symptoms)


def told_with(case: Case, explanation: str, symptom: str, fields: Fields | None = None) -> Cause:
    """A cause that lines of another symptom speak for, which hold fields for it."""
    seen = case.of(symptom)
    return Cause(explanation, {**merged(seen), **(fields or {})}, evidence=tuple(it.line for it in seen))


def plainly_not_loaded(case: Case) -> bool:
    """Whether somebody says so who has tried; TensorFlow says it of every container and WSL, which lack a file."""
    return any("does not appear" not in it.line for it in case.of("driver-not-loaded"))
