"""Packages of GPU frameworks by name, and the package that a file or a module belongs to.

Installers, loaders and compilers report the same of any package; only failures of these are explained.
"""

from __future__ import annotations

import re

from packaging.version import Version

from envsolve.diagnose.case import Case
from envsolve.findings.catalogue import shipped
from envsolve.model.names import normalized

GPU_PACKAGE = re.compile(
    r"(?:py)?torch[\w.-]*|tensorflow[\w.-]*|tf-nightly[\w-]*|jax[\w-]*|onnxruntime[\w-]*|ort-nightly[\w-]*|cupy[\w-]*|"
    r"paddle[\w-]*|nvidia-[\w-]+|cuda(?:-[\w-]+|toolkit|nn)?|cudnn|cutensor|nccl|lib(?:cu|nv)[\w-]+|xformers|"
    r"flash-attn[\w-]*|vllm[\w-]*|sglang|bitsandbytes[\w-]*|triton[\w-]*|tensorrt[\w-]*|numba(?:-cuda)?|apex|deepspeed|"
    r"mmcv[\w-]*|detectron2|pytorch3d|cudf[\w-]*|cuml[\w-]*|rapids[\w-]*|dask-cu[\w-]+|spconv[\w-]*|causal-conv1d|"
    r"mamba-ssm|auto-gptq|autoawq|exllamav[23]|nunchaku|insightface|dlib|pycuda|flashinfer[\w-]*|sgl-kernel|fbgemm[\w-]*|"
    r"llama-cpp-python|ctranslate2|unsloth[\w-]*|faster-whisper|horovod|natten|sageattention|"
    r"keras|tf-keras|flax|gptqmodel|transformer-engine[\w-]*|kaolin|nvdiffrast|gsplat|fused-ssim|diff-gaussian[\w-]*|"
    r"tiny-?cuda-?nn|fairseq|torch-?(?:scatter|sparse|cluster|geometric)",
    re.IGNORECASE,
)
"""Packages that are built for CUDA or belong to what is."""

_SITE = re.compile(r"(?:site|dist)-packages[\\/]+(?P<name>[\w.+-]+)")
_VERSIONED = re.compile(r"-\d[\w.]*(?:-py\d.*)?\.egg$")


def about_gpus(case: Case, *names: str | None) -> bool:
    """Whether the text names a GPU framework, a package built for CUDA, or one of ``names`` is such a package."""
    return (
        any(is_of_gpus(name) for name in names if name)
        or bool(case.frameworks)
        or bool(case.every("gpu_name"))
        or any(is_of_gpus(name) for name in case.packages)
    )


def is_of_gpus(name: str) -> bool:
    """Whether a package is built for CUDA, or belongs to what is."""
    return GPU_PACKAGE.fullmatch(normalized(name)) is not None


def package_of(file: str | None) -> str | None:
    """The package that a file lies in, or that a module of that name belongs to; None if it is unknown."""
    if not file:
        return None
    match = _SITE.search(file)
    *folders, name = re.split(r"[\\/]", file)
    if match is not None:
        return of_module(_VERSIONED.sub("", match["name"]))
    if name.startswith("_") and name.split(".")[0] not in shipped().table("package-of-module"):
        return next((normalized(it) for it in reversed(folders) if is_of_gpus(it)), of_module(name))
    return of_module(name)


def of_module(module: str) -> str | None:
    """The package of a module, ``flash-attn`` of ``flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so``."""
    stem = module.split(".", maxsplit=1)[0]
    if (known := shipped().table("package-of-module").get(stem)) is not None:
        return str(known)
    if not stem or stem in ("_C", "_ext", "nvidia") or (stem.startswith("lib") and ".so" in module):
        return None
    if "." in module and not module.endswith((".so", ".pyd", ".dll")):
        return stem.replace("_", "-")
    return stem.replace("_", "-").strip("-")


def version_of_package(case: Case, package: str | None) -> str | None:
    """The version of a package in the case, under any spelling of its name."""
    if package is None:
        return None
    return case.packages.get(normalized(package)) or None


_OF_MAJOR = re.compile(r"[-_/\\+]cu(1[1-9])(?:\d(?!\d)|(?!\d))")
"""``nvidia-nccl-cu13``, ``site-packages/nvidia/cu13/lib``, ``+cu130``."""


def cuda_major(case: Case) -> str | None:
    """The CUDA major of the build: of the framework, or the only one that packages and paths in the text name."""
    if case.built_cuda is not None:
        return str(case.built_cuda.major)
    texts = [*case.packages, *case.packages.values(), *(it.line for it in case.sightings)]
    found = {major for text in texts for major in _OF_MAJOR.findall(text)}
    return found.pop() if len(found) == 1 else None


def torch_folder(torch: Version | None) -> str | None:
    """The folder of PyTorch's index with a build, by its local version: cu126; None for builds of others."""
    local = None if torch is None else torch.local
    return local if local is not None and re.fullmatch(r"cu\d{2,3}|cpu", local) else None
