"""TensorFlow: ``build_info.py`` has CUDA, cuDNN and architectures; the extra ``and-cuda`` has the libraries.

Before 2.3 that file has no architectures. Wheels of 1.x have small CUDA libraries under contrib, whose fat binaries are
read. 2.0 to 2.2 have one library of 400 MB and more, which is read only with ``--deep``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from packaging.utils import canonicalize_name
from packaging.version import Version

from envsolve.binary.fat_binary import DeviceTargets, scan_fat_binaries
from envsolve.releases.device_code import targets_of_flags
from envsolve.releases.elf import needed_libraries
from envsolve.releases.reader import (
    Observation,
    OpenWheel,
    Read,
    Reader,
    ReadRow,
    Value,
    code_of,
    evidence_of,
    first,
    requirements_of,
)
from envsolve.releases.requirements import (
    PARSING,
    applies_on,
    only_version,
    requirements,
    specifier_text,
)
from envsolve.releases.wheels import Listing, WheelFile, pythons_of

_SIDE_PACKAGES = ("tensorflow-intel", "tensorflow-cpu-aws", "tensorflow-macos", "tensorflow-aarch64")
"""From 2.9 to 2.15 some wheels are empty and require the same version of one of these."""
_CONTRIB_CUDA = ("contrib/rnn/python/ops/_gru_ops.so", "contrib/rnn/python/ops/_lstm_ops.so")
_LINKED = {
    "cuda_version": re.compile(r"libcudart\.so\.(\d+\.\d+)"),
    "cudnn_version": re.compile(r"libcudnn\.so\.(\d+)"),
}
_ALL_KERNELS = re.compile(r"/_pywrap_tensorflow_internal\.(so|pyd)$")
_ENOUGH = 40
"""The number of fat binaries of a large library to read. Each source file has all targets."""
_ASSIGNMENT = re.compile(r"(\w+) = (.+)")
_ORDERED = re.compile(r"collections\.OrderedDict\((.*)\)")


class TensorFlowReader(Reader):
    """Reads tensorflow, tensorflow-gpu and tensorflow-cpu."""

    name = "tensorflow"
    framework = "tensorflow"
    edition = "tensorflow-4"
    oldest = Version("1.13")
    releases_of = ("tensorflow", "tensorflow-gpu", "tensorflow-cpu")
    beside = _SIDE_PACKAGES

    def observe(self, wheel: OpenWheel) -> Observation:
        """Return CUDA, cuDNN, architectures and requirements of one wheel."""
        seen = requirements_of(wheel)
        text = wheel.text("python/platform/build_info.py")
        if text is None:
            return seen
        info = _build_info(text)
        seen["is_cuda_build"] = [str(info.get("is_cuda_build", False))]
        if not info.get("is_cuda_build"):
            return seen
        if not info.keys() & {"cuda_version", "cuda_version_number"}:
            info |= _linked(wheel)
        cuda = info.get("cuda_version") or info.get("cuda_version_number")
        if isinstance(cuda, str):
            seen["cuda"] = [_cuda_minor(cuda)]
        cudnn = info.get("cudnn_version") or info.get("cudnn_version_number")
        if isinstance(cudnn, str):
            seen["cudnn"] = [cudnn.removeprefix("64_")]
        targets = _targets(info.get("cuda_compute_capabilities"), wheel)
        if targets is not None:
            seen["sass"], seen["ptx"] = list(targets.sass), list(targets.ptx)
        return seen

    def rows(self, version: Version, listing: Listing, read: Read) -> Iterator[ReadRow]:
        """Yield a row for every platform of each of the three packages."""
        for project in self.releases_of:
            for platform in listing.platforms(project, version):
                wheels = listing.wheels(project, version, platform)
                seen = read(wheels[0])
                if first(seen, "is_cuda_build") == "True":
                    yield self._gpu_row(wheels, seen)
                elif not _is_doubled(project, platform, version, listing):
                    yield from self._cpu_row(wheels, seen, listing)

    def _cpu_row(self, wheels: list[WheelFile], seen: Observation, listing: Listing) -> Iterator[ReadRow]:
        values = self.values(wheels, "cpu", seen)
        file = wheels[0]
        if "is_cuda_build" not in seen:
            required = [it for it in requirements(seen["requires"]) if it.name in _SIDE_PACKAGES]
            side = next((it.name for it in required if applies_on(it, file.platform, file.pythons)), None)
            if side is None:
                return
            there = pythons_of(listing.wheels(side, file.version, file.platform))
            values["pythons"] = [python for python in pythons_of(wheels) if python in there]
            if not values["pythons"]:
                return
        yield ReadRow(values, {}, (evidence_of(file, seen),))

    def _gpu_row(self, wheels: list[WheelFile], seen: Observation) -> ReadRow:
        cuda = first(seen, "cuda")
        values = self.values(wheels, f"cuda{(cuda or '10').partition('.')[0]}", seen)
        if cuda is not None and "." in cuda:
            values["cuda"] = cuda
        cudnn_major = first(seen, "cudnn")
        if cudnn_major is not None:
            values["cudnn"] = cudnn_major
        values |= code_of(seen)
        defaults: dict[str, Value] = {}
        extra = requirements(seen["requires"], extra="and-cuda")
        cudnn = next((it for it in extra if it.name.startswith("nvidia-cudnn")), None)
        if cudnn is None:
            defaults["cuda_libraries"] = "none"
            if cuda is not None:
                defaults["cuda_requires"] = f"=={cuda}"
            if cudnn_major is not None:
                defaults["cudnn_requires"] = f"=={cudnn_major}.*"
        else:
            exact = only_version(cudnn.specifier)
            values |= {
                "cuda_libraries": "dependencies",
                "cuda_requires": self._cuda_releases.admitted(extra),
                "cudnn": exact or cudnn_major,
                "cudnn_requires": specifier_text(cudnn.specifier),
                "cudnn_package": str(canonicalize_name(cudnn.name)),
                "extras": ["and-cuda"],
            }
        return ReadRow(values, defaults, (evidence_of(wheels[0], seen),))


def _is_doubled(project: str, platform: str, version: Version, listing: Listing) -> bool:
    """Whether the other package ships the same CPU build for this platform. One row is enough."""
    other = "tensorflow-cpu" if platform in ("linux-64", "win-64") else "tensorflow"
    return project != other and bool(listing.wheels(other, version, platform))


def _build_info(text: str) -> dict[str, object]:
    """The assignments in ``build_info.py``: a dictionary from 2.3 on, separate names before."""
    info: dict[str, object] = {}
    for line in text.splitlines():
        match = _ASSIGNMENT.fullmatch(line.strip())
        if match is None:
            continue
        name, expression = match.groups()
        try:
            with PARSING:
                value = ast.literal_eval(_ORDERED.sub(r"\1", expression))
        except (ValueError, SyntaxError) as error:
            raise ValueError(f"build_info.py is written in a way that is not known: {name} = {expression}") from error
        if name == "build_info":
            info |= _dictionary(value)
        else:
            info[name] = value
    return info


def _dictionary(value: object) -> dict[str, object]:
    """A dictionary, or the one made of pairs."""
    if isinstance(value, dict | list):
        return dict(value)
    raise ValueError(f"build_info.py holds no dictionary: {value!r}")


def _cuda_minor(text: str) -> str:
    """The minor ``11.2`` from ``11.2``, ``64_112`` (Windows) or ``12.5.1``."""
    if text.startswith("64_"):
        digits = text.removeprefix("64_")
        return f"{digits[:-1]}.{digits[-1]}"
    return ".".join(text.split(".")[:2])


def _targets(flags: object, wheel: OpenWheel) -> DeviceTargets | None:
    if isinstance(flags, list) and flags:
        return targets_of_flags([str(flag) for flag in flags], compute_is_both=True)
    small = _small_cuda_library(wheel)
    if small is not None and (targets := scan_fat_binaries([small])).sass:
        return targets
    member = next((name for name in wheel.members if _ALL_KERNELS.search(name)), None)
    if member is not None and wheel.may_read_deep():
        return scan_fat_binaries(wheel.chunks(member), enough=_ENOUGH)
    return None


def _small_cuda_library(wheel: OpenWheel) -> bytes | None:
    """One of the libraries with few kernels that 1.x has under contrib."""
    member = next((found for ending in _CONTRIB_CUDA if (found := wheel.find(ending)) is not None), None)
    return None if member is None else wheel.content(member)


def _linked(wheel: OpenWheel) -> dict[str, object]:
    """CUDA and cuDNN by the names of the libraries that TensorFlow 1.13 links to. Later ones open them at run time.

    Up to 10.2 the file name of the CUDA runtime has the minor.
    """
    member = wheel.find("tensorflow/libtensorflow_framework.so")
    names = [] if member is None else needed_libraries(wheel.content(member))
    found = [(key, match[1]) for name in names for key, form in _LINKED.items() if (match := form.fullmatch(name))]
    return dict(found)
