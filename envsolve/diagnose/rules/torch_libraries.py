"""What is known of a library of PyTorch that an extension misses: which builds have it, and which PyTorch is there."""

from __future__ import annotations

from packaging.version import Version

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.facts.programs import importer_of
from envsolve.diagnose.rules.named import known
from envsolve.model.versions import parsed_version

_SPLIT = ("libtorch_cuda_cu.so", "libtorch_cuda_cpp.so")
_SPLIT_IN = (Version("1.8"), Version("1.14"))
_SPLIT_MAJOR = 11
"""PyTorch 1.8 to 1.13 for CUDA 11 have libtorch_cuda.so in two parts: pytorch/pytorch#49050 and #70899."""
_OF_CUDA_BUILDS = ("libc10_cuda.so", "libtorch_cuda.so", *_SPLIT)

_WHOSE = {
    **dict.fromkeys(
        _SPLIT,
        "one of 1.8 to 1.13 for CUDA 11, which alone have libtorch_cuda.so in two parts; builds for CUDA 10.2 and the "
        "CPU, and newer ones, have not",
    ),
    "libc10_cuda.so": "a CUDA build, which a CPU build is not",
    "libtorch_cuda.so": "a CUDA build, which a CPU build is not",
    "libtorch_cpu.so": "one of 1.5 or newer",
}
_EXTENSION_FIRST = (
    "Where the installed PyTorch has the file, the extension was imported before torch: the loader knows torch/lib "
    "only after `import torch`."
)
_NO_CPU_BUILD = "A CPU build of PyTorch has to be replaced by a CUDA build (cu118, cu126, cu128)."
_PYG = ("torch-scatter", "torch-sparse", "torch-cluster", "torch-spline-conv", "pyg-lib")


def extension_fields(case: Case, sighting: Sighting) -> dict[str, str]:
    """Fields on the extension, the PyTorch that it was built with, and the one that is there."""
    file = sighting.get("library") or ""
    extension = _extension(case, sighting)
    version = case.version_of("pytorch")
    torch = parsed_version(version)
    has = None if torch is None else _has(case, torch, file)
    build = None if torch is None else _build(case, torch)
    return known(
        extension=extension,
        whose=f": {_WHOSE[file]}" if file in _WHOSE else None,
        torch_version=version,
        torch_build=build,
        torch_words=None if torch is None or build is None else f"PyTorch {torch.public} and {build}",
        cpu_words=None if build not in {None, "the CPU"} else _NO_CPU_BUILD,
        extension_build=case.told("extension_build"),
        toolkit=_toolkit(case),
        extension_first=None if has is False else _EXTENSION_FIRST,
        import_first=None if has is False else "In a program of your own import torch first.",
        pyg="PyG (torch-scatter, torch-sparse and others)" if extension in _PYG else None,
        pyg_torch=None if torch is None else f"{torch.release[0]}.{torch.release[1]}.0",
        pyg_cuda=None if torch is None else torch.local,
    )


def _extension(case: Case, sighting: Sighting) -> str | None:
    """The extension that a traceback, a list of packages or a sentence names."""
    importer = importer_of(case, (sighting,))
    if importer is not None and importer.lower() not in {"torch", "caffe2"}:
        return importer.replace("_", "-")
    named = dict.fromkeys(it.lower().replace("_", "-") for it in case.every("extension"))
    return next(iter(named)) if len(named) == 1 else None


def _build(case: Case, torch: Version) -> str | None:
    if torch.local == "cpu":
        return "the CPU"
    cuda = case.cuda_of("pytorch")
    return None if cuda is None else f"CUDA {cuda}"


def _has(case: Case, torch: Version, file: str) -> bool | None:
    """Whether the installed PyTorch has the library; None where that is not known."""
    cuda = case.cuda_of("pytorch")
    if torch.local == "cpu" and file in _OF_CUDA_BUILDS:
        return False
    if file not in _SPLIT:
        return None
    if not _SPLIT_IN[0] <= Version(torch.public) < _SPLIT_IN[1]:
        return False
    return None if cuda is None else cuda.major == _SPLIT_MAJOR


def _toolkit(case: Case) -> str | None:
    return None if case.toolkit in {None, case.cuda_of("pytorch")} else str(case.toolkit)
