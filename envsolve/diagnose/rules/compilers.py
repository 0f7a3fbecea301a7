"""Rules on what compiles or carries kernels of its own: XLA, Numba, PTX, bitsandbytes, RAPIDS, TensorRT."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Rule
from envsolve.diagnose.facts.library_names import Owner, owner_of
from envsolve.diagnose.rules.named import known, version_of_package
from envsolve.model.host import Platform


def libdevice(_case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Libdevice and NVVM: for XLA and for Numba the remedies differ."""
    numba = tuple(it for it in sightings if {"numba", "numba_error", "numba_table"} & {*it.fields})
    others = tuple(it for it in sightings if it not in numba)
    if numba:
        if any(it.get("numba_table") for it in numba):
            yield Diagnosis((Cause("numba-toolkit-unknown"),), numba)
            return
        missing = next((it.get("numba") for it in numba if it.get("numba")), None)
        yield Diagnosis((Cause("numba-without-nvvm", known(numba=missing)),), numba)
    if others:
        searched = "XLA looks in the current directory, in /usr/local/cuda and in the environment's packages."
        yield Diagnosis((Cause("libdevice-missing", {"searched": searched}),), others)


def ptxas(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Ptxas that is not found: fatal where the program says so, else the driver compiles."""
    if case.saw("ptxas-too-old"):
        return
    harmless = case.saw("harmless-ptxas") and not any(it.get("fatal") for it in sightings)
    yield Diagnosis((Cause("ptxas-missing-harmless" if harmless else "ptxas-missing"),), sightings)


_BEHIND_A_REMARK = 20
"""The lines of the traceback that xFormers writes behind its remark that Triton is optional."""


def no_triton(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """Triton that an import misses, unless the package says itself that it goes on without."""
    remarks = [it.number for it in case.of("harmless-optional") if "triton" in it.line.lower()]
    fatal = tuple(it for it in sightings if not any(0 <= it.number - at <= _BEHIND_A_REMARK for at in remarks))
    if fatal:
        yield Diagnosis((Cause("triton-missing"),), fatal)


def bitsandbytes(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """The library that bitsandbytes lacks, with the CUDA in its name; what that needs in turn is told by its name."""
    fields = {name: value for it in reversed(sightings) for name, value in it.fields.items()}
    looked = tuple(it for it in case.of("cuda-libraries-not-found") if "libcudart" in it.line)
    version = version_of_package(case, "bitsandbytes")
    if fields.get("of_linux"):
        words = known(of_linux=fields["of_linux"], bnb_version=version)
        yield Diagnosis((Cause("bitsandbytes-of-linux", words),), (*sightings, *looked))
        return
    if fields.get("elf") or (case.platform in _MACS and not case.gpus and case.driver is None):
        words = known(elf=fields.get("elf"), bnb_version=version)
        yield Diagnosis((Cause("bitsandbytes-on-mac", words),), (*sightings, *looked))
        return
    library = fields.get("library") or fields.get("missing")
    number = re.search(r"cuda(\d{2})(\d)", library or "")
    cuda = f"{number[1]}.{number[2]}" if number else None
    if cuda is None and any(owner_of(it.get("library") or "") is Owner.CUDA for it in case.of("library-missing")):
        return
    words = known(
        library=library if cuda else None,
        bitsandbytes=None if cuda or looked else "bitsandbytes",
        looked=None if cuda or not looked else "bitsandbytes",
        cuda_words=cuda and f"CUDA {cuda}",
        version_words=f" (bitsandbytes {version})" if version else "; bitsandbytes is too old or was built without it",
        function=fields.get("function"),
        other_cuda={"13": "130", "12": "126", "11": "118"}.get(cuda.partition(".")[0]) if cuda else None,
    )
    yield Diagnosis((Cause("bitsandbytes-without-cuda", words),), (*sightings, *looked))


_MACS = (Platform.OSX_64, Platform.OSX_ARM64)


def rapids(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """The GPU that RAPIDS wants, and the one that is there."""
    fields = {name: value for it in reversed(sightings) for name, value in it.fields.items()}
    if "gpu_found" not in fields and case.gpus and case.capability is not None:
        fields |= {"gpu_found": case.gpus[0], "capability_found": str(case.capability)}
    yield Diagnosis((Cause("rapids-gpu-too-old", fields),), sightings)


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
    "libdevice-missing": libdevice,
    "ptxas-missing": ptxas,
    "triton-not-installed": no_triton,
    "bitsandbytes-binary": bitsandbytes,
    "rapids-gpu": rapids,
    "tensorrt-engine": tensorrt_engine,
    "tensorrt-linked": tensorrt_linked,
    "tensorrt-api": tensorrt_api,
}
