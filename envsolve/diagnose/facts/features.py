"""Facts on what needs a GPU of some capability although the build has code for it: data types, kernels, TensorRT."""

from __future__ import annotations

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.facts.gpu_code import capability_from, capability_told, first_told, named_with_sm
from envsolve.model.capability import ComputeCapability
from envsolve.model.versions import CudaVersion

Lines = tuple[Sighting, ...]
_NEEDS = {
    "bfloat16-needs-ampere": (8, 0),
    "flash-attention-needs-ampere": (8, 0),
    "fp8-needs-ada": (8, 9),
    "int8-needs-turing": (7, 5),
    "program-needs-capability": (7, 0),
    "quantization-needs-gpu": (7, 5),
    "triton-needs-volta": (7, 0),
}
"""What a feature needs, where the text does not say it."""
_HOPPER = ComputeCapability(9, 0)
_FIRST_TENSORRT = {
    ComputeCapability(8, 0): "7.1",
    ComputeCapability(8, 6): "8.0",
    ComputeCapability(8, 9): "8.5",
    ComputeCapability(9, 0): "8.5",
    ComputeCapability(10, 0): "10.8",
    ComputeCapability(12, 0): "10.8",
}
"""The first TensorRT for a capability: its release notes (10.8: Blackwell) and NVIDIA/TensorRT#2727 (8.5: RTX 40)."""
_TENSORRT_10_LEAST = ComputeCapability(7, 5)


def feature_needs(case: Case, lines: Lines) -> ComputeCapability | None:
    """The compute capability that a feature needs: as the lines say it, else as it is known."""
    if needs_hopper(case, lines):
        return _HOPPER
    listed = [capability_from(it.get("needs_arch")) for it in lines]
    told = capability_from(first_told(lines, "needs", "least", "minimum", "required", "bound"))
    known = _NEEDS.get(lines[0].symptom) if lines else None
    return told or max(filter(None, listed), default=None) or (None if known is None else ComputeCapability(*known))


def feature_needs_named(case: Case, lines: Lines) -> str | None:
    """The same with its names: 8.0 (sm_80, Ampere)."""
    needs = feature_needs(case, lines)
    return None if needs is None else named_with_sm(case, needs)


def needs_hopper(_case: Case, lines: Lines) -> bool:
    """Whether it is FlashAttention 3, which needs Hopper."""
    text = " ".join(it.line for it in lines if it.symptom == "flash-attention-needs-ampere").casefold()
    return "hopper" in text or "attention-3" in text


def needs_ampere(case: Case, lines: Lines) -> bool:
    """Whether Turing, Volta and Pascal are too old for it."""
    needs = feature_needs(case, lines)
    return needs is not None and needs >= (8, 0)


def gpu_has(case: Case, lines: Lines) -> ComputeCapability | None:
    """The compute capability of the GPU, by the lines before all else."""
    return capability_from(first_told(lines, "has", "capability", "arch")) or capability_told(case, lines)


def gpu_has_named(case: Case, lines: Lines) -> str | None:
    """The same with its names: 7.5 (sm_75, Turing)."""
    has = gpu_has(case, lines)
    return None if has is None else named_with_sm(case, has)


def gpu_has_number(case: Case, lines: Lines) -> str | None:
    """The same as CMake writes it: 86."""
    has = gpu_has(case, lines)
    return None if has is None else f"{has.major}{has.minor}"


def gpu_has_enough(case: Case, lines: Lines) -> bool:
    """Whether the GPU has what the feature needs."""
    has, needs = gpu_has(case, lines), feature_needs(case, lines)
    return has is not None and needs is not None and has >= needs


def gpu_has_less(case: Case, lines: Lines) -> bool:
    """Whether the GPU has less than the feature needs."""
    has, needs = gpu_has(case, lines), feature_needs(case, lines)
    return has is not None and needs is not None and has < needs


def feature_first_cuda(case: Case, lines: Lines) -> CudaVersion | None:
    """The first CUDA that compiles for the GPU."""
    has = gpu_has(case, lines)
    span = None if has is None else case.knowledge.cuda_for(has)
    return None if span is None else span[0]


def names_no_feature(case: Case, lines: Lines) -> bool:
    """Whether no line says more exactly which feature it is."""
    features = [it for it in _NEEDS if it not in {"program-needs-capability", "flash-attention-needs-ampere"}]
    if lines[0].symptom == "kernel-needs-target":
        features.append("program-needs-capability")
    return not {it.number for it in case.of(*features)}.intersection(it.number for it in lines)


# ---------------------------------------------------------------------------------------------- TensorRT


def tensorrt_gpu(case: Case, lines: Lines) -> ComputeCapability | None:
    """The compute capability of the GPU that TensorRT does not support: 0x601 is 6.1."""
    digits = first_told(lines, "hex")
    told = f"{int(digits[0], 16)}.{int(digits[2], 16)}" if digits else first_told(lines, "arch")
    return capability_from(told) or capability_told(case, lines)


def tensorrt_gpu_named(case: Case, lines: Lines) -> str | None:
    """The same with its names."""
    capability = tensorrt_gpu(case, lines)
    return None if capability is None else named_with_sm(case, capability)


def tensorrt_dropped_gpu(case: Case, lines: Lines) -> bool:
    """Whether newer releases of TensorRT no longer support the GPU."""
    capability = tensorrt_gpu(case, lines)
    return capability is not None and capability < _TENSORRT_10_LEAST


def tensorrt_first(case: Case, lines: Lines) -> str | None:
    """The first TensorRT for the GPU."""
    capability = tensorrt_gpu(case, lines)
    return None if capability is None else _FIRST_TENSORRT.get(capability)


def tensorrt_cuda(case: Case, lines: Lines) -> CudaVersion | None:
    """The first CUDA that compiles for the GPU."""
    capability = tensorrt_gpu(case, lines)
    span = None if capability is None else case.knowledge.cuda_for(capability)
    return None if span is None else span[0]


def tensorrt_version(case: Case, _lines: Lines) -> str | None:
    """The version of TensorRT: v100700 is 10.7, v8503 is 8.5."""
    seen = case.of("tensorrt-version")
    version, code = first_told(seen, "version"), first_told(seen, "code")
    if code is None:
        return version
    digits = code.zfill(6)
    return f"{int(digits[:2])}.{int(digits[2:4])}" if len(code) > len("8503") else f"{code[0]}.{code[1]}"
