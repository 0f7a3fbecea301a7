"""Facts on libraries of the frameworks themselves, and on those that they check, bring or shadow."""

from __future__ import annotations

import re

from packaging.version import Version

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.facts.programs import importer_of, program_of
from envsolve.diagnose.facts.seen_libraries import library, places_in_prefix, whole_messages
from envsolve.model.versions import CudaVersion, parsed_version

Lines = tuple[Sighting, ...]

# ------------------------------------------------------------------------------------------------ JAX


def parts_not_loaded(_case: Case, lines: Lines) -> tuple[str, ...]:
    """The libraries, as the program names them: cuSPARSE."""
    return tuple(dict.fromkeys(part for it in lines if (part := it.get("part"))))


def misses_nvjitlink(case: Case, lines: Lines) -> bool:
    """Whether JAX says it of cuSPARSE or cuSOLVER, which need libnvJitLink of their own release."""
    parts = " ".join(parts_not_loaded(case, lines))
    return program_of(case, lines) == "jax" and re.search("cusparse|cusolver", parts, re.IGNORECASE) is not None


def tensorflow_is_2_16(case: Case, _lines: Lines) -> bool:
    """Whether it is the TensorFlow that does not find the libraries of its own extra."""
    return (case.version_of("tensorflow") or "").startswith("2.16")


def jax_extra(case: Case, _lines: Lines) -> str:
    """The extra of JAX with the libraries: that of the plugin in the text, or of the library's CUDA."""
    texts = [*case.packages, *(it.line for it in case.sightings)]
    newer = any(re.search(r"cuda13|-cu13|libcudart\.so\.13", it) for it in texts)
    return "cuda13" if newer or (case.cuda_of("jax") or CudaVersion(12, 0)).major == _NEWEST else "cuda12"


_NEWEST = 13


def jax_pin(case: Case, _lines: Lines) -> str | None:
    """The installed JAX as a pin: ``==0.4.38``; None for one from before its extras were called cuda12 and cuda13."""
    version = parsed_version(case.version_of("jax"))
    return None if version is None or version < _WITH_EXTRA else f"=={version.public}"


_WITH_EXTRA = Version("0.4.26")


def jax_part(_case: Case, lines: Lines) -> str | None:
    """The library that JAX compares with the one it was built against."""
    compared = _compared(lines)
    return None if compared is None else compared.get("part")


def jax_found(_case: Case, lines: Lines) -> str | None:
    """The version that it finds."""
    return _version(lines, "found")


def jax_built(_case: Case, lines: Lines) -> str | None:
    """The version that it was built against."""
    return _version(lines, "built")


def jax_least(_case: Case, lines: Lines) -> str | None:
    """The oldest version that it accepts."""
    return _version(lines, "least")


def _compared(lines: Lines) -> Sighting | None:
    """The first message on another library than cuDNN."""
    return next((it for it in whole_messages(lines) if (it.get("part") or "").lower() != "cudnn"), None)


def _version(lines: Lines, field: str) -> str | None:
    """12020 is CUDA 12.2, 12002 is cuSPARSE 12.0.2, 120103 is cuBLAS 12.1.3: each library counts its own way."""
    compared = _compared(lines)
    number = int(compared.get(field) or 0) if compared is not None else 0
    if compared is None or not number:
        return None
    if compared.get("part") == "CUDA":
        version = CudaVersion.from_driver_api(number)
        return None if version is None else str(version)
    unit = next((it for it, least in ((10_000, 100_000), (1_000, 10_000)) if number >= least), None)
    return str(number) if unit is None else f"{number // unit}.{number % unit // 100}.{number % 100}"


# ------------------------------------------------------------------------------------------------ the loader's trace


def shadowed_by_path(case: Case, lines: Lines) -> str | None:
    """The copy of a library that LD_LIBRARY_PATH led to, by the loader's trace, if it is of another environment."""
    found = _shadow(case, lines)
    return found and found[1].get("path")


def shadowed_library(case: Case, lines: Lines) -> str | None:
    """The name of that library."""
    found = _shadow(case, lines)
    return found and library(found[0])


def shadow_asked_by(case: Case, lines: Lines) -> str | None:
    """The library that asked for it."""
    found = _shadow(case, lines)
    return found and found[0].get("by")


def _shadow(case: Case, _lines: Lines) -> tuple[Sighting, Sighting] | None:
    """What asked for a library, and the copy that the loader took, if that is of another environment."""
    if not case.saw("loader-path"):
        return None
    needed: Sighting | None = None
    tried: Sighting | None = None
    for it in (*case.of("loader-trace"), None):
        ends = it is None or it.get("by") or it.get("loaded")
        if ends and needed is not None and tried is not None:
            found = tried.get("path") or ""
            if found.endswith(f"/{library(needed)}") and not _beside(needed.get("by") or "", found):
                return needed, tried
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


def torch_extension_is_of_pyg(case: Case, lines: Lines) -> bool:
    """Whether it is one of those that PyG has on a page of its own."""
    names = ("torch-scatter", "torch-sparse", "torch-cluster", "torch-spline-conv", "pyg-lib")
    return torch_extension(case, lines) in names


def extension_built_for(case: Case, _lines: Lines) -> str | None:
    """The PyTorch that the wheel of the extension is for, by its page: ``1.8.0+cu111``."""
    return case.told("extension_build")


def torch_installed(case: Case, _lines: Lines) -> str | None:
    """The installed PyTorch, local part included."""
    return case.version_of("pytorch") or None


def torch_build(case: Case, _lines: Lines) -> str | None:
    """What it is a build for: ``the CPU``, ``CUDA 10.2``."""
    torch = parsed_version(case.version_of("pytorch"))
    if torch is None:
        return None
    cuda = case.cuda_of("pytorch")
    return "the CPU" if torch.local == "cpu" else None if cuda is None else f"CUDA {cuda}"


def torch_lacks_cuda(case: Case, lines: Lines) -> bool:
    """Whether the library is of CUDA builds, and the installed PyTorch is one for the CPU."""
    return torch_build(case, lines) == "the CPU" and torch_file_is_of(case, lines) is not None


def torch_cuda_folder(case: Case, _lines: Lines) -> str | None:
    """The newest folder of PyTorch's index with a CUDA build of the installed version: ``cu124``."""
    torch = parsed_version(case.version_of("pytorch"))
    releases = () if torch is None else case.knowledge.releases("pytorch", torch.public)
    newest = max((it.cuda for it in releases if it.source.is_wheel and it.cuda is not None), default=None)
    return None if newest is None else f"cu{newest.major}{newest.minor}"


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


def toolkit_beside_torch(case: Case, _lines: Lines) -> CudaVersion | None:
    """The toolkit of the machine, if it is of another CUDA than PyTorch."""
    return None if case.toolkit == case.cuda_of("pytorch") else case.toolkit
