"""Facts on functions that a library does not find in another: the symbol's name shows whose function it is.

A mangled C++ name shows the namespace, the class and the arguments, and by these who defines it, the C++ ABI and the
generation of PyTorch that a library was built for. A C name shows the library, and for NCCL, the driver and the CUDA
runtime the release that brought it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.diagnose.case import Case, Lines, merged
from envsolve.diagnose.facts.shared.gpu_packages import (
    about_gpus,
    cuda_major,
    is_of_gpus,
    package_of,
    version_of_package,
)
from envsolve.diagnose.facts.shared.library_names import Span, span_of
from envsolve.model.names import normalized
from envsolve.model.versions import CudaVersion, parsed_cuda, parsed_version


class _Library(NamedTuple):
    """A CUDA library by the names of its functions: how it is written, its file and its package."""

    name: str
    file: str
    package: str

    def __str__(self) -> str:
        return self.name

    @property
    def directory(self) -> str:
        """Its directory below site-packages/nvidia."""
        return self.package.removeprefix("nvidia-").replace("-", "_")


_LIBRARIES = (
    (re.compile(r"_*nvJitLink"), _Library("nvJitLink", "libnvJitLink", "nvidia-nvjitlink")),
    (re.compile(r"cublasLt"), _Library("cuBLASLt", "libcublasLt", "nvidia-cublas")),
    (re.compile(r"cublas"), _Library("cuBLAS", "libcublas", "nvidia-cublas")),
    (re.compile(r"cusparseLt"), _Library("cuSPARSELt", "libcusparseLt", "nvidia-cusparselt")),
    (re.compile(r"cusparse"), _Library("cuSPARSE", "libcusparse", "nvidia-cusparse")),
    (re.compile(r"cusolver"), _Library("cuSOLVER", "libcusolver", "nvidia-cusolver")),
    (re.compile(r"cufft"), _Library("cuFFT", "libcufft", "nvidia-cufft")),
    (re.compile(r"curand"), _Library("cuRAND", "libcurand", "nvidia-curand")),
    (re.compile(r"cudnn|_ZNK?5cudnn"), _Library("cuDNN", "libcudnn", "nvidia-cudnn")),
    (re.compile(r"nccl"), _Library("NCCL", "libnccl", "nvidia-nccl")),
    (re.compile(r"nvrtc"), _Library("NVRTC", "libnvrtc", "nvidia-cuda-nvrtc")),
    (re.compile(r"nvshmem"), _Library("NVSHMEM", "libnvshmem", "nvidia-nvshmem")),
    (re.compile(r"cutensor"), _Library("cuTENSOR", "libcutensor", "cutensor")),
    (re.compile(r"cupti"), _Library("CUPTI", "libcupti", "nvidia-cuda-cupti")),
    (re.compile(r"_*cuda[A-Z]\w*|cudart"), _Library("CUDA runtime", "libcudart", "nvidia-cuda-runtime")),
)
_DRIVER_FUNCTION = re.compile(r"cu[A-Z]\w+")
_PYTHON_SYMBOL = re.compile(r"_?Py[A-Z_]\w+")
_TORCH_TYPES = re.compile(
    r"_?_Z\w*?(?:2at\d|3c10\d|5torch\d|6caffe2|4c10d|N2at|N3c10|N5torch)|THP\w+|_?THC?\w*Check|THCState|(?:aoti_)?torch_\w+|THTensor\w*"
)
_TENSORFLOW_TYPES = re.compile(r"_?_Z\w*?(?:10tensorflow|3tsl\d|6tflite|15stream_executor)")
_OF_TORCH = ("at", "c10", "c10d", "torch", "caffe2", "std")
"""Namespaces that PyTorch's libraries define, templates of std on its types included."""
_OF_OTHERS = ("nvinfer1", "cutensor", "__cxxabiv1", "__gnu_cxx", "google", "absl", "cv", "rmm", "raft")
"""Namespaces of libraries that packages for GPUs use."""
_START = re.compile(r"_?_Z(?:T[ISV]|GV)?(?P<nested>N[VK]*)?(?P<rest>\d\w*|St\w*)")
_NVJITLINK = re.compile(r"_(\d+)_(\d+)$")
_TORCH_FILES = re.compile(r"lib(?:torch(?!audio|vision|text|codec|ao|scatter|sparse|cluster)|c10)")
"""Libraries of PyTorch itself; those of its companions begin alike."""
_EXTENSIONS = (
    "flash-attn", "torch-scatter", "torch-sparse", "torch-cluster", "vllm", "mmcv", "torchvision", "torchaudio",
)  # fmt: skip
"""Packages of compiled extensions for PyTorch that are named where a text lists one of them only."""
_SITE = re.compile(r"(?:site|dist)-packages")
_USER_SITE = re.compile(r"/\.local/lib/python")
_UNSUFFIXED = 13
"""From this CUDA on NVIDIA's packages have no -cu in their names."""
_LABELS_SINCE = CudaVersion(11, 4)
"""From this CUDA on the channel nvidia has a label for each release: anaconda.org/nvidia."""


# ---------------------------------------------------------------------------------------------- whose symbol it is


def _symbol(lines: Lines) -> str:
    return merged(lines).get("symbol", "")


def _parts(symbol: str) -> tuple[str, ...]:
    """The namespaces and the name of what a mangled name stands for: ``at, _ops, zeros``; () where it is none."""
    match = _START.match(symbol)
    if match is None:
        return ()
    found, rest = [], match["rest"]
    if rest.startswith("St"):
        found, rest = ["std"], rest[2:]
    while number := re.match(r"\d+", rest):
        end = number.end() + int(number[0])
        found.append(rest[number.end() : end])
        rest = rest[end:]
        if not match["nested"]:
            break
    return tuple(found)


def symbol_name(_case: Case, lines: Lines) -> str | None:
    """A function of C++ by its own name, ``c10::cuda::SetDevice``."""
    return "::".join(_parts(_symbol(lines))) or None


def symbol_owner(case: Case, lines: Lines) -> str | None:  # noqa: PLR0911 - one for each owner
    """Who defines the function: mkl, torch-python, pytorch, tensorflow, nccl, cudnn, cuda, driver or python.

    ``own`` is the package that needs it: it is a function of C++ of no framework's namespace.
    """
    symbol, package = _symbol(lines), package_of(merged(lines).get("library"))
    if symbol == "iJIT_NotifyEvent":
        return "mkl"
    if symbol.startswith("THPVariable"):
        return "torch-python"
    if _TENSORFLOW_TYPES.match(symbol):
        return "tensorflow"
    if _TORCH_TYPES.match(symbol):
        return "pytorch" if torch_library(case, lines) or _is_of_torch(symbol) else "own"
    if symbol.startswith("nccl"):
        return "nccl"
    if (found := cuda_library(case, lines)) is not None:
        return {"cuDNN": "cudnn", "NCCL": "nccl"}.get(found.name, "cuda")
    if _DRIVER_FUNCTION.fullmatch(symbol):
        return "driver"
    if _PYTHON_SYMBOL.fullmatch(symbol) and about_gpus(case, package):
        return "python"
    ours = package is not None and is_of_gpus(package) and not torch_library(case, lines)
    return "own" if ours and _parts(symbol) and not {*_OF_TORCH, *_OF_OTHERS}.intersection(_parts(symbol)) else None


def _is_of_torch(symbol: str) -> bool:
    parts = _parts(symbol)
    return not parts or parts[0] in _OF_TORCH or parts[-1].startswith(("TH", "aoti_torch"))


def cuda_library(_case: Case, lines: Lines) -> _Library | None:
    """The CUDA library that the function is of: by the library that the loader names, else by the function's name."""
    fields = merged(lines)
    for text in (fields.get("of", "").removeprefix("lib"), fields.get("symbol", "")):
        for pattern, library in _LIBRARIES:
            if text and pattern.match(text):
                return library
    return None


# ---------------------------------------------------------------------------------------------- who needs it


def symbol_package(case: Case, lines: Lines) -> str | None:
    """The package that needs it: of its file, else the only one of compiled extensions that the text lists or names."""
    package = package_of(merged(lines).get("library"))
    if package is not None:
        return None if package in ("tensorflow", "tensorflow-core") else package
    named = (*case.packages, *map(normalized, case.every("gpu_name")))
    found = {name for name in named if name in _EXTENSIONS}
    return found.pop() if len(found) == 1 else None


def wheel_names_this_torch(case: Case, lines: Lines) -> bool:
    """Whether the name of flash-attn's wheel has the release of torch that the text says is installed."""
    package = symbol_package(case, lines)
    built = re.search(r"torch(\d+\.\d+)", version_of_package(case, package) or "")
    torch = case.version_of("pytorch") or ""
    return package == "flash-attn" and built is not None and torch.split(".")[:2] == built[1].split(".")


def torch_library(_case: Case, lines: Lines) -> bool:
    """Whether a library of PyTorch itself needs it."""
    library = merged(lines).get("library", "")
    return package_of(library) == "torch" or _TORCH_FILES.match(library.rpartition("/")[2]) is not None


def in_user_site(case: Case, lines: Lines) -> bool:
    """Whether it lies in a user's own site-packages, and the text shows another directory of packages as well."""
    if not _USER_SITE.search(merged(lines).get("library", "")):
        return False
    texts = (*case.every("frame"), *(it.line for it in case.sightings))
    return any(_SITE.search(it) and not _USER_SITE.search(it) for it in texts)


# ---------------------------------------------------------------------------------------------- PyTorch


def torch_abi(case: Case, _lines: Lines) -> str | None:
    """The C++ ABI of PyTorch's own wheels: old up to 2.5, new from 2.7, and in 2.6 by the build (PyTorch 2.6 notes)."""
    torch = parsed_version(case.version_of("pytorch"))
    if torch is None:
        return None
    if torch.release[:2] == (2, 6):
        return {"cu126": "new", "cu118": "old", "cu124": "old"}.get(torch.local or "")
    return "new" if torch >= Version("2.7") else "old"


# ---------------------------------------------------------------------------------------------- CUDA's libraries


def nccl_package(case: Case, _lines: Lines) -> str | None:
    """The package of NCCL for the CUDA major of the build."""
    major = cuda_major(case)
    return major and f"nvidia-nccl-cu{major}"


def nccl_packages(case: Case, _lines: Lines) -> tuple[str, ...]:
    """The packages of NCCL that are installed, where there are several."""
    found = sorted(name for name in case.packages if re.fullmatch(r"nvidia-nccl(-cu1\d)?", name))
    return tuple(found) if len(found) > 1 else ()


def cuda_library_package(case: Case, lines: Lines) -> str | None:
    """Its package on the Python index, for the CUDA major in the text."""
    found, span = cuda_library(case, lines), _span(case, lines)
    if found is None or not found.package.startswith("nvidia-"):
        return None
    major = case.built_cuda.major if case.built_cuda is not None else None
    if span is not None and span.first.major == span.last.major:
        major = span.first.major
    if (cuda := symbol_cuda(case, lines)) is not None:
        major = cuda.major
    return found.package if major == _UNSUFFIXED else f"{found.package}-cu{major or 12}"


def _span(case: Case, lines: Lines) -> Span | None:
    return span_of(case.knowledge, merged(lines).get("of", ""))


def symbol_cuda(case: Case, lines: Lines) -> CudaVersion | None:
    """The CUDA in the name of a function of nvJitLink, ``__nvJitLinkComplete_12_4``."""
    found = cuda_library(case, lines)
    match = _NVJITLINK.search(_symbol(lines)) if found is not None and found.name == "nvJitLink" else None
    return None if match is None else CudaVersion(int(match[1]), int(match[2]))


def cuda_packages(case: Case, _lines: Lines) -> tuple[str, ...]:
    """CUDA's libraries in a list of packages, with the source of each, where they are of several sources."""
    rows = [it.split() for it in case.every("component")]
    sources = {row[-1] for row in rows}
    return tuple(f"{row[0]} {row[1]} ({row[-1]})" for row in rows[:4]) if len(sources) > 1 else ()


# ---------------------------------------------------------------------------------------------- conda's libraries


class _CondaLibrary(NamedTuple):
    """A package of a CUDA library that a list of conda shows, the toolkit that it belongs to, and what is needed.

    ``label`` is the label of the channel nvidia that has the libraries of the needed CUDA.
    """

    name: str
    version: str
    channel: str
    cuda: CudaVersion
    wanted: str | None
    label: str | None

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def conda_library(case: Case, lines: Lines) -> _CondaLibrary | None:
    """The conda package of the library, where it is of another CUDA than the framework or the wanted file."""
    found = cuda_library(case, lines)
    rows = (it.split() for it in case.every("component"))
    row = next((it for it in rows if found is not None and it[0].lower() == found.file.lower()), None)
    cuda = None if row is None or found is None else _toolkit_of(case, found.package, row[1])
    wanted, span = _framework_cuda(case), _span(case, lines)
    if row is None or cuda is None or cuda == wanted or (wanted is None and (span is None or cuda in span)):
        return None
    needed = span and str(span) if wanted is None else f"CUDA {wanted}"
    return _CondaLibrary(row[0].lower(), row[1], row[-1].partition("/")[0], cuda, needed, _label(case, wanted))


def _toolkit_of(case: Case, package: str, version: str) -> CudaVersion | None:
    """The toolkit that a version of a library belongs to; pip and conda count them alike."""
    if parsed_version(version) is None:
        return None
    names = (package, f"{package}-cu{version.partition('.')[0]}", f"{package}-cu11", f"{package}-cu12")
    exact = SpecifierSet(f"=={version}")
    found = {it for name in names for it in case.knowledge.matrix.components.toolkits_with(name, exact)}
    return found.pop() if len(found) == 1 else None


def _framework_cuda(case: Case) -> CudaVersion | None:
    """The CUDA that the framework was built with: by conda's metapackage, or its own."""
    return parsed_cuda(case.packages.get("pytorch-cuda")) or case.built_cuda


def _label(case: Case, wanted: CudaVersion | None) -> str | None:
    if wanted is None or wanted < _LABELS_SINCE:
        return None
    releases = [it.version for it in case.knowledge.matrix.components.releases if it.cuda == wanted]
    return str(max(releases)) if releases else None
