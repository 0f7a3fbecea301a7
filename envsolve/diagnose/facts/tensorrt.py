"""Facts on TensorRT: which releases are for a GPU, which names of its API came and went, and its libraries."""

from __future__ import annotations

from envsolve.diagnose.case import Case, Lines
from envsolve.diagnose.facts.shared.gpu_code import capability_from, capability_in, first_field
from envsolve.diagnose.facts.shared.library_names import Owner, owner_of
from envsolve.diagnose.facts.shared.seen_libraries import library
from envsolve.model.capability import ComputeCapability


def tensorrt_gpu(case: Case, lines: Lines) -> ComputeCapability | None:
    """The compute capability of the GPU that TensorRT does not support: 0x601 is 6.1."""
    digits = first_field(lines, "hex")
    named = f"{int(digits[0], 16)}.{int(digits[2], 16)}" if digits else first_field(lines, "arch")
    return capability_from(named) or capability_in(case, lines)


def tensorrt_version(case: Case, _lines: Lines) -> str | None:
    """The version of TensorRT: v100700 is 10.7, v8503 is 8.5."""
    seen = case.of("tensorrt-version")
    version, code = first_field(seen, "version"), first_field(seen, "code")
    if code is None:
        return version
    digits = code.zfill(6)
    return f"{int(digits[:2])}.{int(digits[2:4])}" if len(code) > len("8503") else f"{code[0]}.{code[1]}"


def tensorrt_library(_case: Case, lines: Lines) -> str:
    """The library of TensorRT."""
    return (lines[0].get("by") if tensorrt_needs(_case, lines) else None) or library(lines[0])


def tensorrt_needs(_case: Case, lines: Lines) -> str | None:
    """What a library of TensorRT that was found needs in turn."""
    name, by = library(lines[0]), lines[0].get("by")
    return name if by is not None and by != name and owner_of(name) is not Owner.TENSORRT else None
