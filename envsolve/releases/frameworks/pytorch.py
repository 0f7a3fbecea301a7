"""PyTorch, on the default index and on its own.

``version.py`` has CUDA, Requires-Dist the libraries, libtorch_python the list of architectures.

The list (``sm_75 sm_80 ...``) is a string in the read-only data of libtorch_python, some 5 MB into the wheel's member,
and reading stops there. 1.0 to 1.5 have no such string, so the fat binaries of a small library of caffe2 are read
instead.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from packaging.utils import canonicalize_name
from packaging.version import Version

from envsolve.binary.fat_binary import DeviceTargets, scan_fat_binaries
from envsolve.releases.device_code import GlibcWatch, find_flags, targets_of_flags
from envsolve.releases.reader import (
    Observation,
    OpenWheel,
    Read,
    ReaderOfSingleWheels,
    ReadRow,
    Value,
    evidence_of,
    first,
    requirements_of,
)
from envsolve.releases.requirements import (
    applies_on,
    only_version,
    requirements,
    specifier_text,
)
from envsolve.releases.wheels import Listing, WheelFile

_CUDA = re.compile(r"^cuda(?:: [^=]+)? = '(\d+\.\d+)", re.MULTILINE)
_BUILDS = (
    *("cpu", "cu92", "cu100", "cu101", "cu102", "cu110", "cu111", "cu113", "cu115", "cu116", "cu117", "cu118"),
    *("cu121", "cu124", "cu126", "cu128", "cu129", "cu130", "cu132"),
)
"""The directories of PyTorch's index with a release. Add new ones here."""
_BUILD = re.compile(r"cpu|cu\d+")
_FLAGS_LIBRARIES = ("torch/lib/libtorch_python.so", "torch/lib/torch_python.dll")
_SYSTEM_LIBRARIES = re.compile(r"torch/lib/lib(gomp|c10)[-.\w]*\.so[.\d]*$")
"""Small libraries in the wheel that require the newest system symbols; the OpenMP runtime those of 2.17."""
_SMALL_CUDA_LIBRARIES = ("torch/lib/libcaffe2_detectron_ops_gpu.so", "torch/lib/caffe2_detectron_ops_gpu.dll")


class PyTorchReader(ReaderOfSingleWheels):
    """Reads torch from the default index: the CUDA build for Linux, CPU builds for other platforms."""

    name = "pytorch"
    framework = "pytorch"
    edition = "pytorch-5"
    oldest = Version("1.0")
    releases_of = ("torch",)

    def observe(self, wheel: OpenWheel) -> Observation:
        """Return CUDA, architectures and requirements of one wheel."""
        seen = requirements_of(wheel)
        match = _CUDA.search(wheel.text("torch/version.py") or "")
        if match is None:
            return seen
        seen["cuda"] = [match[1]]
        glibc = GlibcWatch()
        targets = _targets(wheel)
        if _tag_is_too_vague(wheel.file):
            for name in filter(_SYSTEM_LIBRARIES.search, wheel.members):
                deque(glibc.passing(wheel.chunks(name)), maxlen=0)
        if targets is not None:
            seen["sass"], seen["ptx"] = list(targets.sass), list(targets.ptx)
        if glibc.newest is not None:
            seen["glibc"] = [glibc.newest]
        return seen

    def row(self, wheels: list[WheelFile], seen: Observation) -> ReadRow:
        """Return the row of one release on one platform."""
        cuda = first(seen, "cuda")
        version = wheels[0].version
        build = version.local or ("cpu" if cuda is None else f"cu{cuda.replace('.', '')}")
        values = {**self.values(wheels, build, seen), "version": version.public}
        if cuda is not None:
            values |= self._gpu_values(cuda, wheels[0], seen)
        return ReadRow(values, {}, (evidence_of(wheels[0], seen),))

    def _gpu_values(self, cuda: str, file: WheelFile, seen: Observation) -> dict[str, Value]:
        values: dict[str, Value] = {"cuda": cuda}
        if "sass" in seen:
            values |= {"sass": seen["sass"], "ptx": seen["ptx"]}
        required = [it for it in requirements(seen["requires"]) if applies_on(it, file.platform, file.pythons)]
        cudnn = next((it for it in required if it.name.startswith("nvidia-cudnn")), None)
        if cudnn is None:
            return values | {"cuda_libraries": "bundled", "cuda_requires": f"=={cuda}"}
        return values | {
            "cuda_libraries": "dependencies",
            "cuda_requires": self._cuda_releases.admitted(required) or f"=={cuda}",
            "cudnn": only_version(cudnn.specifier),
            "cudnn_requires": specifier_text(cudnn.specifier),
            "cudnn_package": str(canonicalize_name(cudnn.name)),
        }


class PyTorchIndexReader(PyTorchReader):
    """Reads torch from PyTorch's own index: one directory for each build, which is also the local version.

    A wheel without a local version (the default build up to 1.8.0) does not say which directory it is from. Such rows
    are written by hand.
    """

    name = "pytorch-index"
    endpoints = tuple(f"https://download.pytorch.org/whl/{build}/" for build in _BUILDS)
    source = "pytorch"

    def rows(self, version: Version, listing: Listing, read: Read) -> Iterator[ReadRow]:
        """Yield a row for every platform of a build; none for a version without a build."""
        if _BUILD.fullmatch(version.local or ""):
            yield from super().rows(version, listing, read)


def _tag_is_too_vague(file: WheelFile) -> bool:
    """Whether a tag is for an older system than PyTorch was built on, or none. The library's symbols are more exact."""
    linux = (file.platform or "").startswith("linux")
    return linux and (file.glibc is None or Version(file.glibc) < Version("2.17"))


def _targets(wheel: OpenWheel) -> DeviceTargets | None:
    for ending in _FLAGS_LIBRARIES:
        member = wheel.find(ending)
        if member is None:
            continue
        flags = find_flags(wheel.chunks(member))
        if flags is not None:
            return targets_of_flags(flags)
    for ending in _SMALL_CUDA_LIBRARIES:
        member = wheel.find(ending)
        if member is not None:
            targets = scan_fat_binaries(wheel.chunks(member))
            if targets.sass:
                return targets
    return None
