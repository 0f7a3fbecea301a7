"""An environment on disk for the static checks: frameworks in the layout of their wheels, with libraries of gcc."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from envsolve.diagnose.environment.scene import Scene
from envsolve.matrix import Matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Gpu, GpuStatus, Host, Platform
from envsolve.model.versions import LibcVersion
from envsolve.validation.inventory import Distribution, Inventory
from envsolve.validation.report import StaticReport
from tests.binary.device_library import device_library
from tests.scripts.fat_binary import fat_binary

NVIDIA = {
    "libcudart.so.12": "nvidia/cuda_runtime/lib",
    "libcublas.so.12": "nvidia/cublas/lib",
    "libcublasLt.so.12": "nvidia/cublas/lib",
    "libcudnn.so.9": "nvidia/cudnn/lib",
    "libcudnn_graph.so.9": "nvidia/cudnn/lib",
    "libcudnn_ops.so.9": "nvidia/cudnn/lib",
    "libcudnn_cnn.so.9": "nvidia/cudnn/lib",
    "libcudnn_adv.so.9": "nvidia/cudnn/lib",
    "libcudnn_heuristic.so.9": "nvidia/cudnn/lib",
    "libcudnn_engines_precompiled.so.9": "nvidia/cudnn/lib",
    "libcudnn_engines_runtime_compiled.so.9": "nvidia/cudnn/lib",
}
SASS = (75, 80, 90)
AMPERE = ComputeCapability(8, 0)


class Environment:
    """A prefix with one directory of modules, ``site``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.site = root / "lib/python3.12/site-packages"
        self.site.mkdir(parents=True)
        self._distributions: list[Distribution] = []

    def write(self, name: str, text: str = "") -> Path:
        """A file among the modules."""
        path = self.site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def install(self, name: str, version: str, *files: str) -> None:
        """The metadata of a distribution that owns ``files``."""
        self._distributions.append(Distribution(name, version, self.site))
        record = "".join(f"{file},,\n" for file in files)
        self.write(f"{name.replace('-', '_')}-{version}.dist-info/RECORD", record)

    def library(
        self, name: str, *needed: str, code: bytes = b"", rpath: str = "", runpath: str = "", root: Path | None = None
    ) -> Path:
        """A library that needs others here, or stand-ins with those names."""
        path = (root or self.site) / name
        options: tuple[str, ...] = ()
        if rpath:
            options += ("-Wl,--disable-new-dtags", f"-Wl,-rpath,{rpath}")
        if runpath:
            options += ("-Wl,--enable-new-dtags", f"-Wl,-rpath,{runpath}")
        return device_library(path, code, soname=path.name, needed=needed, options=options)

    def nvidia(self, *, without: tuple[str, ...] = (), code: Mapping[str, bytes] | None = None) -> None:
        """The libraries of NVIDIA's wheels for CUDA 12, with machine code for :data:`SASS`."""
        for name, place in NVIDIA.items():
            if name not in without:
                device_code = (code or {}).get(name, fat_binary(SASS, (90,)))
                self.library(f"{place}/{name}", code=device_code, runpath="$ORIGIN")

    def torch(self, code: bytes = b"", *, version: str = "2.8.0+cu128", cuda: str | None = "12.8") -> None:
        """PyTorch: DT_RPATH to NVIDIA's directories, and its kernels in one library."""
        self.write("torch/__init__.py")
        self.write("torch/version.py", f"__version__ = {version!r}\ncuda: Optional[str] = {cuda!r}\nhip = None\n")
        self.install("torch", version, "torch/__init__.py")
        if cuda is not None:
            places = sorted(set(NVIDIA.values()))
            rpath = ":".join(["$ORIGIN", *(f"$ORIGIN/../../{place}" for place in places)])
            needed = ("libcudart.so.12", "libcublas.so.12", "libcublasLt.so.12", "libcudnn.so.9")
            self.library("torch/lib/libtorch_cuda.so", *needed, code=code or fat_binary(SASS), rpath=rpath)
            self.library("torch/lib/libtorch_global_deps.so", "libcudart.so.12", rpath=rpath)
            self.library("torch/_C.cpython-312-x86_64-linux-gnu.so", "libtorch_cuda.so", rpath="$ORIGIN/lib")

    def tensorflow(self, *, is_cuda: bool = True) -> None:
        """TensorFlow: DT_RUNPATH, and CUDA opened by name."""
        build = {"cuda_version": "12.5.1", "cudnn_version": "9", "is_cuda_build": is_cuda}
        self.write("tensorflow/__init__.py")
        self.write("tensorflow/python/platform/build_info.py", f"build_info = OrderedDict({list(build.items())!r})\n")
        runpath = ":".join(f"$ORIGIN/../{place}" for place in sorted(set(NVIDIA.values())))
        self.library("tensorflow/libtensorflow_framework.so.2", runpath=runpath)
        self.library(
            "tensorflow/libtensorflow_cc.so.2",
            "libtensorflow_framework.so.2",
            code=fat_binary((60, 70, 80), (90,)),
            runpath="$ORIGIN",
        )

    def onnxruntime(self, major: int = 12) -> None:
        """ONNX Runtime: a provider that needs CUDA without a search path for it."""
        self.write("onnxruntime/__init__.py")
        self.write("onnxruntime/capi/build_and_package_info.py", f"cuda_version = '{major}.0'\n")
        needed = (f"libcudart.so.{major}", f"libcublas.so.{major}")
        provider = "onnxruntime/capi/libonnxruntime_providers_cuda.so"
        self.library(provider, *needed, code=fat_binary(SASS))

    def inventory(self, *, is_conda: bool = False) -> Inventory:
        """The inventory that the environment's interpreter would report."""
        executable = Path(sys.executable)
        return Inventory("3.12.4", executable, self.root, (self.site,), tuple(self._distributions), is_conda, True)

    def examined(self, *gpus: ComputeCapability, is_conda: bool = False, **variables: str) -> StaticReport:
        """The static checks, on a machine with these GPUs, x86-64 Linux."""
        return examined(self.inventory(is_conda=is_conda), gpus, variables)


def examined(
    inventory: Inventory,
    gpus: Sequence[ComputeCapability] = (),
    variables: Mapping[str, str] = {},
    platform: Platform = Platform.LINUX_64,
    glibc: LibcVersion | None = None,
) -> StaticReport:
    """The static checks of an environment on a machine with these GPUs."""
    status = GpuStatus.READY if gpus else GpuStatus.NO_HARDWARE
    host = Host(platform, glibc=glibc, gpus=tuple(Gpu(None, it) for it in gpus), status=status)
    for_gpu = bool(gpus)
    return Scene(inventory, host, variables, Matrix(), for_gpu=for_gpu).static
