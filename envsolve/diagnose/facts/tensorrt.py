"""Facts on TensorRT: which releases are for a GPU, which names of its API came and went, and its libraries."""

from __future__ import annotations

import re

from envsolve.diagnose.case import Case, Lines
from envsolve.diagnose.facts.shared.gpu_code import capability_from, capability_in, first_field
from envsolve.diagnose.facts.shared.library_names import Owner, owner_of
from envsolve.diagnose.facts.shared.seen_libraries import library
from envsolve.model.capability import ComputeCapability

_REMOVED = {
    "8": (
        "Builder.build_cuda_engine", "Builder.max_workspace_size", "Builder.fp16_mode", "Builder.int8_mode",
        "Builder.strict_type_constraints", "Builder.int8_calibrator",
    ),
    "10": (
        "get_binding_shape", "get_binding_dtype", "get_binding_name", "get_binding_index", "num_bindings",
        "binding_is_input", "set_binding_shape", "get_profile_shape", "max_workspace_size", "max_batch_size",
        "execute_async_v2", "execute_async", "execute", "build_engine", "has_implicit_batch_dimension",
        "get_binding_format", "all_binding_shapes_specified",
    ),
}  # fmt: skip
_SINCE = {
    "8.0": ("build_serialized_network",),
    "8.4": ("set_memory_pool_limit",),
    "8.5": (
        "num_io_tensors", "get_tensor_name", "get_tensor_mode", "get_tensor_shape", "set_input_shape",
        "set_tensor_address", "execute_async_v3", "get_tensor_profile_shape",
    ),
}  # fmt: skip
"""TensorRT's migration guide from 8.x to 10.x."""
_FIRST_TENSORRT = {
    ComputeCapability(8, 0): "7.1",
    ComputeCapability(8, 6): "8.0",
    ComputeCapability(8, 9): "8.5",
    ComputeCapability(9, 0): "8.5",
    ComputeCapability(10, 0): "10.8",
    ComputeCapability(12, 0): "10.8",
}
"""The first TensorRT for a capability: its release notes (10.8: Blackwell) and NVIDIA/TensorRT#2727 (8.5: RTX 40)."""


def tensorrt_removed(_case: Case, lines: Lines) -> str | None:
    """The TensorRT in which the name of its API was removed."""
    name = lines[0].get("attribute") or ""
    every = {name, f"{lines[0].get('class')}.{name}"}
    return next((version for version, names in _REMOVED.items() if every & {*names}), None)


def tensorrt_since(_case: Case, lines: Lines) -> str | None:
    """The TensorRT in which it came."""
    return next((version for version, names in _SINCE.items() if lines[0].get("attribute") in names), None)


def tensorrt_gpu(case: Case, lines: Lines) -> ComputeCapability | None:
    """The compute capability of the GPU that TensorRT does not support: 0x601 is 6.1."""
    digits = first_field(lines, "hex")
    named = f"{int(digits[0], 16)}.{int(digits[2], 16)}" if digits else first_field(lines, "arch")
    return capability_from(named) or capability_in(case, lines)


def tensorrt_first(case: Case, lines: Lines) -> str | None:
    """The first TensorRT for the GPU."""
    capability = tensorrt_gpu(case, lines)
    return None if capability is None else _FIRST_TENSORRT.get(capability)


def tensorrt_version(case: Case, _lines: Lines) -> str | None:
    """The version of TensorRT: v100700 is 10.7, v8503 is 8.5."""
    seen = case.of("tensorrt-version")
    version, code = first_field(seen, "version"), first_field(seen, "code")
    if code is None:
        return version
    digits = code.zfill(6)
    return f"{int(digits[:2])}.{int(digits[2:4])}" if len(code) > len("8503") else f"{code[0]}.{code[1]}"


def tensorrt_is_optional(_case: Case, lines: Lines) -> bool:
    """Whether TensorFlow or ONNX Runtime looks for TensorRT, which both do without."""
    optional = re.compile(r"dso_loader|dynamic library|onnxruntime|TensorrtExecutionProvider|TF-TRT", re.IGNORECASE)
    return any(optional.search(it.line) for it in lines)


def tensorrt_library(_case: Case, lines: Lines) -> str:
    """The library of TensorRT."""
    return (lines[0].get("by") if tensorrt_needs(_case, lines) else None) or library(lines[0])


def tensorrt_needs(_case: Case, lines: Lines) -> str | None:
    """What a library of TensorRT that was found needs in turn."""
    name, by = library(lines[0]), lines[0].get("by")
    return name if by is not None and by != name and owner_of(name) is not Owner.TENSORRT else None


def tensorrt_major(_case: Case, lines: Lines) -> str | None:
    """The major version of TensorRT in the name."""
    match = re.search(r"\.so\.(\d+)|_(\d+)\.dll", lines[0].get("by") or library(lines[0]))
    return None if match is None else match[1] or match[2]
