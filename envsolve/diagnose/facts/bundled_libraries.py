"""Facts on libraries of the frameworks themselves, and on those that they check, bring or shadow."""

from __future__ import annotations

import re
from typing import NamedTuple

from packaging.version import Version

from envsolve.diagnose.case import Case, Lines, Sighting
from envsolve.diagnose.facts.shared.programs import importer_of, program_of
from envsolve.diagnose.facts.shared.seen_libraries import library, places_in_prefix, whole_messages
from envsolve.model.capability import ComputeCapability
from envsolve.model.versions import CudaVersion, parsed_version

# ------------------------------------------------------------------------------------------------ JAX


def parts_not_loaded(_case: Case, lines: Lines) -> tuple[str, ...]:
    """The libraries, as the program names them: cuSPARSE."""
    return tuple(dict.fromkeys(part for it in lines if (part := it.get("part"))))


def misses_nvjitlink(case: Case, lines: Lines) -> bool:
    """Whether JAX says it of cuSPARSE or cuSOLVER, which need libnvJitLink of their own release."""
    parts = " ".join(parts_not_loaded(case, lines))
    return program_of(case, lines) == "jax" and re.search("cusparse|cusolver", parts, re.IGNORECASE) is not None


def jax_extra(case: Case, _lines: Lines) -> str:
    """The extra of JAX with the libraries: that of the plugin in the text, or of the CUDA in it.

    A driver for CUDA 13 runs both, so that it decides only for the GPUs and the releases that have CUDA 13.
    """
    texts = [*case.packages, *(it.line for it in case.sightings)]
    if any(re.search(r"cuda13|-cu13|libcudart\.so\.13", it) for it in texts):
        return "cuda13"
    if any("cuda12" in it for it in texts):
        return "cuda12"
    cuda = case.cuda_of("jax") or case.toolkit or case.driver_cuda
    version = parsed_version(case.version_of("jax"))
    old = version is not None and version < _FIRST_WITH_CUDA_13
    older = any(it < ComputeCapability(7, 5) for it in case.capabilities)
    return "cuda13" if cuda is not None and cuda.major == _NEWEST and not old and not older else "cuda12"


_NEWEST = 13
_FIRST_WITH_CUDA_13 = Version("0.7.2")
"""The first in the matrix."""


class _Compared(NamedTuple):
    """A library: the version that JAX finds, the one that it was built against, and the oldest that it accepts."""

    part: str
    found: str | None
    built: str | None
    least: str | None

    def __str__(self) -> str:
        return self.part


def jax_compared(_case: Case, lines: Lines) -> _Compared | None:
    """The library other than cuDNN that JAX compares with the one it was built against."""
    for it in whole_messages(lines):
        part = it.get("part") or ""
        if part.lower() != "cudnn":
            return _Compared(part, *(_version(part, it.get(field)) for field in ("found", "built", "least")))
    return None


def _version(part: str, digits: str | None) -> str | None:
    """12020 is CUDA 12.2, 12002 is cuSPARSE 12.0.2, 120103 is cuBLAS 12.1.3: each library counts its own way."""
    number = int(digits or 0)
    if not number:
        return None
    if part == "CUDA":
        version = CudaVersion.from_driver_api(number)
        return None if version is None else str(version)
    unit = next((it for it, least in ((10_000, 100_000), (1_000, 10_000)) if number >= least), None)
    return str(number) if unit is None else f"{number // unit}.{number % unit // 100}.{number % 100}"


# ------------------------------------------------------------------------------------------------ the loader's trace


class _Shadowed(NamedTuple):
    """A library, the one that requested it, and the path of the copy that the loader took."""

    name: str
    asked_by: str
    copy: str

    def __str__(self) -> str:
        return self.name


def shadowed_library(case: Case, _lines: Lines) -> _Shadowed | None:
    """A library of which the loader takes a copy of another environment, by its own trace."""
    if not case.saw("loader-path"):
        return None
    needed: Sighting | None = None
    tried: Sighting | None = None
    for it in (*case.of("loader-trace"), None):
        ends = it is None or it.get("by") or it.get("loaded")
        if ends and needed is not None and tried is not None:
            found = tried.get("path") or ""
            by, name = needed.get("by") or "", library(needed)
            if found.endswith(f"/{name}") and not _beside(by, found):
                return _Shadowed(name, by, found)
        if it is None or it.get("loaded"):
            needed, tried = None, None
        elif it.get("by"):
            needed, tried = it, None
        else:
            tried = it
    return None


def _beside(by: str, found: str) -> bool:
    """Whether two files are of one environment: the same site-packages, or the same prefix."""
    root = by.partition("/site-packages/")[0] if "/site-packages/" in by else by.rpartition("/")[0]
    return found.startswith(root)


# ------------------------------------------------------------------------------------------------ PyTorch

_SPLIT = ("libtorch_cuda_cu.so", "libtorch_cuda_cpp.so")
_SPLIT_IN = (Version("1.8"), Version("1.14"))
_SPLIT_MAJOR = 11
"""PyTorch 1.8 to 1.13 for CUDA 11 have libtorch_cuda.so in two parts: pytorch/pytorch#49050 and #70899."""
_OF_CUDA_BUILDS = ("libc10_cuda.so", "libtorch_cuda.so", *_SPLIT)


def torch_file_is_of(_case: Case, lines: Lines) -> str | None:
    """Which builds of PyTorch have the library: ``split`` CUDA 11 builds of 1.8 to 1.13, or those for ``cuda``."""
    name = library(lines[0])
    return "split" if name in _SPLIT else "cuda" if name in _OF_CUDA_BUILDS else None


def torch_extension(case: Case, lines: Lines) -> str | None:
    """The extension that a traceback, a list of packages or a sentence names."""
    importer = importer_of(case, lines)
    if importer is not None and importer.lower() not in {"torch", "caffe2"}:
        return importer.replace("_", "-")
    named = dict.fromkeys(it.lower().replace("_", "-") for it in case.every("extension"))
    return next(iter(named)) if len(named) == 1 else None


def torch_cannot_have_file(case: Case, lines: Lines) -> bool:
    """Whether the installed PyTorch has no such library."""
    torch, name, cuda = parsed_version(case.version_of("pytorch")), library(lines[0]), case.cuda_of("pytorch")
    if case.given.prefix is not None:
        return next(places_in_prefix(case, name), None) is None
    if torch is None:
        return False
    if torch.local == "cpu" and name in _OF_CUDA_BUILDS:
        return True
    if name not in _SPLIT:
        return False
    in_two_parts = _SPLIT_IN[0] <= Version(torch.public) < _SPLIT_IN[1]
    return not in_two_parts or (cuda is not None and cuda.major != _SPLIT_MAJOR)


def pyg_page(case: Case, _lines: Lines) -> str | None:
    """The page of PyG's wheels for the installed PyTorch: ``torch-1.8.0+cu102``."""
    torch = parsed_version(case.version_of("pytorch"))
    local = None if torch is None else torch.local
    return None if torch is None or local is None else f"torch-{torch.release[0]}.{torch.release[1]}.0+{local}"
