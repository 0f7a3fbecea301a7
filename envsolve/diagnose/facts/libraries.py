"""Facts on libraries that are not found: whose they are, which CUDA they are of, what needs them, what is there."""

from __future__ import annotations

import re
from typing import NamedTuple

from envsolve.diagnose.case import Case, Lines
from envsolve.diagnose.facts.jetpack import JETPACKS, installed_jetpack
from envsolve.diagnose.facts.shared.library_names import Owner, Span, is_plain, owner_of, span_of
from envsolve.diagnose.facts.shared.programs import named_program, program_of
from envsolve.diagnose.facts.shared.seen_libraries import (
    library,
    opened_span,
    places_in_prefix,
    reported_with_libdevice,
    toolkits,
    wanted_span,
)
from envsolve.model.versions import CudaVersion

_ALONE = (Owner.PYTORCH, Owner.TENSORFLOW, Owner.ONNXRUNTIME, Owner.LLAMA, Owner.ZLIB, Owner.VISUAL_CPP, Owner.SYSTEM)
"""Owners each of whose libraries is a failure of its own."""
_TOGETHER = (Owner.CUDA, Owner.CUDNN, Owner.TENSORRT)
"""Owners whose libraries are missing for one reason. Those of other owners belong to other families."""
_SYMBOL = re.compile(r"undefined symbol|not defined in file|symbol lookup error", re.IGNORECASE)
"""A library that was found and lacks a function."""
_BUILTINS = re.compile(r"(lib)?nvrtc(-builtins.*)?$", re.IGNORECASE)
_CUDNN_OPENS = re.compile(r"Could not load library \S+\.\s+Error|libcudnn\w*\.so\S*: undefined", re.IGNORECASE)
"""How cuDNN 8 reports what it opens itself."""
_OWN_PACKAGES = {
    "libcudss": ("cuDSS", "cudss", "nvidia-cudss"),
    "libcusparselt": ("cuSPARSELt", "cusparselt", "nvidia-cusparselt"),
    "libnccl": ("NCCL", "libnccl2", "nvidia-nccl"),
    "libcutensor": ("cuTENSOR", "cutensor", "cutensor"),
    "libnvshmem": ("NVSHMEM", "nvshmem", "nvidia-nvshmem"),
}
"""What neither the CUDA toolkit nor JetPack contains: its name, and its package for apt and for pip."""


def _missing(case: Case, lines: Lines) -> tuple[str, Span | None]:
    return wanted_span(case, lines) if lines else ("", None)


# ------------------------------------------------------------------------------------------------ the library


def cuda_of_library(case: Case, lines: Lines) -> Span | None:
    """The toolkits in which the library has this name: ``CUDA 11.0 to 11.8``, ``CUDA 10.1``."""
    return _missing(case, lines)[1]


def library_group(case: Case, lines: Lines) -> str | None:
    """Which lines are of one failure: by owner, of some owners by library; None for what other families explain."""
    it = lines[0]
    name, owner = library(it), library_owner(case, lines)
    if _SYMBOL.search(it.line) or name.startswith("libtpu") or reported_with_libdevice(case, name):
        return None
    if owner == "cuda":
        if _BUILTINS.match(name):
            return "nvrtc-builtins"
        return "nvrtc-link" if name == "libnvrtc.so" and "cudnn" in (it.get("by") or "") else "cuda"
    if owner in _TOGETHER:
        return owner
    return f"{owner} {name}" if owner in _ALONE else None


def library_owner(case: Case, lines: Lines) -> str:
    """Whose the library is; what TensorRT's own libraries miss is TensorRT's, what cuDNN misses of zlib is zlib's."""
    it = lines[0]
    if it.get("cudnn"):
        return Owner.CUDNN.value
    if owner_of(it.get("by") or "") is Owner.TENSORRT:
        return Owner.TENSORRT.value
    owner = owner_of(library(it))
    if owner is Owner.VISUAL_CPP and program_of(case, lines) is None:
        return Owner.SYSTEM.value
    return owner.value


def missing_library(case: Case, lines: Lines) -> str | None:
    """The missing file; of several the one whose name says most about its CUDA."""
    return _missing(case, lines)[0] or None


def missing_stem(_case: Case, lines: Lines) -> str | None:
    """How the names of the missing library begin on every system: ``cudart``."""
    match = re.match(r"(?:lib)?([A-Za-z]+)", library(lines[0]))
    return match[1] if match else None


def library_has_no_number(case: Case, lines: Lines) -> bool:
    """Whether the name is that of the link for developers: libcublas.so."""
    return is_plain(_missing(case, lines)[0])


def library_pip(case: Case, lines: Lines) -> str | None:
    """NVIDIA's packages for pip with the missing libraries, as a command takes them."""
    return _packages(case, lines, conda=False)


def library_conda(case: Case, lines: Lines) -> str | None:
    """The packages of conda-forge with the missing libraries."""
    return _packages(case, lines, conda=True)


def _packages(case: Case, lines: Lines, *, conda: bool) -> str | None:
    span = cuda_of_library(case, lines)
    if conda and span is not None and span.last < _FIRST_OF_CONDA_FORGE:
        return None
    major = None if span is None or span.first.major != span.last.major else str(span.last.major)
    if major is None and case.built_cuda is not None:
        major = str(case.built_cuda.major)
    names = dict.fromkeys(library(it) for it in lines)
    known = case.knowledge.libraries
    found = dict.fromkeys(it for name in names for it in known.packages(name, conda=conda, cuda_major=major))
    if major is None and len(found) > 1:  # of several CUDA majors, and nothing says which
        return None
    if not conda:
        return " ".join(_pinned(it, major) for it in found) or None
    cuda = None if span is None else span.last if span.first == span.last else span.last.major
    others = [it for it in found if it != "cudatoolkit"]
    pins = [f"cuda-version={cuda}"] if others and cuda is not None else []
    if "cudatoolkit" in found:
        pins.append("cudatoolkit" if cuda is None else f"cudatoolkit={_of_cudatoolkit(case, span)}")
    return " ".join([*others, *pins]) or None


def _of_cudatoolkit(case: Case, span: Span | None) -> CudaVersion | None:
    return case.built_cuda if span is not None and case.built_cuda in span else None if span is None else span.last


_FIRST_OF_CONDA_FORGE = CudaVersion(10, 1)
"""conda-forge has no cudatoolkit before: github.com/conda-forge/cudatoolkit-feedstock."""
_WITHOUT_SUFFIX = 13
_OF_THE_TOOLKIT = frozenset({"nvidia-cuda-runtime", "nvidia-cuda-nvrtc", "nvidia-cuda-cupti", "nvidia-nvjitlink"})
"""Packages of CUDA 13 that count as the toolkit does; cuBLAS and others have versions of their own."""


def _pinned(package: str, major: str | None) -> str:
    """NVIDIA's packages have their CUDA in the name up to 12; from 13 on the version counts."""
    by_version = major is not None and int(major) >= _WITHOUT_SUFFIX and not package.endswith(f"-cu{major}")
    return f"'{package}=={major}.*'" if by_version and package in _OF_THE_TOOLKIT else package


def conda_pin(case: Case, lines: Lines) -> str | None:
    """What pins the CUDA of the library in a conda environment, if the name says which minor it is."""
    span = cuda_of_library(case, lines)
    in_conda = case.clue("conda") is not None or "cudatoolkit" in case.packages
    if not in_conda or span is None or span.first != span.last or _packages(case, lines, conda=False):
        return None
    return f"{'cudatoolkit' if span.last.major < _WITH_PARTS else 'cuda-version'}={span.last}"


_WITH_PARTS = 12
"""The first CUDA that conda has in parts, with cuda-version in place of cudatoolkit."""


class _Product(NamedTuple):
    """A product of NVIDIA's: its name, and its packages for apt and for pip."""

    name: str
    apt: str
    pip: str

    def __str__(self) -> str:
        return self.name


def own_package(_case: Case, lines: Lines) -> _Product | None:
    """The product that the library is, if the CUDA toolkit does not contain it: cuDSS."""
    name = library(lines[0]).lower()
    return next((_Product(*it) for stem, it in _OWN_PACKAGES.items() if name.startswith(stem)), None)


def own_package_pip(case: Case, lines: Lines) -> str | None:
    """Its package for pip, for the CUDA of the machine or of the build."""
    found = own_package(case, lines)
    jetpack = installed_jetpack(case)
    known = case.built_cuda or next(iter(toolkits(case)), None) or (jetpack.cuda if jetpack else None)
    return found and f"{found.pip}-cu{12 if known is None else known.major}"


def library_path(case: Case, lines: Lines) -> str | None:
    """Where the missing file is in the environment that is given."""
    return next((str(it) for it in places_in_prefix(case, missing_library(case, lines) or "")), None)


def library_directory(case: Case, lines: Lines) -> str | None:
    """The directory of that file."""
    return next((str(it.parent) for it in places_in_prefix(case, missing_library(case, lines) or "")), None)


def library_is_not_in_prefix(case: Case, lines: Lines) -> str | None:
    """The environment that is given, if it does not contain the missing file."""
    named = case.given.prefix is not None and library(lines[0])
    return case.given.prefix if named and library_path(case, lines) is None else None


# ------------------------------------------------------------------------------------------------ what is there


def toolkit_with_library(case: Case, lines: Lines) -> CudaVersion | None:
    """A toolkit on the machine in which the library has this name."""
    span = cuda_of_library(case, lines)
    return None if span is None else next((it for it in toolkits(case) if it in span), None)


def toolkit_without_library(case: Case, lines: Lines) -> CudaVersion | None:
    """A toolkit on the machine, if no library of it has this name."""
    if cuda_of_library(case, lines) is None or toolkit_with_library(case, lines) is not None:
        return None
    return next(iter(toolkits(case)), None)


def toolkit_there(case: Case, _lines: Lines) -> CudaVersion | None:
    """A toolkit on the machine, not one that a driver supports or a program needs."""
    return next(iter(toolkits(case)), None)


def gpu_first_cuda(case: Case, lines: Lines) -> CudaVersion | None:
    """The first CUDA for the GPU, if that of the library or of the build is older."""
    span = cuda_of_library(case, lines)
    newest = span.last if span is not None else case.built_cuda
    first = case.knowledge.cuda_for(case.capability) if case.capability is not None else None
    return first[0] if newest is not None and first is not None and newest < first[0] else None


def opened_libraries(case: Case, lines: Lines) -> tuple[str, ...] | None:
    """The libraries of the same CUDA that the program did open."""
    span, opened = cuda_of_library(case, lines), opened_span(case)
    if span is None or opened is None or opened.common(span) is None:
        return None
    present = (it for it in case.of("library-present") if it.get("opened"))
    return tuple(dict.fromkeys(library(it) for it in present if owner_of(library(it)) is Owner.CUDA))


class _Mixed(NamedTuple):
    """A library of CUDA, what it needs, and the CUDA of the program's other libraries."""

    name: str
    needs: str
    cuda: str

    def __str__(self) -> str:
        return self.name


def mixed_library(case: Case, lines: Lines) -> _Mixed | None:
    """A library of CUDA that was found, of another CUDA than the rest, and needs its own kind."""
    opened = opened_span(case)
    for it in lines:
        by, span = it.get("by"), span_of(case.knowledge, library(it))
        if by is None or by == library(it) or opened is None or span is None or opened.common(span) is not None:
            continue
        if owner_of(by) is Owner.CUDA:
            return _Mixed(by, library(it), opened.shortly or str(opened))
    return None


def cudnn_opens_it(case: Case, lines: Lines) -> bool:
    """Whether cuDNN 8 needs the library, and the name says of which CUDA it is."""
    span = cuda_of_library(case, lines)
    return span is not None and span.shortly is not None and any(_CUDNN_OPENS.search(it.line) for it in lines)


def cuda_of_program(case: Case, lines: Lines) -> CudaVersion | None:
    """The CUDA of the build, or of the machine. That of PyTorch says nothing of CTranslate2 beside it."""
    built = None if named_program(case, lines) == "ctranslate2" else case.built_cuda
    return built or next(iter(toolkits(case)), None)


# ------------------------------------------------------------------------------------------------ other owners


def cuda_library_is_missing(case: Case, _lines: Lines) -> bool:
    """Whether a line names a library of CUDA or cuDNN that is not found."""
    lines = case.of("library-missing")
    return any(library_owner(case, (it,)) in (Owner.CUDA, Owner.CUDNN) for it in lines)


def jetpack_with_library(case: Case, lines: Lines) -> str | None:
    """The JetPacks whose CUDA has a library of this name."""
    span = cuda_of_library(case, lines)
    return " or ".join(it.title for it in JETPACKS if span is not None and it.cuda in span) or None
