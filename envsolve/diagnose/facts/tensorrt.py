"""Facts on TensorRT: in which release names of its API came and went."""

from __future__ import annotations

from envsolve.diagnose.case import Case, Sighting

Lines = tuple[Sighting, ...]
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


def tensorrt_removed(_case: Case, lines: Lines) -> str | None:
    """The TensorRT in which the name of its API was removed."""
    name = lines[0].get("attribute") or ""
    every = {name, f"{lines[0].get('class')}.{name}"}
    return next((version for version, names in _REMOVED.items() if every & {*names}), None)


def tensorrt_since(_case: Case, lines: Lines) -> str | None:
    """The TensorRT in which it came."""
    return next((version for version, names in _SINCE.items() if lines[0].get("attribute") in names), None)
