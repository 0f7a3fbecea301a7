"""Facts on what needs a GPU of some capability although the build has code for it: data types, kernels, TensorRT."""

from __future__ import annotations

from envsolve.diagnose.case import Case, Lines
from envsolve.diagnose.facts.functions import line_has
from envsolve.diagnose.facts.shared.gpu_code import capability_from, capability_in, first_field
from envsolve.model.capability import ComputeCapability

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


def feature_needs(case: Case, lines: Lines) -> ComputeCapability | None:
    """The compute capability that a feature needs: as the lines say it, else as it is known."""
    if lines and lines[0].symptom == "flash-attention-needs-ampere" and line_has(case, lines, "hopper|attention-3"):
        return _HOPPER
    listed = [capability_from(it.get("needs_arch")) for it in lines]
    named = capability_from(first_field(lines, "needs", "least", "minimum", "required", "bound"))
    known = _NEEDS.get(lines[0].symptom) if lines else None
    return named or max(filter(None, listed), default=None) or (None if known is None else ComputeCapability(*known))


def gpu_has(case: Case, lines: Lines) -> ComputeCapability | None:
    """The compute capability of the GPU, by the lines before all else."""
    return capability_from(first_field(lines, "has", "capability", "arch")) or capability_in(case, lines)
