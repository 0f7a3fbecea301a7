"""Facts on what needs a GPU of some capability although the build has code for it: data types, kernels, TensorRT."""

from __future__ import annotations

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.facts.gpu_code import capability_from, capability_told, first_told
from envsolve.model.capability import ComputeCapability

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


def feature_needs(case: Case, lines: Lines) -> ComputeCapability | None:
    """The compute capability that a feature needs: as the lines say it, else as it is known."""
    if needs_hopper(case, lines):
        return _HOPPER
    listed = [capability_from(it.get("needs_arch")) for it in lines]
    told = capability_from(first_told(lines, "needs", "least", "minimum", "required", "bound"))
    known = _NEEDS.get(lines[0].symptom) if lines else None
    return told or max(filter(None, listed), default=None) or (None if known is None else ComputeCapability(*known))


def needs_hopper(_case: Case, lines: Lines) -> bool:
    """Whether it is FlashAttention 3, which needs Hopper."""
    text = " ".join(it.line for it in lines if it.symptom == "flash-attention-needs-ampere").casefold()
    return "hopper" in text or "attention-3" in text


def gpu_has(case: Case, lines: Lines) -> ComputeCapability | None:
    """The compute capability of the GPU, by the lines before all else."""
    return capability_from(first_told(lines, "has", "capability", "arch")) or capability_told(case, lines)


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


def tensorrt_first(case: Case, lines: Lines) -> str | None:
    """The first TensorRT for the GPU."""
    capability = tensorrt_gpu(case, lines)
    return None if capability is None else _FIRST_TENSORRT.get(capability)


def tensorrt_version(case: Case, _lines: Lines) -> str | None:
    """The version of TensorRT: v100700 is 10.7, v8503 is 8.5."""
    seen = case.of("tensorrt-version")
    version, code = first_told(seen, "version"), first_told(seen, "code")
    if code is None:
        return version
    digits = code.zfill(6)
    return f"{int(digits[:2])}.{int(digits[2:4])}" if len(code) > len("8503") else f"{code[0]}.{code[1]}"
