"""Which libraries of a framework load CUDA's, which they open by name later, and which hold its kernels.

Patterns are of files below the directory that the framework's modules are in. Libraries that are opened by name go by
their names in libraries.toml, because the file name depends on the CUDA that the framework was built for.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Preload(StrEnum):
    """Whether a framework loads CUDA's libraries from the packages of NVIDIA by their paths, before it needs them."""

    NEVER = "never"
    AFTER_FAILURE = "after-failure"
    """Only where the loader has not found them."""
    LISTED = "listed"
    """Always, those that it opens by name."""
    WITH_DEPENDENCIES = "with-dependencies"
    """Always, each after what it needs, as cuda-pathfinder does."""
    ASKED = "asked"
    """Where the program calls for it."""


class Opened(NamedTuple):
    """Libraries that the file ``caller`` opens by name; those that are not ``required`` serve few programs."""

    caller: str
    libraries: tuple[str, ...]
    required: bool = True


class FrameworkLibraries(NamedTuple):
    """One framework. ``roots`` are loaded in order, and by the import alone where ``on_import`` says so.

    ``dll_roots`` are the same on Windows, ``dll_directories`` what it adds with os.add_dll_directory. ``code`` are the
    libraries with its own kernels; none for a framework that compiles them when they are used. ``seen`` says where.
    """

    name: str
    title: str
    package: str
    roots: tuple[str, ...]
    code: tuple[str, ...]
    dll_roots: tuple[str, ...]
    dll_directories: tuple[str, ...]
    on_import: bool
    preload: Preload
    opened: tuple[Opened, ...]
    seen: str


_TOOLKIT = ("cudart", "cublas", "cublasLt", "cufft", "cusparse")
_CUPY_MODULES = ("cublas", "curand", "cusolver", "cusparse")
_NVIDIA_DLLS = ("nvidia/*/bin", "nvidia/*/bin/x86_64")

FRAMEWORK_LIBRARIES = (
    FrameworkLibraries(
        name="pytorch",
        title="PyTorch",
        package="torch",
        roots=("torch/lib/libtorch_global_deps.so", "torch/_C.*.so", "torch/lib/libtorch_cuda_linalg.so"),
        code=("torch/lib/libtorch_cuda.so", "torch/lib/libtorch_cuda_c*.so", "torch/lib/torch_cuda*.dll"),
        dll_roots=("torch/lib/torch_cuda.dll", "torch/lib/torch_python.dll"),
        dll_directories=("torch/lib", *_NVIDIA_DLLS),
        on_import=True,
        preload=Preload.AFTER_FAILURE,
        opened=(),
        seen="torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl: DT_NEEDED, torch/__init__.py _load_global_deps, "
        "_preload_cuda_deps",
    ),
    FrameworkLibraries(
        name="tensorflow",
        title="TensorFlow",
        package="tensorflow",
        roots=("tensorflow/libtensorflow_framework.so.2", "tensorflow/libtensorflow_cc.so.2"),
        code=("tensorflow/libtensorflow_cc.so.2", "tensorflow/python/_pywrap_tensorflow_internal.so"),
        dll_roots=("tensorflow/python/_pywrap_tensorflow_common.dll",),
        dll_directories=(),
        on_import=True,
        preload=Preload.NEVER,
        opened=(
            Opened("tensorflow/libtensorflow_framework.so.2", (*_TOOLKIT, "cudnn")),
            Opened("tensorflow/libtensorflow_cc.so.2", ("cusolver",)),
            Opened("tensorflow/libtensorflow_framework.so.2", ("cupti", "nccl"), required=False),
        ),
        seen="tensorflow-2.21.0-cp311-cp311-manylinux_2_27_x86_64.whl: DT_RUNPATH and strings of both "
        "libraries; tsl/platform/default/dso_loader.cc",
    ),
    FrameworkLibraries(
        name="jax",
        title="JAX",
        package="jax_plugins/xla_cuda*",
        roots=("jax_plugins/xla_cuda*/xla_cuda_plugin.so",),
        code=("jax_plugins/xla_cuda*/xla_cuda_plugin.so", "jax_cuda*_plugin/_solver.so", "jax_cuda*_plugin/_linalg.so"),
        dll_roots=(),
        dll_directories=(),
        on_import=False,
        preload=Preload.LISTED,
        opened=(
            Opened("jax_plugins/xla_cuda*/xla_cuda_plugin.so", (*_TOOLKIT, "cusolver", "cudnn", "cupti")),
            Opened("jax_plugins/xla_cuda*/xla_cuda_plugin.so", ("nccl", "nvrtc"), required=False),
        ),
        seen="jax_cuda12_pjrt-0.12.0.1: DT_RUNPATH and strings of xla_cuda_plugin.so; _load_nvidia_libraries beside it",
    ),
    FrameworkLibraries(
        name="cupy",
        title="CuPy",
        package="cupy",
        roots=tuple(f"cupy_backends/cuda/libs/{name}.*.so" for name in _CUPY_MODULES),
        code=(),
        dll_roots=tuple(f"cupy_backends/cuda/libs/{name}.*.pyd" for name in _CUPY_MODULES),
        dll_directories=_NVIDIA_DLLS,
        on_import=False,
        preload=Preload.WITH_DEPENDENCIES,
        opened=(),
        seen="cupy_cuda12x-14.2.0-cp311-cp311-manylinux2014_x86_64.whl: DT_NEEDED without any search path, "
        "cupy_backends/cuda/libs/__init__.py (cuda.pathfinder)",
    ),
    FrameworkLibraries(
        name="onnxruntime",
        title="ONNX Runtime",
        package="onnxruntime",
        roots=("onnxruntime/capi/libonnxruntime_providers_cuda.so",),
        code=("onnxruntime/capi/libonnxruntime_providers_cuda.so", "onnxruntime/capi/onnxruntime_providers_cuda.dll"),
        dll_roots=("onnxruntime/capi/onnxruntime_providers_cuda.dll",),
        dll_directories=(),
        on_import=False,
        preload=Preload.ASKED,
        opened=(),
        seen="onnxruntime_gpu-1.31.1-cp311-cp311-manylinux_2_28_x86_64.whl: DT_NEEDED without any search path, "
        "onnxruntime/__init__.py preload_dlls",
    ),
    FrameworkLibraries(
        name="paddlepaddle",
        title="PaddlePaddle",
        package="paddle",
        roots=("paddle/base/libpaddle.so",),
        code=("paddle/libs/libphi*.so", "paddle/base/libpaddle.so"),
        dll_roots=("paddle/base/libpaddle.pyd",),
        dll_directories=("paddle/libs", *_NVIDIA_DLLS),
        on_import=True,
        preload=Preload.NEVER,
        opened=(),
        seen="paddlepaddle_gpu-2.6.2-cp311-cp311-manylinux1_x86_64.whl: DT_NEEDED; CUDA's libraries are opened from "
        "directories that flags name",
    ),
)

CUDNN_PARTS = {
    "9": ("graph", "ops", "cnn", "adv", "heuristic", "engines_precompiled", "engines_runtime_compiled"),
    "8": ("ops_infer", "cnn_infer", "adv_infer"),
}
"""What libcudnn.so opens by name, by major version (DT_NEEDED and strings of the wheels of 8.9.7 and 9.10.2)."""
