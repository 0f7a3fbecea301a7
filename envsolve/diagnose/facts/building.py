"""Facts on building extensions: the CUDA toolkit that a build finds, the host compiler, what is built."""

from __future__ import annotations

import re

from envsolve.diagnose.case import Case, Lines, merged
from envsolve.diagnose.facts.pytorch import pytorch_cuda
from envsolve.diagnose.facts.shared.gpu_packages import is_of_gpus
from envsolve.model.release import Source
from envsolve.model.versions import CudaVersion

_GCC_SINCE = {8: "10.1", 9: "11.0", 10: "11.1", 11: "11.4", 12: "12.0", 13: "12.4", 14: "12.8", 15: "13.0"}
"""The first CUDA that takes a gcc as host compiler (host_config.h of the toolkits, as gathered in ax3l/9489132)."""
_SINCE = {
    "compress-mode": "12.8",
    "static-global-template-stub": "12.8",
    "split-compile": "12.1",
    "c++20": "12.0",
    "native": "11.6",
    "threads": "11.2",
    "diag-suppress": "11.2",
    "c++17": "11.0",
    "extended-lambda": "11.0",
    "generate-dependencies-with-compile": "10.2",
}
"""The first CUDA whose nvcc has an option, or a value of one (its documentation and release notes)."""
_WHEELS = {
    "sageattention": "https://github.com/woct0rdho/SageAttention/releases",
    "qattn": "https://github.com/woct0rdho/SageAttention/releases",
    "flash": "https://github.com/mjun0812/flash-attention-prebuild-wheels/releases",
    "nunchaku": "https://github.com/nunchux-ai/nunchaku/releases",
    "causal-conv1d": "https://github.com/Dao-AILab/causal-conv1d/releases",
    "mamba": "https://github.com/state-spaces/mamba/releases",
}
_FOR_WINDOWS = ("sageattention", "qattn")
"""Packages whose built wheels are for Windows only."""
_DISTRIBUTIONS = {
    "flash_attn_interface": "flash-attn",
    "flashinfer": "flashinfer-python",
    "spconv": "spconv-cu126",
    "transformer_engine": "'transformer-engine[pytorch]' --no-build-isolation",
    "sgl_kernel": "sglang",
    "tensorrt": "tensorrt-cu12 --extra-index-url https://pypi.nvidia.com",
    "onnxruntime": "onnxruntime-gpu",
    "cuda.bindings": "cuda-python",
    "numba_cuda": "numba-cuda",
    "awq": "autoawq",
    "pynvml": "nvidia-ml-py",
}
"""What to install for a module of another name."""
_REPOSITORIES = {
    "nvdiffrast": "https://github.com/NVlabs/nvdiffrast.git",
    "pytorch3d": "https://github.com/facebookresearch/pytorch3d.git",
    "detectron2": "https://github.com/facebookresearch/detectron2.git",
    "tinycudann": "https://github.com/NVlabs/tiny-cuda-nn/#subdirectory=bindings/torch",
    "apex": "https://github.com/NVIDIA/apex.git",
    "kaolin": "https://github.com/NVIDIAGameWorks/kaolin.git",
}
_SIMPLE = (
    "bitsandbytes", "deepspeed", "flashinfer", "gsplat", "spconv", "transformer_engine", "sgl_kernel", "vllm",
    "tensorrt", "onnxruntime", "cuda.bindings", "numba_cuda", "awq", "gptqmodel", "pynvml",
)  # fmt: skip
_NAMES = {"FlashAttention": "flash-attn", "flash_attn": "flash-attn"}
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


def found_major(_case: Case, lines: Lines) -> str | None:
    """The major of the CUDA that nvcc is of."""
    return (merged(lines).get("found") or "").partition(".")[0] or None


def torch_builds(case: Case, lines: Lines) -> tuple[str, ...]:
    """The builds of PyTorch's index for the CUDA of nvcc: its minor, or for want of it those of its major."""
    found = merged(lines).get("found")
    if found is None:
        return ()
    major, _, minor = found.partition(".")
    builds = {it.build for it in case.knowledge.all_releases("pytorch") if it.source is Source.PYTORCH}
    same = tuple(it for it in builds if it == f"cu{major}{minor}")
    return same or tuple(sorted(it for it in builds if re.fullmatch(rf"cu{major}\d", it)))


def isolated_build(case: Case, _lines: Lines) -> bool:
    """Whether pip or uv builds in an environment that has no other package."""
    return any("pip-build-env" in step or "builds-v0" in step for step in case.every("build_step"))


def gpu_package(_case: Case, lines: Lines) -> str | None:
    """The package, built for CUDA, that the lines name, by pip's name."""
    fields = merged(lines)
    named = [it for key in ("package", "package_of_nvcc") if (it := fields.get(key))]
    return next((it for name in named if is_of_gpus(it := _NAMES.get(name, name.replace("_", "-")))), None)


def built_package(case: Case, _lines: Lines) -> str | None:
    """The package that pip or uv builds."""
    names = [it.replace("_", "-") for it in case.every("building") if it.lower() not in ("torch", "setup.py")]
    return names[-1] if names else None


def build_toolkit(case: Case, lines: Lines) -> CudaVersion | None:
    """The CUDA toolkit to build with: that of PyTorch, unless the package needs a newer one."""
    least = least_toolkit(case, lines)
    built = pytorch_cuda(case)
    return built if built is not None and (least is None or built >= CudaVersion.parse(least)) else None


def least_toolkit(_case: Case, lines: Lines) -> str | None:
    """The oldest CUDA toolkit that a package can be built with."""
    fields = merged(lines)
    since = _SINCE.get(fields.get("option") or fields.get("value") or "")
    return fields.get("least") or fields.get("least_of_nvcc") or since


def wheel_is_of_gpus(_case: Case, lines: Lines) -> bool:
    """Whether a package whose wheel could not be built is one for CUDA."""
    return is_of_gpus(merged(lines).get("wheel", ""))


def absent_package(_case: Case, lines: Lines) -> str | None:
    """The name to install of a module that is not there."""
    module = merged(lines).get("absent_module")
    return None if module is None else _DISTRIBUTIONS.get(module, module.replace("_", "-"))


def absent_repository(_case: Case, lines: Lines) -> str | None:
    """Where such a package is that is not on PyPI."""
    return _REPOSITORIES.get(merged(lines).get("absent_module") or "")


def absent_simple(_case: Case, lines: Lines) -> bool:
    """Whether pip's plain command installs it."""
    return (merged(lines).get("absent_module") or "") in _SIMPLE


def flashinfer_of_vllm(case: Case, lines: Lines) -> bool:
    """Whether FlashInfer compiles kernels while vLLM starts, which can do without."""
    texts = (*case.every("gpu_name"), *(it.line for it in lines))
    return any("vllm" in it.casefold() or "EngineCore" in it for it in texts)


def wheels_page(case: Case, _lines: Lines) -> str | None:
    """Where a package that the text names has built wheels that are not on PyPI."""
    texts = " ".join((*case.packages, *case.every("gpu_name"), *(it.line for it in case.sightings))).casefold()
    pages = _WHEELS if case.windows else {name: page for name, page in _WHEELS.items() if name not in _FOR_WINDOWS}
    return next((page for name, page in pages.items() if name in texts), None)


# ---------------------------------------------------------------------------------------------- where nvcc is


def nvcc_path(_case: Case, lines: Lines) -> str | None:
    """Where a build looks for nvcc, if it is more than its name."""
    return _path(lines) or None


def _path(lines: Lines) -> str:
    fields = merged(lines)
    path = fields.get("path") or fields.get("path_run") or fields.get("path_shell") or ""
    return path if "/" in path or "\\" in path else ""


def _home(lines: Lines) -> str:
    return re.sub(r"[\\/]+bin[\\/]+nvcc(?:\.exe)?$", "", _path(lines))


def cuda_home_list(_case: Case, lines: Lines) -> str | None:
    """CUDA_HOME where it is a list of directories, as a search path is."""
    home = _home(lines)
    return home if ":" in home and not _DRIVE.match(home) else None


def cuda_home(_case: Case, lines: Lines) -> str | None:
    """The first directory of such a list."""
    return next((it for it in _home(lines).split(":") if it.startswith("/")), None)


def bare_image(case: Case, _lines: Lines) -> str | None:
    """A CUDA image without a compiler that the text names."""
    return next((it for it in case.every("cuda_image") if re.search(r"runtime|base", it)), None)


def in_image(case: Case, lines: Lines) -> bool:
    """Whether it happened in a container, by more than the advice of a package's own message."""
    advice = re.compile(r"installing within a container|hub\.docker\.com/r/pytorch", re.IGNORECASE)
    named = any(not advice.search(it.line) for it in case.clues.get("container", ()))
    return named or bare_image(case, lines) is not None


# ---------------------------------------------------------------------------------------------- host compilers


def gcc_major(case: Case, lines: Lines) -> int | None:
    """The newest gcc that this nvcc takes."""
    fields = merged(lines)
    if "gcc" in fields:
        return int(fields["gcc"].partition(".")[0])
    if "cuda" in fields:
        return _newest_gcc(CudaVersion.parse(fields["cuda"]))
    if case.toolkit is None or "headers_of" not in fields:
        return None
    newest = _newest_gcc(case.toolkit)
    return newest if newest is not None and newest < int(fields["headers_of"]) else None


def _newest_gcc(cuda: CudaVersion) -> int | None:
    return max((gcc for gcc, since in _GCC_SINCE.items() if CudaVersion.parse(since) <= cuda), default=None)


def next_gcc(case: Case, lines: Lines) -> int | None:
    """The gcc after that."""
    major = gcc_major(case, lines)
    return None if major is None or major + 1 not in _GCC_SINCE else major + 1


def next_gcc_cuda(case: Case, lines: Lines) -> str | None:
    """The first CUDA that takes it."""
    return _GCC_SINCE.get(next_gcc(case, lines) or 0)


def late_studio(_case: Case, lines: Lines) -> bool:
    """Whether an nvcc that knows Visual Studio 2022 finds a release of it that came later."""
    studio = merged(lines).get("studio", "")
    return "2022" in studio and "2017" in studio


# ---------------------------------------------------------------------------------------------- headers


def header_name(_case: Case, lines: Lines) -> str | None:
    """The file name of a header."""
    return merged(lines).get("header", "").rpartition("/")[2] or None


def cupy_named(case: Case, _lines: Lines) -> bool:
    """Whether the text names CuPy."""
    return "cupy" in case.every("gpu_name")


def old_name(_case: Case, lines: Lines) -> str | None:
    """A name of PyTorch's C++ that newer releases do not have."""
    fields = merged(lines)
    return next((it for key in ("old", "old_gcc", "old_type") if (it := fields.get(key))), None)


def cxx_standard(_case: Case, lines: Lines) -> str | None:
    """The C++ standard that PyTorch's headers need."""
    fields = merged(lines)
    return fields.get("standard") or fields.get("standard_old")


def vllm_on_windows(case: Case, _lines: Lines) -> bool:
    """Whether it is vLLM that is installed or run on native Windows."""
    named = "vllm" in case.packages or any(it.casefold() == "vllm" for it in case.every("gpu_name"))
    return named and case.windows and not case.wsl
