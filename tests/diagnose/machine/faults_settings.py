"""Toolkits, variables and kinds of GPUs, each with the findings that they give."""

from __future__ import annotations

from envsolve.model.capability import ComputeCapability
from envsolve.model.finding import Severity
from envsolve.model.host import Gpu
from envsolve.model.versions import CudaVersion
from tests.diagnose.machine.recorded import (
    DRIVER,
    RTX_4090,
    TOOLKIT,
    WORKING,
    Case,
    gpu_on_bus,
    toolkit,
)

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
V100 = Gpu("Tesla V100-SXM2-32GB", ComputeCapability(7, 0))

TOOLKITS: dict[str, tuple[Case, dict[str, Severity]]] = {
    "two toolkits": (Case(toolkit("11.8.0")), {"several-toolkits": INFO}),
    "a variable that leads nowhere": (
        Case(environ={"CUDA_HOME": "/usr/local/cuda-11.2"}),
        {"cuda-home-wrong": WARNING},
    ),
    "a variable that leads to something else": (
        Case(environ={"CUDA_HOME": "/usr/local"}),
        {"cuda-home-wrong": WARNING},
    ),
    "cuDNN's variable leads nowhere": (
        Case(environ={"CUDNN_PATH": "/opt/cudnn"}),
        {"cuda-home-wrong": WARNING},
    ),
    "a variable and the compiler agree": (
        Case(environ={"CUDA_HOME": "/usr/local/cuda", "PATH": f"/usr/bin:/{TOOLKIT}/bin"}),
        {},
    ),
    "a variable and the compiler disagree": (
        Case(toolkit("11.8.0", "home/me/cuda"), environ={"CUDA_HOME": "/usr/local/cuda", "PATH": "/home/me/cuda/bin"}),
        {"toolkit-variables-disagree": WARNING},
    ),
    "XLA's directory has no libdevice": (
        Case(
            {f"{TOOLKIT}/nvvm": None, f"{TOOLKIT}/nvvm/libdevice/libdevice.10.bc": None},
            environ={"XLA_FLAGS": f"--xla_gpu_cuda_data_dir=/{TOOLKIT} --xla_dump_to=/tmp/x"},
        ),
        {"libdevice-missing": WARNING},
    ),
    "XLA's directory is whole": (Case(environ={"XLA_FLAGS": f"--xla_gpu_cuda_data_dir='/{TOOLKIT}'"}), {}),
    "a toolkit newer than the driver": (
        Case(
            toolkit("13.0.0", "home/me/cuda"),
            environ={"CUDA_HOME": "/home/me/cuda"},
            changes={"driver_cuda": CudaVersion(12, 4)},
        ),
        {"toolkit-newer-than-driver": WARNING},
    ),
    "a toolkit that dropped the GPU": (
        Case(
            toolkit("13.0.0", "home/me/cuda"),
            environ={"CUDA_HOME": "/home/me/cuda"},
            readings=(WORKING[0]._replace(gpus=(V100,)), WORKING[1]._replace(gpus=(V100,))),
        ),
        {"toolkit-drops-gpu": WARNING},
    ),
}


VARIABLES: dict[str, tuple[Case, dict[str, Severity]]] = {
    f"{name}={value}": (Case(environ={name: value}, readings=WORKING), {identifier: severity} if identifier else {})
    for name, value, identifier, severity in (
        ("CUDA_LAUNCH_BLOCKING", "1", "launch-blocking", WARNING),
        ("CUDA_LAUNCH_BLOCKING", "0", "", INFO),
        ("CUDA_DISABLE_PTX_JIT", "1", "ptx-compilation-disabled", WARNING),
        ("CUDA_FORCE_PTX_JIT", "1", "ptx-compilation-forced", WARNING),
        ("CUDA_MODULE_LOADING", "EAGER", "eager-module-loading", INFO),
        ("CUDA_MODULE_LOADING", "LAZY", "", INFO),
        ("CUDA_CACHE_DISABLE", "1", "jit-cache-disabled", INFO),
        ("NVIDIA_TF32_OVERRIDE", "0", "tf32-switched-off", INFO),
        ("NVIDIA_TF32_OVERRIDE", "1", "", INFO),
        ("JAX_PLATFORMS", "cpu", "framework-kept-on-cpu", WARNING),
        ("TF_FORCE_GPU_ALLOW_GROWTH", "true", "", INFO),
        ("CONDA_OVERRIDE_CUDA", "12.4", "override-differs", INFO),
        ("CONDA_OVERRIDE_CUDA", "13.0", "", INFO),
        ("CONDA_OVERRIDE_CUDA", "", "override-differs", INFO),
        ("CONDA_OVERRIDE_CUDA", "soon", "override-differs", INFO),
        ("CONDA_OVERRIDE_CUDA_ARCH", "8.9", "", INFO),
        ("CONDA_OVERRIDE_CUDA_ARCH", "9.0", "override-differs", INFO),
        ("CONDA_OVERRIDE_GLIBC", "2.17", "override-differs", INFO),
        ("UV_CUDA_DRIVER_VERSION", DRIVER, "", INFO),
        ("UV_CUDA_DRIVER_VERSION", "550.54.14", "override-differs", INFO),
        ("UV_TORCH_BACKEND", "cpu", "override-differs", INFO),
        ("UV_TORCH_BACKEND", "auto", "", INFO),
        ("ENVSOLVE_DRIVER", "550.54.14", "override-differs", INFO),
    )
}


GPU_KINDS: dict[str, tuple[Case, dict[str, Severity]]] = {
    "two kinds": (
        Case(
            gpu_on_bus("1db5", address="0000:02:00.0"),
            readings=(WORKING[0]._replace(gpus=(RTX_4090, V100)), WORKING[1]._replace(gpus=(RTX_4090, V100))),
        ),
        {"gpus-differ": WARNING},
    ),
}
