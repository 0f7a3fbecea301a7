"""The versions that CUDA libraries report, by calls that need no GPU, no driver and no handle.

The calls are those of NVIDIA's headers: cuda_runtime_api.h, cublas_api.h, cublasLt.h, cudnn_version.h and its parts,
cufft.h, curand.h, cusolver_common.h, cusparse.h, nccl.h, nvJitLink.h, nvrtc.h.
"""

from __future__ import annotations

import ctypes
import os
import re

_NAME = re.compile(
    r"(?:lib)?(?P<component>cudart|cublasLt|cublas|cudnn(?:_[a-z_]+?)?|cufftw?|curand|cusolverMg|cusolver|cusparseLt"
    r"|cusparse|nccl|nvrtc-builtins|nvrtc|nvJitLink|cupti|nvToolsExt|nvtx3interop|nvfatbin|nvshmem_host|cufile"
    r"|cutensor(?:Mg)?|cuda|nvidia-[a-z-]+|nvcuda|nvml)"
    r"(?:-[0-9a-f]{8})?(?:64)?(?:_?\d[\d_.]*?)?(?:\.alt)?(?:\.so[.\d]*|\.dll)$",
    re.IGNORECASE,
)
_PROPERTY = ("cublas", "cublasLt", "cufft", "curand", "cusolver", "cusparse")
_MAJOR, _MINOR, _PATCH = 0, 1, 2
_CUDNN_9 = 90000
"""Since 9.0 the minor version has two digits (cudnn_version.h)."""
_NCCL_2_9 = 10000
"""Since 2.9 the minor version has two digits (nccl.h)."""


def component_of(path: str) -> str | None:
    """The component in a file, by its name: ``cudart`` for ``libcudart.so.12``; None if it is not CUDA's."""
    match = _NAME.match(os.path.basename(path))
    return None if match is None else match.group("component")


def version_of(component: str, library: ctypes.CDLL) -> str | None:
    """The version that a loaded library reports; None if it has no such call."""
    try:
        if component in _PROPERTY:
            return _property(component, library)
        if component in _CALLS:
            return _CALLS[component](library)
    except AttributeError:
        pass  # a release without the call
    return None


def _property(component: str, library: ctypes.CDLL) -> str | None:
    call = getattr(library, component + "GetProperty")
    call.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_int)]
    number = ctypes.c_int()
    parts = []
    for part in (_MAJOR, _MINOR, _PATCH):
        if call(part, ctypes.byref(number)) != 0:
            return None
        parts.append(str(number.value))
    return ".".join(parts)


def _one_number(name: str, library: ctypes.CDLL) -> int | None:
    number = ctypes.c_int()
    return number.value if getattr(library, name)(ctypes.byref(number)) == 0 else None


def _two_numbers(name: str, library: ctypes.CDLL) -> str | None:
    major, minor = ctypes.c_int(), ctypes.c_int()
    if getattr(library, name)(ctypes.byref(major), ctypes.byref(minor)) != 0:
        return None
    return "{}.{}".format(major.value, minor.value)


def _nv_jit_link(library: ctypes.CDLL) -> str | None:
    return _two_numbers("nvJitLinkVersion", library)


def _nvrtc(library: ctypes.CDLL) -> str | None:
    return _two_numbers("nvrtcVersion", library)


def _cudart(library: ctypes.CDLL) -> str | None:
    number = _one_number("cudaRuntimeGetVersion", library)
    return None if number is None else "{}.{}".format(number // 1000, number % 1000 // 10)


def _cudnn(library: ctypes.CDLL) -> str | None:
    call = library.cudnnGetVersion
    call.restype = ctypes.c_size_t
    number = int(call())
    thousands = 10000 if number >= _CUDNN_9 else 1000
    return "{}.{}.{}".format(number // thousands, number % thousands // 100, number % 100)


def _nccl(library: ctypes.CDLL) -> str | None:
    number = _one_number("ncclGetVersion", library)
    if number is None:
        return None
    thousands = 10000 if number >= _NCCL_2_9 else 1000
    return "{}.{}.{}".format(number // thousands, number % thousands // 100, number % 100)


_CALLS = {
    "cudart": _cudart,
    "cudnn": _cudnn,
    "nccl": _nccl,
    "nvJitLink": _nv_jit_link,
    "nvrtc": _nvrtc,
}
