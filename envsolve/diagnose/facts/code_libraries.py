"""Facts on lists of GPU code, on the libraries of CUDA, and on code that the driver refuses."""

from __future__ import annotations

import re

from envsolve.diagnose.case import Case, Lines
from envsolve.diagnose.facts import parts
from envsolve.diagnose.facts.code import gpu_capability
from envsolve.diagnose.facts.shared.gpu_code import (
    Build,
    builds_with_code,
    edge,
    first_field,
    runs_code_of,
    targets_from,
)
from envsolve.model.capability import CodeTarget, ComputeCapability
from envsolve.model.versions import CudaVersion

# ---------------------------------------------------------------------------------------------- lists of targets

_COMMON = ((3, 7), (5, 2), (6, 1), (7, 0), (7, 5), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0))


def _left_out(lines: Lines) -> list[ComputeCapability]:
    targets = targets_from(first_field(lines, "has"))
    gpus = map(ComputeCapability._make, _COMMON)
    return [it for it in gpus if not any(CodeTarget(target).runs_as_machine_code(it) for target in targets)]


def left_out(case: Case, lines: Lines) -> tuple[str, ...]:
    """Common GPUs that a list leaves out: 6.1 (sm_61, Pascal)."""
    return tuple(parts.named(case, it) for it in _left_out(lines))


def left_out_old(_case: Case, lines: Lines) -> ComputeCapability | None:
    """The newest of them below the list."""
    targets = targets_from(first_field(lines, "has"))
    return max((it for it in _left_out(lines) if targets and it < min(targets)), default=None)


def build_for_old(case: Case, lines: Lines) -> Build | None:
    """The newest build with code for the former."""
    capability = left_out_old(case, lines)
    having = () if capability is None else builds_with_code(case, capability)
    return Build(edge(having, last=True)) if having else None


# ---------------------------------------------------------------------------------------------- CUDA's libraries

_TURING, _MAXWELL = ComputeCapability(7, 5), ComputeCapability(5, 0)


def library_cuda(case: Case, _lines: Lines) -> CudaVersion | None:
    """The CUDA of the build, or that of the machine if nothing is known of a build with its own."""
    if case.built_cuda is not None or case.version_of(case.framework) is not None:
        return case.built_cuda
    return case.toolkit


def library_without_code(case: Case, lines: Lines) -> bool:
    """Whether the libraries of that CUDA have no code for the GPU, and nothing else says so."""
    failed = case.of("library-without-code") or lines
    capability, cuda = gpu_capability(case, failed), library_cuda(case, lines)
    if capability is None or cuda is None or case.saw("no-code-for-gpu", "cudnn-broken"):
        return False
    span = case.knowledge.cuda_for(capability)
    runs = capability != _TURING and runs_code_of(case, capability, cuda)  # cuBLAS 9 fails on Turing all the same
    return span is not None and cuda < span[0] and not runs


# ---------------------------------------------------------------------------------------------- code that is refused


def built_before_gpu(case: Case, lines: Lines) -> bool:
    """Whether the build's CUDA has no code for the GPU, not even of an older minor that would run on it."""
    capability, cuda = gpu_capability(case, lines), case.built_cuda
    span = None if capability is None else case.knowledge.cuda_for(capability)
    if case.framework == "cupy" or cuda is None or span is None or capability is None:
        return False
    return cuda < span[0] and not runs_code_of(case, capability, cuda)


_TOOLKIT = re.compile(r"toolkit|runtime|nvcc|compil|platform", re.IGNORECASE)
"""What a line says that is about a toolkit, and not about what the driver supports."""


def driver_fits_gpu(case: Case, lines: Lines) -> bool:
    """Whether driver and CUDA are known and fit each other and the GPU, the driver being of that CUDA or newer."""
    cuda, capability = case.built_cuda or case.toolkit, gpu_capability(case, lines)
    span = None if capability is None else case.knowledge.cuda_for(capability)
    if case.driver is None or cuda is None or span is None:
        return False
    is_named = any(_TOOLKIT.search(clue.line) for clue in case.clues.get("toolkit", ()))
    if case.built_cuda is None and not is_named and cuda == case.knowledge.cuda_of(case.driver):
        return False  # most often what nvidia-smi says of the driver, and no toolkit
    full = case.knowledge.full_driver(cuda, windows=case.windows)
    within = span[0] <= cuda and (span[1] is None or cuda <= span[1])
    return within and full is not None and case.driver.meets(full)
