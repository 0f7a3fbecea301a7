"""Made-up packages with the names of real ones: a default index, and one like PyTorch's, for each build."""

from __future__ import annotations

from collections.abc import Iterable

from tests.index.packages import IndexFile, wheel
from tests.index.server import IndexServer

LINUX = "manylinux_2_28_x86_64"
CP311 = f"cp311-cp311-{LINUX}"
NVIDIA = f"py3-none-{LINUX}"
_CUDA_12 = {
    "nvidia-cublas-cu12": ("12.6.4.1", "12.9.3.13"),
    "nvidia-cudnn-cu12": ("9.10.2.21", "9.27.0.42"),
    "nvidia-nccl-cu12": ("2.25.1", "2.27.5", "2.32.3"),
}
_CUDA_13 = {
    "nvidia-cublas": ("13.4.1.3",),
    "nvidia-cudnn-cu13": ("9.26.0.51",),
    "nvidia-nccl-cu13": ("2.30.7",),
}


def releases(name: str, versions: Iterable[str], requires: Iterable[str] = (), **more: str) -> list[IndexFile]:
    """A wheel for each version."""
    return [wheel(name, version, requires, **more) for version in versions]  # type: ignore[arg-type]


def torch(version: str, *requires: str, tags: str = CP311) -> IndexFile:
    """A build of PyTorch."""
    return wheel("torch", version, ["typing-extensions>=4.10", *requires], tags=tags)


def vision(version: str, of: str, tags: str = CP311) -> IndexFile:
    """The torchvision for one PyTorch."""
    return wheel("torchvision", version, ["numpy", f"torch=={of}"], tags=tags)


def fill(server: IndexServer) -> None:
    """The default index at ``/simple/``, and PyTorch's at ``/whl/cu126/`` and ``/whl/cpu/``."""
    for name, versions in {**_CUDA_12, **_CUDA_13}.items():
        server.add(name, releases(name, versions, tags=NVIDIA))
    server.add("numpy", releases("numpy", ["1.26.4", "2.4.6"], tags=CP311))
    server.add("typing-extensions", releases("typing-extensions", ["4.9.0", "4.16.0"]))
    cuda_12 = ["nvidia-cublas-cu12==12.6.4.1", "nvidia-cudnn-cu12==9.10.2.21", "nvidia-nccl-cu12==2.27.5"]
    cuda_13 = ["nvidia-cublas<14", "nvidia-cudnn-cu13==9.26.0.51", "nvidia-nccl-cu13==2.30.7"]
    default = [torch("2.15.0", *cuda_13), torch("2.8.0", *cuda_12), torch("2.7.1", *cuda_12)]
    server.add("torch", default)
    server.add("torchvision", [vision("0.30.0", "2.15.0"), vision("0.23.0", "2.8.0"), vision("0.22.1", "2.7.1")])
    cu126 = server.index("/whl/cu126/", "pytorch")
    cu126.add("torch", [torch("2.14.1+cu126", *cuda_12), torch("2.14.0+cu126", *cuda_12)])
    cu126.add("numpy", releases("numpy", ["1.26.4"], tags=CP311))  # PyTorch's index has old ones of what it needs
    cu126.add("torchvision", [vision("0.29.2+cu126", "2.14.1"), vision("0.29.0+cu126", "2.14.0")])
    cpu = server.index("/whl/cpu/", "pytorch")
    cpu.add("torch", [torch("2.13.0+cpu"), torch("2.12.0+cpu")])
    cpu.add("torchvision", [vision("0.28.0+cpu", "2.13.0"), vision("0.27.0+cpu", "2.12.0")])
