"""Rules on compilers that do not know the GPU: nvcc and NVRTC of a toolkit that is too old or too new for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from packaging.version import Version

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Remedy, Rule
from envsolve.diagnose.facts.gpu_code import build_words, builds_with_code, capability_from, edge, first_told
from envsolve.diagnose.rules.code_coverage import Gpu, gpu_of, unknown_fields
from envsolve.diagnose.rules.code_reach import (
    TOO_NEW,
    TOO_OLD,
    built_with,
    capability_fields,
    reach_fields,
    taking,
    telling,
)
from envsolve.model.capability import ComputeCapability
from envsolve.model.versions import CudaVersion, parsed_version

# nvcc


def nvcc(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """An architecture that nvcc is asked for and does not have: it came later, or was dropped before."""
    arch = first_told(sightings, "arch", "value") or ""
    capability = capability_from(arch)
    span = None if capability is None else case.knowledge.cuda_for(capability)
    fermi = capability is not None and capability < (3, 0)
    if capability is None or (span is None and not fermi):
        yield Diagnosis((Cause("nvcc-unknown-architecture", {"arch": arch}),), sightings)
        return
    fields = {"arch": arch, **capability_fields(case, capability)}
    if dropped(case, span):
        fields["gpu_arch_words"] = f"{case.capability or 'nvidia-smi --query-gpu=compute_cap --format=csv shows it'}"
        yield Diagnosis((Cause("nvcc-too-new-for-architecture", fields),), sightings)
        return
    own, older = case.capability, _older(case, capability)
    if own is not None and own != capability:
        fields["own_code"] = f"TORCH_CUDA_ARCH_LIST={own}, CMAKE_CUDA_ARCHITECTURES={_number(own)}"
    elif older is not None:
        fields["older_code"] = f"TORCH_CUDA_ARCH_LIST={older}, CMAKE_CUDA_ARCHITECTURES={_number(older)}"
        if older.major != capability.major:
            fields["older_code"] += " with PTX (9.0+PTX), which the driver compiles at the first start".replace(
                "9.0", str(older)
            )
    if own is not None and own.is_tegra:
        fields["jetson_capability"] = str(own)
    yield Diagnosis((Cause("nvcc-too-old-for-architecture", fields),), sightings)


def dropped(case: Case, span: tuple[CudaVersion, CudaVersion | None] | None) -> bool:
    """Whether nvcc has dropped a capability that toolkits of ``span`` compile for, and not yet to learn it."""
    if span is None:
        return True
    if case.toolkit is not None and case.toolkit < span[0]:
        return False
    return span[1] is not None


def _older(case: Case, capability: ComputeCapability) -> ComputeCapability | None:
    """The newest capability that toolkits before the first for ``capability`` compile for."""
    span = case.knowledge.cuda_for(capability)
    before = [it for it in case.knowledge.matrix.cuda.toolkits if span is not None and it.version < span[0]]
    if case.toolkit is not None:
        before = [it for it in before if it.version <= case.toolkit]
    known = [it for toolkit in before[:1] for it in toolkit.compiles_for if it < capability and not it.is_tegra]
    return max(known, default=None)


def _number(capability: ComputeCapability) -> str:
    return f"{capability.major}{capability.minor}"


# PyTorch's own list


def torch_list(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A PyTorch that compiles extensions and came before the GPU."""
    capability = capability_from(first_told(sightings, "capability", "name"))
    if capability is None:
        return
    fields = capability_fields(case, capability) | built_with(case)
    fields |= first_for_compiler(case, capability, "pytorch")
    older = _older(case, capability)
    if older is not None:
        fields["older_list"] = f"{older}+PTX"
    yield Diagnosis((Cause("torch-list-without-architecture", fields, Remedy(("pytorch",))),), sightings)


def first_for_compiler(case: Case, capability: ComputeCapability, framework: str | None = None) -> dict[str, str]:
    """The first build of the framework whose CUDA itself compiles for ``capability``, not only for an older minor."""
    span = case.knowledge.cuda_for(capability)
    builds = builds_with_code(case, capability, framework)
    having = [it for it in builds if span and it.cuda is not None and it.cuda >= span[0]]
    if not having:
        return {}
    first = edge(having, last=False)
    return {"take": f"Take {build_words(first)} or newer: {taking(first)}."}


# NVRTC


def nvrtc(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A compiler at run time that does not know the GPU; without a GPU, both ways."""
    failing = tuple(it for it in sightings if not it.get("arch"))
    if not failing:
        return  # options alone are no error
    gpu, cuda = gpu_of(case, sightings), _cuda_of_nvrtc(case)
    arch = capability_from(first_told(sightings, "arch"))
    gpu = gpu._replace(capability=gpu.capability or arch)
    ways: tuple[str, ...] = (TOO_NEW, TOO_OLD)
    if gpu.capability is not None:
        ways = (_way(case, gpu.capability, cuda, sightings),)
    elif cuda is not None and cuda >= _DROPS_VOLTA:
        ways = (TOO_OLD,)
    causes = [_nvrtc_cause(case, gpu, way) for way in ways]
    if all(it.get("option") for it in failing):
        causes = [it._replace(fields={**it.fields, **_INVALID_OPTION}) for it in causes]
    yield Diagnosis(tuple(causes), sightings)


_DROPS_VOLTA = CudaVersion(13, 0)
_LAST_LIMITED = CudaVersion(8, 0)
"""Up to here NVRTC accepts compute_53 at most, though nvcc knows Pascal (its documentation; cupy/cupy#1048)."""
_PASCAL = ComputeCapability(6, 0)
_CUPY_WITH_13 = Version("13.6")
"""The first CuPy for CUDA 13: its release notes."""
_CUPY_IN_PATH = re.compile(r"[\\/]cupy-(\d+\.\d+[\w.]*?)-py\d")
_INVALID_OPTION = {
    "invalid_option": "NVRTC_ERROR_INVALID_OPTION says that NVRTC refused an option; most often it is the GPU's "
    "architecture (--gpu-architecture), else one that came with a newer NVRTC."
}


def _cuda_of_nvrtc(case: Case) -> CudaVersion | None:
    """The CUDA of the NVRTC that runs: as CuPy tells it, else that of the build or of the machine."""
    told = next(iter(case.of("nvrtc-version")), None)
    if told is not None:
        return CudaVersion(int(told.fields["major"]), int(told.fields["minor"]))
    return case.built_cuda or case.toolkit


def _way(case: Case, capability: ComputeCapability, cuda: CudaVersion | None, sightings: Sequence[Sighting]) -> str:
    span = case.knowledge.cuda_for(capability)
    if span is None:
        return TOO_OLD if capability < (3, 0) else TOO_NEW
    if cuda is not None and (cuda < span[0] or (cuda <= _LAST_LIMITED and capability >= _PASCAL)):
        return TOO_NEW
    if span[1] is not None and capability >= (5, 0) and _is_cupy_before_13(case, sightings):
        return TOO_NEW
    return TOO_OLD if span[1] is not None else TOO_NEW


def _is_cupy_before_13(case: Case, sightings: Sequence[Sighting]) -> bool:
    """Whether it is a CuPy that came before CUDA 13, whose NVRTC therefore has dropped nothing from 5.0 on."""
    paths = [match[1] for it in sightings if (match := _CUPY_IN_PATH.search(it.line))]
    version = parsed_version(case.version_of("cupy") or next(iter(paths), None))
    return version is not None and version < _CUPY_WITH_13


def _nvrtc_here(case: Case, capability: ComputeCapability) -> dict[str, str]:
    """What is known of an NVRTC that is too old for a capability."""
    span = case.knowledge.cuda_for(capability)
    if span is None:
        return {}
    if capability.major != _PASCAL.major:
        return _plainly_first(span[0], capability)
    return {
        "nvrtc_first": f"NVRTC of CUDA 8.0 accepts compute_53 at most, although nvcc of CUDA 8.0 knows {capability}: "
        "CUDA 9.0 is the first whose NVRTC compiles for it. Newer versions of the programs that use NVRTC (CuPy) lower "
        "what they ask for."
    }


def _plainly_first(cuda: CudaVersion, capability: ComputeCapability) -> dict[str, str]:
    return {
        "nvrtc_first": f"CUDA {cuda} is the first whose NVRTC compiles for {capability}; the NVRTC that was loaded "
        "here is older."
    }


_DROPPED_BY_13 = {
    "last_cuda": "12.9",
    "unknown_gpu": "CUDA 13.0 dropped Maxwell, Pascal and Volta (compute capability 5.0 to 7.0: GTX 9xx, GTX 10xx, "
    "P100, V100): its NVRTC compiles for 7.5 (Turing) and newer only. It is this where the GPU is one of those.",
}


def _nvrtc_cause(case: Case, gpu: Gpu, way: str) -> Cause:
    name = "nvrtc-too-old-for-gpu" if way == TOO_NEW else "nvrtc-too-new-for-gpu"
    fields = {"tell": telling(case), **gpu.named, **built_with(case)}
    cuda = _cuda_of_nvrtc(case)
    if cuda is not None:
        fields["nvrtc_here"] = f"The CUDA here is {cuda}."
    if gpu.capability is None:
        fields |= unknown_fields(case, way)
        if way == TOO_OLD and cuda is not None and cuda >= _DROPS_VOLTA:
            fields |= _DROPPED_BY_13 | reach_fields(case, ComputeCapability(7, 0), way)
        return Cause(name, fields)
    fields |= capability_fields(case, gpu.capability)
    if way == TOO_OLD:
        return Cause(name, fields | reach_fields(case, gpu.capability, way))
    fields |= _nvrtc_here(case, gpu.capability)
    remedy = Remedy(cuda=f">={fields['first_cuda']}") if "first_cuda" in fields else None
    fields |= first_for_compiler(case, gpu.capability)
    if "take" not in fields and "first_cuda" in fields:
        fields["nvrtc_take"] = f"Give the program NVRTC of CUDA {fields['first_cuda']} or newer."
    if case.framework == "pytorch":
        fields["elsewhere"] = (
            "PyTorch 1.13 and newer ask NVRTC for the newest architecture that it knows where the GPU is a newer "
            "minor of the same major (RTX 40 with CUDA 11.6 or 11.7)."
        )
    return Cause(name, fields, remedy)


RULES: Mapping[str, Rule] = {
    "nvcc-without-architecture": nvcc,
    "torch-list-without-architecture": torch_list,
    "nvrtc-without-architecture": nvrtc,
}
