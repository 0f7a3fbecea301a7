"""Small wheels, byte for byte like those of the frameworks in the parts that the refresh reads."""

from __future__ import annotations

import io
import random
import struct
import zipfile
from collections.abc import Iterable, Mapping
from typing import NamedTuple

MAGIC = struct.pack("<I", 0xBA55ED50)
PTX, MACHINE_CODE = 1, 2
LINUX, AARCH64, WINDOWS = "manylinux_2_28_x86_64", "manylinux_2_28_aarch64", "win_amd64"
MAC_ARM, MAC_INTEL = "macosx_11_0_arm64", "macosx_10_9_x86_64"
FLAGS = "sm_75 sm_80 sm_90 compute_90"
CUDA_12_8 = (
    "filelock",
    'nvidia-cuda-runtime-cu12==12.8.90; platform_system == "Linux"',
    'nvidia-cudnn-cu12==9.10.2.21; platform_system == "Linux"',
)
BUILD_INFO = {
    "cuda_compute_capabilities": ["sm_60", "sm_80", "compute_90"],
    "cuda_version": "12.5.1",
    "cudnn_version": "9",
    "is_cuda_build": True,
}
AND_CUDA = (
    "absl-py>=1.0.0",
    'nvidia-cublas-cu12<13.0,>=12.5.3.2; extra == "and-cuda"',
    'nvidia-cuda-nvcc-cu12<13.0,>=12.8; extra == "and-cuda"',
    'nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == "and-cuda"',
)


class BuiltFile(NamedTuple):
    """A file of an index: its name and its bytes."""

    name: str
    content: bytes


def noise(size: int, seed: int = 0) -> bytes:
    """Incompressible bytes."""
    return random.Random(seed).randbytes(size)  # noqa: S311 - no secret


def code(kind: int, architecture: int, content: bytes = b"\x90" * 24) -> bytes:
    """One entry of a fat binary."""
    header = struct.pack("<HHIQ", kind, 0x101, 64, len(content)) + bytes(12) + struct.pack("<I", architecture)
    return header.ljust(64, b"\0") + content


def fat_binary(*entries: bytes) -> bytes:
    """A container of device code, as nvcc puts it into a library."""
    body = b"".join(entries)
    return MAGIC + struct.pack("<HHQ", 1, 16, len(body)) + body


def elf(*needed: str) -> bytes:
    """A library for x86-64 Linux that needs ``needed``, and contains nothing else."""
    names = b"\0" + b"".join(name.encode() + b"\0" for name in needed)
    offsets = [names.index(name.encode()) for name in needed]
    dynamic = b"".join(struct.pack("<qQ", 1, offset) for offset in offsets) + bytes(16)
    head = struct.pack("<4s5B7x2HI3QI6H", b"\x7fELF", 2, 1, 1, 0, 0, 3, 62, 1, 0, 0, 64, 0, 64, 0, 0, 64, 3, 1)
    place = 64 + 3 * 64
    sections = bytes(64)
    sections += struct.pack("<2I4Q2I2Q", 0, 3, 0, 0, place, len(names), 0, 0, 1, 0)
    sections += struct.pack("<2I4Q2I2Q", 0, 6, 0, 0, place + len(names), len(dynamic), 1, 0, 8, 16)
    return head + sections + names + dynamic


def wheel(
    name: str,
    version: str,
    members: Mapping[str, str | bytes],
    *,
    tags: str = f"cp312-cp312-{LINUX}",
    requires: Iterable[str] = (),
    build: str = "",
) -> BuiltFile:
    """A wheel of ``members``, with METADATA; members given as bytes are stored uncompressed."""
    head = [
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        *(f"Requires-Dist: {it}\n" for it in requires),
    ]
    metadata = f"{''.join(head)}\nA description.\nRequires-Dist: not-a-header\n"
    stem = f"{name.replace('-', '_')}-{version}"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, content in {**members, f"{stem}.dist-info/METADATA": metadata}.items():
            how = zipfile.ZIP_STORED if isinstance(content, bytes) else zipfile.ZIP_DEFLATED
            archive.writestr(path, content, compress_type=how)
    return BuiltFile(f"{stem}{build and f'-{build}'}-{tags}.whl", buffer.getvalue())


def torch_library(flags: str = FLAGS, *, before: int = 1000, after: int = 1000) -> bytes:
    """libtorch_python: adjacent strings, among them the list of architectures."""
    strings = b"\0_cuda_getArchFlags" + flags.encode() + b"\0not a CUDA tensor\0"
    return b"\x7fELF" + noise(before, 1) + strings + noise(after, 2)


def openmp_library(glibc: str = "2.17") -> bytes:
    """The OpenMP runtime that PyTorch includes: it needs newer symbols of the C library than the rest does."""
    return b"\x7fELF" + noise(500, 3) + f"\0GLIBC_2.2.5\0GLIBC_{glibc}\0".encode()


def torch_wheel(
    version: str = "2.9.0",
    *,
    tags: str = f"cp312-cp312-{LINUX}",
    cuda: str | None = "12.8",
    library: bytes | None = None,
    openmp: bytes | None = None,
    requires: Iterable[str] = CUDA_12_8,
    build: str = "",
) -> BuiltFile:
    """A wheel of torch; without CUDA if ``cuda`` is None."""
    windows = "win" in tags
    written = "None" if cuda is None else f"'{cuda}'"
    members: dict[str, str | bytes] = {
        "torch/version.py": f"__version__ = '{version}'\ndebug = False\ncuda: Optional[str] = {written}\nhip = None\n",
        f"torch/lib/{'torch_python.dll' if windows else 'libtorch_python.so'}": library or torch_library(),
    }
    if not windows:
        members["torch/lib/libgomp-a34b3233.so.1"] = openmp or openmp_library()
    return wheel("torch", version, members, tags=tags, requires=requires, build=build)


def tensorflow_wheel(
    version: str = "2.20.0",
    info: Mapping[str, object] | str | None = None,
    *,
    name: str = "tensorflow",
    tags: str = f"cp312-cp312-{LINUX}",
    requires: Iterable[str] = (),
    others: Mapping[str, bytes] | None = None,
) -> BuiltFile:
    """A wheel of TensorFlow; ``info`` is the content of build_info.py, as values or as its text."""
    text = info if isinstance(info, str) else f'"""Made by the build."""\n\nbuild_info = {dict(info or BUILD_INFO)!r}\n'
    members: dict[str, str | bytes] = {"tensorflow/python/platform/build_info.py": text, **(others or {})}
    return wheel(name, version, members, tags=tags, requires=requires)


def stub_wheel(name: str, version: str, *, tags: str, requires: Iterable[str]) -> BuiltFile:
    """An empty wheel that requires another package."""
    return wheel(name, version, {}, tags=tags, requires=requires)


def constant(number: int, *, aarch64: bool = False, register: int = 0) -> bytes:
    """The instructions that load ``number``: one on x86-64, up to two on AArch64."""
    if not aarch64:
        return struct.pack("<BI", 0xB8 + register, number)
    low, high = number & 0xFFFF, number >> 16
    words = [0x52800000 | low << 5 | register]
    if high:
        words.append(0x72A00000 | high << 5 | register)
    return b"".join(struct.pack("<I", word) for word in words)


def jax_plugin_wheel(
    version: str = "0.7.0",
    *,
    major: int = 12,
    tags: str = f"cp312-cp312-{LINUX}",
    numbers: Iterable[int] = (12090, 90800, 12510),
    kernels: Mapping[str, bytes] | None = None,
) -> BuiltFile:
    """A CUDA plugin of JAX: the versions it was compiled with, its small kernels, and an extra with the libraries."""
    arm = "aarch64" in tags
    kernel = fat_binary(code(MACHINE_CODE, 70), code(MACHINE_CODE, 90), code(PTX, 120))
    libraries = {"_linalg.so": kernel, "_prng.so": kernel} if kernels is None else kernels
    folder = f"jax_cuda{major}_plugin"
    members: dict[str, str | bytes] = {f"{folder}/{name}": content for name, content in libraries.items()}
    members[f"{folder}/_versions.so"] = b"\0" * 8 + b"".join(constant(number, aarch64=arm) for number in numbers)
    suffix = f"-cu{major}" if major < 13 else ""
    requires = [
        f"nvidia-cuda-runtime{suffix}>={major}.1.105; extra == 'with-cuda'",
        f"nvidia-cudnn-cu{major}<10.0,>=9.8; extra == 'with-cuda'",
    ]
    return wheel(f"jax-cuda{major}-plugin", version, members, tags=tags, requires=requires)


def jax_wheels(version: str = "0.7.0", *, tags: str = f"cp312-cp312-{LINUX}") -> list[BuiltFile]:
    """jax, jaxlib, and the plugin of CUDA 12 with its runtime, as pip installs ``jax[cuda12]``."""
    place = tags.rpartition("-")[2]
    jax = wheel(
        "jax",
        version,
        {},
        tags="py3-none-any",
        requires=[
            f"jaxlib<={version},>={version}",
            f"jaxlib<={version},>={version}; extra == 'cuda12'",
            f"jax-cuda12-plugin[with-cuda]<={version},>={version}; extra == 'cuda12'",
        ],
    )
    return [
        jax,
        wheel("jaxlib", version, {}, tags=tags),
        jax_plugin_wheel(version, tags=tags),
        wheel("jax-cuda12-pjrt", version, {}, tags=f"py3-none-{place}"),
    ]
