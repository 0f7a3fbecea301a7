"""Facts on what needs a GPU of some capability although the build has code for it: data types, kernels, TensorRT."""

from __future__ import annotations

import re

from envsolve.diagnose.case import Case, Lines
from envsolve.diagnose.facts.shared.gpu_code import capability_from, first_field, targets_from
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
_PACKAGE_OF_FRAME = re.compile(r"(?:.*[\\/])?(?:site|dist)-packages[\\/]([A-Za-z]\w*)")
_HOPPER = ComputeCapability(9, 0)


def feature_needs(case: Case, lines: Lines) -> ComputeCapability | None:
    """The compute capability that a feature needs: as the lines say it, else as it is known."""
    if needs_hopper(case, lines):
        return _HOPPER
    listed = [capability_from(it.get("needs_arch")) for it in lines]
    named = capability_from(first_field(lines, "needs", "least", "minimum", "required", "bound"))
    known = _NEEDS.get(lines[0].symptom) if lines else None
    return named or max(filter(None, listed), default=None) or (None if known is None else ComputeCapability(*known))


def needs_hopper(_case: Case, lines: Lines) -> bool:
    """Whether it is FlashAttention 3, which needs Hopper."""
    text = " ".join(it.line for it in lines if it.symptom == "flash-attention-needs-ampere").casefold()
    return "hopper" in text or "attention-3" in text


def names_no_feature(case: Case, lines: Lines) -> bool:
    """Whether no line says more exactly which feature it is."""
    features = [it for it in _NEEDS if it not in {"program-needs-capability", "flash-attention-needs-ampere"}]
    if lines[0].symptom == "kernel-needs-target":
        features.append("program-needs-capability")
    return not {it.number for it in case.of(*features)}.intersection(it.number for it in lines)


def raising_package(case: Case, lines: Lines) -> str | None:
    """The package whose code raised the error: that of the last frame before the lines that is not PyTorch's."""
    frames = (it.value for it in case.clues.get("frame", ()) if it.number <= lines[-1].number)
    named = [match[1] for it in frames if (match := _PACKAGE_OF_FRAME.search(it))]
    return next((it for it in reversed(named) if it not in {"torch", "triton", "nvidia_cutlass_dsl"}), None)


# ---------------------------------------------------------------------------------------------- kernels of one family


def kernel_targets(_case: Case, lines: Lines) -> tuple[ComputeCapability, ...]:
    """The compute capabilities that the lines say a kernel is for."""
    return targets_from(first_field(lines, "kernel_archs"))


def kernel_majors(case: Case, lines: Lines) -> tuple[int, ...]:
    """The major versions of them, which FlashInfer names alone."""
    listed = re.findall(r"\d+", first_field(lines, "kernel_majors_listed") or "")
    return tuple(dict.fromkeys((*map(int, listed), *(it.major for it in kernel_targets(case, lines)))))


def kernel_families(case: Case, lines: Lines) -> tuple[str, ...]:
    """The same, to be said: 10.x."""
    return tuple(f"{major}.x" for major in kernel_majors(case, lines))
