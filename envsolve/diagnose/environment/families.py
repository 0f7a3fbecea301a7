"""Which packages belong to GPU stacks: frameworks, companions of a single framework, and NVIDIA's own packages."""

from __future__ import annotations

import re

from envsolve.frameworks import FRAMEWORKS, frameworks_among

_BESIDE = re.compile(r"cuda-.+|cudatoolkit|tensorrt.*|numpy")
_NVIDIA = re.compile(r"nvidia-(?P<component>[a-z0-9-]+?)(?:-cu(?P<major>\d+))?")
_COMPONENTS = {
    "cuda-runtime": "cudart",
    "cuda-cupti": "cupti",
    "cuda-nvrtc": "nvrtc",
    "nvjitlink": "nvJitLink",
    "cusparselt": "cusparseLt",
    "nvshmem": "nvshmem_host",
    "nvtx": "nvToolsExt",
    # of conda
    "cuda-cudart": "cudart",
    "libcublas": "cublas",
    "libcudnn": "cudnn",
    "libcufft": "cufft",
    "libcurand": "curand",
    "libcusolver": "cusolver",
    "libcusparse": "cusparse",
    "libnvjitlink": "nvJitLink",
}
"""Packages with another name than the file of their library."""


_PARTS = {"cublasLt": "cublas", "cufftw": "cufft", "cusolverMg": "cusolver", "nvrtc-builtins": "nvrtc"}
"""Libraries that come with another one, and have its version."""


def is_of_gpu_stacks(name: str) -> bool:
    """Whether a distribution or conda package of this normalized name matters to a GPU stack."""
    if name.startswith("nvidia-") or _BESIDE.fullmatch(name) is not None:
        return True
    return component_in(name) is not None or is_framework(name) or any(it.is_beside(name) for it in FRAMEWORKS.values())


def is_framework(name: str) -> bool:
    """Whether a distribution of this normalized name is a framework."""
    return bool(frameworks_among([name]))


def cuda_suffix(name: str) -> int | None:
    """The major of CUDA at the end of an NVIDIA package's name: 12 for nvidia-cudnn-cu12."""
    match = _NVIDIA.fullmatch(name)
    return int(match["major"]) if match is not None and match["major"] else None


def component_in(name: str) -> str | None:
    """The only library of a package, by its name: ``cudnn`` for nvidia-cudnn-cu12 and conda's libcudnn."""
    match = _NVIDIA.fullmatch(name)
    stem = match["component"] if match is not None else name
    known = ("cublas", "cudnn", "cufft", "curand", "cusolver", "cusparse", "nccl", "cutensor")
    return _COMPONENTS.get(stem) or (stem if stem in known else None)


def is_for(name: str, component: str) -> bool:
    """Whether a package is for one library only, and so has its version; parts of cuDNN count as cuDNN."""
    whole = _PARTS.get(component, component.partition("_")[0])
    return component_in(name) == whole
