"""Rules on code for the GPU that is there and that the driver refuses: driver, build or library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Rule
from envsolve.diagnose.rules.code_coverage import Gpu, gpu_of
from envsolve.diagnose.rules.code_reach import (
    TOO_NEW,
    built_with,
    capability_fields,
    reach_fields,
    runs_code_of,
    telling,
)
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform


def invalid_image(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Code that is there and does not load: driver too old, library too old, or a mistake in the library."""
    if case.saw("amd-gpu", "tensorflow-without-code", "ptxas-too-old"):
        return
    gpu = gpu_of(case, sightings)
    fields = dict(gpu.named) | built_with(case) | _driver_words(case)
    if gpu.capability is not None:
        fields |= capability_fields(case, gpu.capability)
    if case.framework == "cupy":
        fields |= _cupy_fields(case, gpu.capability)
    elif any("PTX text" in it.line or "xla" in it.line.casefold() for it in sightings):
        fields |= _XLA_IMAGE
    causes = (Cause("invalid-kernel-image", fields), Cause("invalid-kernel-image-of-library", _fit_words(case, gpu)))
    if gpu.capability is not None and _made_before(case, gpu.capability):
        of_build = fields | reach_fields(case, gpu.capability, TOO_NEW) | {"tell": telling(case)}
        yield Diagnosis((Cause("invalid-kernel-image-of-older-cuda", of_build), causes[0]), sightings)
        return
    fits = gpu.capability is not None and _fits(case, gpu.capability)
    yield Diagnosis(tuple(reversed(causes)) if fits else causes, sightings)


def _made_before(case: Case, capability: ComputeCapability) -> bool:
    """Whether the build's CUDA has no code for the GPU, not even of an older minor that would run on it."""
    cuda, span = case.built_cuda, case.knowledge.cuda_for(capability)
    if case.framework == "cupy" or cuda is None or span is None:
        return False
    return cuda < span[0] and not runs_code_of(case, capability, cuda)


_XLA_IMAGE = {
    "image_cause": "Here it is XLA (JAX, TensorFlow), which hands the driver code that ptxas made or did not make: "
    "most often the ptxas on PATH is older than the GPU (RTX 40, 8.9, and H100, 9.0, need the one of CUDA 11.8; "
    "Blackwell 12.8).",
    "image_fix": "Put the ptxas of a CUDA that knows the GPU first on PATH (package nvidia-cuda-nvcc-cu12, or "
    "/usr/local/cuda-12.x/bin), or take a newer JAX or TensorFlow that brings it.",
}


def _driver_words(case: Case) -> dict[str, str]:
    cuda = case.built_cuda
    if cuda is None:
        return {}
    floor = case.knowledge.driver_floor(cuda, windows=case.windows)
    full = case.knowledge.full_driver(cuda, windows=case.windows)
    return {"floor_words": f": CUDA {cuda} runs with {floor} or newer and is supported in full from {full} on"}


def _cupy_fields(case: Case, capability: ComputeCapability | None) -> dict[str, str]:
    """What is known of CuPy on such a GPU: it compiles for an architecture from a table of its own."""
    table = case.knowledge.matrix.framework("cupy", case.platform or Platform.LINUX_64)
    known = [it for it in table.known_bad if capability is None or capability in it.capabilities]
    if not known:
        return {}
    reasons = " ".join(dict.fromkeys(it.reason for it in known))
    return {
        "image_cause": "CuPy compiles its kernels at run time, for an architecture from a table of its own that is "
        f"older than the GPU in old versions (CuPy 10 and older on RTX 40). {reasons}",
        "image_fix": "Upgrade CuPy: v11.1 or newer for RTX 40 (8.9), 11.3 for H100 (9.0), 13.4 for Blackwell (12.0).",
    }


def _fit_words(case: Case, gpu: Gpu) -> dict[str, str]:
    if gpu.capability is None or not _fits(case, gpu.capability):
        return {}
    cuda = case.built_cuda or case.toolkit
    return {"they_fit": f"Here they fit: driver {case.driver}, CUDA {cuda}, compute capability {gpu.capability}."}


def _fits(case: Case, capability: ComputeCapability) -> bool:
    """Whether driver and CUDA are told and fit each other and the GPU, the driver being of that CUDA or newer."""
    cuda, span = case.built_cuda or case.toolkit, case.knowledge.cuda_for(capability)
    if case.driver is None or cuda is None or span is None:
        return False
    full = case.knowledge.full_driver(cuda, windows=case.windows)
    within = span[0] <= cuda and (span[1] is None or cuda <= span[1])
    return within and full is not None and case.driver.meets(full)


RULES: Mapping[str, Rule] = {"invalid-kernel-image": invalid_image}
