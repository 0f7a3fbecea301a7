"""What a driver can do, and which GPUs it is for.

Two numbers decide. A driver runs machine code of every minor version of its CUDA major, from CUDA 11 on (minor-version
compatibility), and compiles PTX only up to the CUDA that it supports in full. So error 35 from a driver for CUDA 12.8
means a runtime of CUDA 13, while unsupported PTX may be of 12.9. And a driver ends: each GPU has a last branch.
Source: NVIDIA, CUDA Compatibility; the numbers are those of the matrix.
"""

from __future__ import annotations

from typing import NamedTuple

from envsolve.diagnose.case import Case
from envsolve.diagnose.rules.roots import Fields
from envsolve.model.capability import ComputeCapability
from envsolve.model.versions import CudaVersion

FIRST_WITH_MINOR_COMPATIBILITY = 11
"""The first CUDA major whose minor versions a driver runs all."""


class Ability(NamedTuple):
    """What a driver can do: the CUDA that it supports in full, and the newest whose machine code it runs."""

    full: CudaVersion
    newest: CudaVersion


def ability(case: Case) -> Ability | None:
    """What the case's driver can do, judged by its own number first: an image with cuda-compat tells another CUDA."""
    full = case.driver_cuda
    if case.driver is not None:
        full = case.knowledge.cuda_of(case.driver) or full
    return None if full is None else ability_for(case, full)


def ability_for(case: Case, full: CudaVersion) -> Ability:
    """What a driver can do that supports ``full``."""
    known = [it.version for it in case.knowledge.matrix.cuda.toolkits]
    return Ability(full, max((it for it in known if runs(full, it)), default=full))


def runs(full: CudaVersion, cuda: CudaVersion) -> bool:
    """Whether a driver that supports ``full`` runs machine code of ``cuda``."""
    same = cuda.major == full.major and full.major >= FIRST_WITH_MINOR_COMPATIBILITY
    return same or cuda <= full


def windows_numbers(case: Case) -> bool:
    """Whether the driver's number is one of Windows: there and in WSL."""
    return case.windows or case.wsl


def floor_of(case: Case, cuda: CudaVersion) -> str:
    """The oldest driver that runs ``cuda``; on Linux, where nothing says that it is Windows."""
    floor = case.knowledge.driver_floor(cuda, windows=windows_numbers(case))
    return "" if floor is None else str(floor)


def full_of(case: Case, cuda: CudaVersion) -> str:
    """The oldest driver that supports ``cuda`` in full, likewise."""
    full = case.knowledge.full_driver(cuda, windows=windows_numbers(case))
    return "" if full is None else str(full)


def driver_is(case: Case, can: Ability | None) -> str:
    """A sentence on the driver; empty where nothing is known of it."""
    if can is None:
        return "" if case.driver is None else f"The driver is {case.driver}, of a branch from before CUDA 9.0."
    runs = f"it supports CUDA {can.full} in full and runs builds for CUDA {can.newest} and older"
    own = cuda_beside(case, can)
    if own is not None:
        return (
            f"The text is of a driver for CUDA {can.full}, and driver {case.driver}, which is told beside it, "
            f"supports CUDA {own}: the program met another driver, before an update, on another machine, or as an "
            "old libcuda on the loader's path or in a container."
        )
    if case.driver is not None:
        return f"The driver is {case.driver}: {runs}."
    branches = [str(it.branch) for it in case.knowledge.matrix.cuda.branches if it.cuda == can.full]
    if not branches:
        return f"As for the driver, {runs}."
    return f"That is a driver of branch R{' or R'.join(sorted(branches))}: {runs}."


def cuda_beside(case: Case, can: Ability) -> CudaVersion | None:
    """The CUDA of the driver that is told beside a text which is of another, older one; None where it is that one."""
    own = None if case.driver is None else case.knowledge.cuda_of(case.driver)
    return own if own is not None and own.major > can.full.major else None


def life(case: Case, capability: ComputeCapability | None) -> tuple[str, int | None, int | None]:
    """Generation, first and last driver branch of a GPU."""
    known = None if capability is None else case.knowledge.matrix.cuda.life_of(capability)
    return ("", None, None) if known is None else (known.name, known.first_branch, known.last_branch)


def too_new_for_gpu(case: Case) -> bool:
    """Whether the driver's branch came after the last that supports the GPU."""
    last = life(case, case.capability)[2]
    return (
        case.driver is not None and last is not None and case.driver.parts[0] >= case.knowledge.matrix.cuda.after(last)
    )


def too_old_for_gpu(case: Case) -> bool:
    """Whether the driver's branch is older than the GPU."""
    first = life(case, case.capability)[1]
    return case.driver is not None and first is not None and case.driver.parts[0] < first


def gpu_fields(case: Case) -> Fields:
    """What sentences on the GPU's life with drivers speak of."""
    name, first, last = life(case, case.capability)
    found: Fields = {}
    if name:
        found["generation"] = f" ({name}, compute capability {case.capability})"
        found["gpu_words"] = f", here {case.gpus[0] if case.gpus else name} with compute capability {case.capability}"
    if first is not None:
        found["first"] = str(first)
    if last is not None:
        found["legacy"] = str(last)
    span = None if case.capability is None else case.knowledge.cuda_for(case.capability)
    if span is not None and span[1] is not None:
        found["gpu_cuda"] = f"The newest CUDA for this GPU is {span[1]}: take builds for CUDA {span[1]} or older."
    return found


def cuda_in(text: str | None) -> CudaVersion | None:
    """A CUDA version as typed, ``12`` being 12.0; None where it is none."""
    if not text:
        return None
    try:
        return CudaVersion.parse(text if "." in text else f"{text}.0")
    except ValueError:
        return None
