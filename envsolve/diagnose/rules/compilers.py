"""Rules on TensorRT: engines and libraries of other versions, names that came and went."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Rule


def tensorrt_engine(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Engines of another version; that one is of another GPU is told instead, where it is."""
    if case.saw("tensorrt-engine-of-other-gpu"):
        return
    fields = {name: value for it in reversed(sightings) for name, value in it.fields.items()}
    yield Diagnosis((Cause("tensorrt-engine-of-other-version", fields),), sightings)


def tensorrt_linked(_case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """What TensorRT was linked with, and what it has loaded."""
    for it in sightings:
        fields = dict(it.fields)
        if "tensorrt" in fields:
            fields |= {"what": "TensorRT", "linked": fields["linked_tensorrt"], "loaded": fields["loaded_tensorrt"]}
        yield Diagnosis((Cause("tensorrt-linked", fields),), (it,))


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
    "8.5": ("num_io_tensors", "get_tensor_name", "get_tensor_mode", "get_tensor_shape", "set_input_shape",
            "set_tensor_address", "execute_async_v3", "get_tensor_profile_shape"),
}  # fmt: skip
_INSTEAD = (
    "num_io_tensors, get_tensor_name, get_tensor_shape, get_tensor_mode, set_input_shape, set_memory_pool_limit, \
build_serialized_network, execute_async_v3"
)
"""What takes the place of bindings (TensorRT's migration guide from 8.x to 10.x)."""


def tensorrt_api(_case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Names of TensorRT's API whose coming or going is known."""
    for it in sightings:
        name = it.get("attribute") or ""
        every = {name, f"{it.get('class')}.{name}"}
        removed = next((version for version, names in _REMOVED.items() if every & {*names}), None)
        since = next((version for version, names in _SINCE.items() if name in names), None)
        if removed is not None:
            fields = {**it.fields, "removed": removed, "instead": _INSTEAD}
            yield Diagnosis((Cause("tensorrt-too-new-for-code", fields),), (it,))
        elif since is not None:
            yield Diagnosis((Cause("tensorrt-too-old-for-code", {**it.fields, "since": since}),), (it,))


RULES: Mapping[str, Rule] = {
    "tensorrt-engine": tensorrt_engine,
    "tensorrt-linked": tensorrt_linked,
    "tensorrt-api": tensorrt_api,
}
