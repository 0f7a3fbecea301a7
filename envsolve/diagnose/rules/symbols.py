"""Rules on functions that a library does not find in another: the symbol's name tells whose function it is.

A mangled C++ name tells the class and the arguments, and by these the C++ ABI and the generation of PyTorch it was
built for. A C name tells the library, and for NCCL, the driver and the CUDA runtime the release that brought it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from packaging.version import Version

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Rule
from envsolve.diagnose.facts.conda_parts import part_fields
from envsolve.diagnose.facts.library_names import span_of
from envsolve.diagnose.rules.belonging import belongs
from envsolve.diagnose.rules.functions import DRIVER_SINCE, NCCL_SINCE, RUNTIME_SINCE
from envsolve.diagnose.rules.functions import since as since_release
from envsolve.diagnose.rules.named import (
    about_gpus,
    cuda_major,
    known,
    listed,
    package_of,
    version_of_package,
)
from envsolve.model.versions import CudaVersion, parsed_version


class _Library(NamedTuple):
    """A CUDA library by the names of its functions: how it is written, its file and its package."""

    name: str
    file: str
    package: str


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
_TORCH_SYMBOL = re.compile(
    r"_?_Z\w*?(?:2at\d|3c10\d|5torch\d|6caffe2|4c10d|N2at|N3c10|N5torch)|THP\w+|_?THC?\w*Check|THCState|aoti_torch\w+|THTensor\w*"
)
_TENSORFLOW_SYMBOL = re.compile(r"_?_Z\w*?(?:10tensorflow|3tsl\d|6tflite|15stream_executor)")
_NEW_ABI = re.compile(r"__cxx11|B5cxx11")
_OLD_ABI = re.compile(r"(?<=[A-Z_0-9])(?:RKSs|(?:R|K)?Ss(?=$|[A-Z0-9_]))")
_NVJITLINK = re.compile(r"_(\d+)_(\d+)$")
_COMPONENTS = {"libcublas": "nvidia-cublas", "libcublasLt": "nvidia-cublas"}


def undefined_symbol(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """One diagnosis for each symbol; a text of no GPU software has none."""
    for sighting in sightings:
        causes = tuple(_causes(case, sighting))
        if causes:
            yield Diagnosis(causes, (sighting,))


def _causes(case: Case, sighting: Sighting) -> Iterator[Cause]:
    symbol = sighting.get("symbol") or ""
    library, of = sighting.get("library"), sighting.get("of")
    if "libbitsandbytes" in (library or ""):
        return  # it is the build for the CPU that was taken, which another rule tells
    if symbol == "iJIT_NotifyEvent":
        yield Cause("mkl-too-new", {"symbol": symbol})
    elif symbol.startswith("THPVariable"):
        yield Cause("extension-before-torch", {"symbol": symbol})
    elif _TORCH_SYMBOL.match(symbol):
        yield _of_torch(case, symbol, library)
    elif _TENSORFLOW_SYMBOL.match(symbol):
        yield _of_tensorflow(case, symbol, library)
    elif symbol.startswith("nccl"):
        yield _of_nccl(case, symbol, library)
    elif (found := _cuda_library(symbol, of)) is not None:
        yield _of_cuda(case, symbol, sighting, found)
    elif _DRIVER_FUNCTION.fullmatch(symbol):
        yield _of_driver(case, symbol)
    elif _PYTHON_SYMBOL.fullmatch(symbol) and about_gpus(case, package_of(library)):
        yield Cause("extension-of-other-python", known(symbol=symbol, package=package_of(library)))


def _cuda_library(symbol: str, of: str | None) -> _Library | None:
    """The CUDA library that a function is of: by the library that the loader names, else by the function's name."""
    name = (of or "").removeprefix("lib")
    for text in (name, symbol):
        for pattern, library in _LIBRARIES:
            if text and pattern.match(text):
                return library
    return None


def _of_torch(case: Case, symbol: str, library: str | None) -> Cause:
    package = package_of(library)
    if package == "torch" or _OF_TORCH.match((library or "").rpartition("/")[2]):
        return Cause("torch-mixed", known(library=library, symbol=symbol))
    package = package or _only_extension(case)
    version = case.version_of("pytorch")
    fields = known(
        symbol=symbol,
        package=package,
        package_version=version_of_package(case, package),
        torch_version=version,
        abi=_abi(symbol, version),
        other_build=_other_build(case, version),
        generation=_generation(symbol),
        belongs=belongs(case, package),
        known_fix=_KNOWN_FIXES.get(package or ""),
    )
    return Cause("extension-of-other-torch", fields)


_OF_TORCH = re.compile(r"lib(?:torch(?!audio|vision|text|codec|ao|scatter|sparse|cluster)|c10)")
"""Libraries of PyTorch itself; those of its companions begin alike."""


def _only_extension(case: Case) -> str | None:
    """The one package of compiled extensions for PyTorch that the text lists."""
    found = [name for name in case.packages if name in _KNOWN_FIXES]
    return found[0] if len(found) == 1 else None


_KNOWN_FIXES = {
    "flash-attn": "flash-attn's release page has a wheel for each torch, CUDA and ABI, as the name says: "
    "...+cu12torch2.6cxx11abiFALSE-cp310-... is for torch 2.6 with the old ABI and Python 3.10.",
    "torch-scatter": "PyG has wheels for each torch and CUDA: pip install torch-scatter -f "
    "https://data.pyg.org/whl/torch-2.N.0+cuXXX.html.",
    "torch-sparse": "PyG has wheels for each torch and CUDA: pip install torch-sparse -f "
    "https://data.pyg.org/whl/torch-2.N.0+cuXXX.html.",
    "torch-cluster": "PyG has wheels for each torch and CUDA: pip install torch-cluster -f "
    "https://data.pyg.org/whl/torch-2.N.0+cuXXX.html.",
    "vllm": "Each vLLM release is built for exactly one torch, which it pins: reinstall vllm together with the torch "
    "that it pins, in a fresh environment, and let no other package upgrade torch.",
    "mmcv": "OpenMMLab has wheels of mmcv for each torch and CUDA: mim install mmcv, or pip install mmcv -f with the "
    "page of your torch and CUDA.",
    "torchvision": "torchvision has one release for each release of torch.",
    "torchaudio": "torchaudio has one release for each release of torch up to 2.10.",
}


def _abi(symbol: str, version: str | None) -> str | None:
    """What the string arguments of a mangled name tell of the C++ ABI that the extension was built for."""
    torch = _torch_abi(version)
    if _NEW_ABI.search(symbol):
        told = (
            "The name holds std::__cxx11: the extension was built with the new C++11 ABI "
            "(_GLIBCXX_USE_CXX11_ABI=1, cxx11abiTRUE), as PyTorch's wheels have it from 2.7 on, and those of "
            "conda-forge and NVIDIA's containers always."
        )
        if torch == "old":
            told += " The installed PyTorch has the old ABI: take a wheel with cxx11abiFALSE."
        return told
    if _OLD_ABI.search(symbol):
        told = (
            "The name holds the std::string of the old C++ ABI (_GLIBCXX_USE_CXX11_ABI=0, cxx11abiFALSE): the "
            "extension was built for a PyTorch of pip up to 2.6."
        )
        if torch == "new":
            told += " The installed PyTorch has the new C++11 ABI: take a wheel with cxx11abiTRUE."
        return told
    return None


def _other_build(case: Case, version: str | None) -> str | None:
    """Whose PyTorch it is, where it is not that of pip for which projects build their wheels."""
    if case.told("torch_channel") is not None:
        return "conda-forge's"
    return "that of an NVIDIA container" if re.search(r"a0\+", version or "") else None


def _torch_abi(version: str | None) -> str | None:
    """The C++ ABI of PyTorch's own wheels: old up to 2.5, new from 2.7, and in 2.6 by the build (PyTorch 2.6 notes)."""
    torch = parsed_version(version)
    if torch is None:
        return None
    if torch.release[:2] == (2, 6):
        return {"cu126": "new", "cu118": "old", "cu124": "old"}.get(torch.local or "")
    return "new" if torch >= Version("2.7") else "old"


def _generation(symbol: str) -> str | None:
    """What else a mangled name tells of the PyTorch that an extension was built for."""
    if "c108optional" in symbol or re.search(r"3c10\d?\w*?8optionalI", symbol):
        return (
            "The name holds c10::optional, a class of its own up to PyTorch 2.1 and std::optional from 2.2 on: the "
            "extension was built for PyTorch 2.1 or older."
        )
    if "St8optionalI" in symbol:
        return "The name holds std::optional, as PyTorch's have from 2.2 on: the extension was built for 2.2 or newer."
    if "c107SymBool" in symbol:
        return "The name holds c10::SymBool, which came with PyTorch 2.0: the extension was built for 2.0 or newer."
    if "UndefinedTensorImpl" in symbol and "2at" in symbol:
        return "at::UndefinedTensorImpl moved to c10 with PyTorch 1.0: the extension was built for an older one."
    if "THC" in symbol:
        return (
            "THC, the old CUDA library of PyTorch, was removed in 1.11: the extension was built for an older PyTorch."
        )
    return None


def _of_tensorflow(case: Case, symbol: str, library: str | None) -> Cause:
    package = package_of(library)
    if package in ("tensorflow", "tensorflow-core"):
        package = None
    version = case.version_of("tensorflow")
    release = parsed_version(version)
    minor = None if release is None else ".".join(map(str, release.release[:2]))
    abi = None
    if _OLD_ABI.search(symbol):
        abi = "The name holds the std::string of the old C++ ABI, as TensorFlow's wheels up to 2.8 have it."
    fields = known(
        symbol=symbol,
        package=package,
        package_version=version_of_package(case, package),
        tensorflow_version=version,
        abi=abi,
        command=minor and package and f"pip install 'tensorflow=={minor}.*' '{package}=={minor}.*'",
    )
    return Cause("extension-of-other-tensorflow", fields)


def _of_nccl(case: Case, symbol: str, library: str | None) -> Cause:
    nccl = since_release(NCCL_SINCE, symbol.removeprefix("nccl"))
    packages = sorted(name for name in case.packages if re.fullmatch(r"nvidia-nccl(-cu1\d)?", name))
    major = cuda_major(case)
    torch_words = None
    if symbol == "ncclCommRegister":
        torch_words = "PyTorch 2.2 and newer call it; their wheels pin NCCL 2.19.3 or newer, PyTorch 2.1 needed 2.18."
    fields = known(
        symbol=symbol,
        library=library and library.rpartition("/")[2],
        nccl_words=nccl and f"is new in NCCL {nccl}",
        nccl_least=nccl and f", {nccl} or newer",
        torch_words=torch_words if library is None or "torch" in library else None,
        nccl_package=major and f"nvidia-nccl-cu{major}",
        nccl_packages=listed(packages) if len(packages) > 1 else None,
    )
    return Cause("nccl-too-old", fields)


def _of_driver(case: Case, symbol: str) -> Cause:
    since = since_release(DRIVER_SINCE, symbol.removeprefix("cu"))
    driver = None
    if since is not None:
        driver = case.knowledge.full_driver(CudaVersion.parse(since), windows=case.windows)
    fields = known(
        symbol=symbol,
        since_words=since and f", and came with CUDA {since} (driver {driver})",
        since_driver=None if driver is None else str(driver),
    )
    return Cause("driver-library-lacks-function", fields)


def _of_cuda(case: Case, symbol: str, sighting: Sighting, found: _Library) -> Cause:
    library = sighting.get("library") or ""
    if found.name == "cuDNN":
        return Cause("cudnn-symbol-mismatch", known(symbol=symbol, library=library, of=sighting.get("of")))
    if found.name == "NCCL":
        return _of_nccl(case, symbol, library)
    wanted = _wanted(symbol, found)
    span = span_of(case.knowledge, sighting.get("of") or "")
    if wanted is not None:
        major: int | None = wanted.major
    elif span is not None and span.first.major == span.last.major:
        major = span.first.major
    else:
        major = case.built_cuda.major if case.built_cuda is not None else None
    directory = found.package.removeprefix("nvidia-").replace("-", "_")
    part = part_fields(case, found.file, found.package, span)
    fields = part | known(
        symbol=symbol,
        library=library.rpartition("/")[2],
        of=sighting.get("of"),
        library_name=found.name,
        library_title="The CUDA runtime" if found.file == "libcudart" else found.name,
        none_loaded="the CUDA runtime" if found.file == "libcudart" and "torch" not in library else None,
        span=None if span is None else str(span),
        since=_runtime_words(symbol),
        wants=_wanted_words(case, library, found, wanted),
        own_directory=f"export LD_LIBRARY_PATH=$(python -c 'import site; print(site.getsitepackages()[0])')"
        f"/nvidia/{directory}/lib:$LD_LIBRARY_PATH",
        upgrade=_upgrade(found, wanted, major),
        ld_library_path=case.told("ld_library_path"),
        conda_name=found.file.lower() if part or case.told("conda") is not None else None,
        components=listed(case.every("component")[:8]) if len(case.every("component")) > 1 else None,
        module="torch" if "torch" in library or case.framework in (None, "pytorch") else case.framework,
    )
    return Cause("library-mismatch", fields)


def _wanted(symbol: str, found: _Library) -> CudaVersion | None:
    """The CUDA in the name of a function of nvJitLink, ``__nvJitLinkComplete_12_4``."""
    match = _NVJITLINK.search(symbol) if found.name == "nvJitLink" else None
    return None if match is None else CudaVersion(int(match[1]), int(match[2]))


def _wanted_words(case: Case, library: str, found: _Library, wanted: CudaVersion | None) -> str | None:
    if wanted is not None:
        words = (
            f"The name ends in {wanted.major}_{wanted.minor}: {library.rpartition('/')[2] or 'the library'} is of "
            f"CUDA {wanted} or newer and needs an nvJitLink that is as new, libnvJitLink.so.{wanted.major} of CUDA "
            f"{wanted}; the one that is loaded does not have it."
        )
        if case.toolkit is not None and case.toolkit < wanted:
            words += f" CUDA {case.toolkit} of the machine is such an older one."
        return words
    if "cublas" in library and found.file == "libcublasLt":
        return "libcublas and libcublasLt belong together and have to be of exactly one cuBLAS release."
    return f"Libraries of one CUDA release use each other's newest functions: a newer one finds an older {found.name}."


def _runtime_words(symbol: str) -> str | None:
    since = since_release(RUNTIME_SINCE, symbol)
    return since and f"{symbol} came with CUDA {since}: the libcudart that is loaded is of an older CUDA."


_UNSUFFIXED = 13
"""From this CUDA on NVIDIA's packages have no -cu in their names."""


def _upgrade(found: _Library, wanted: CudaVersion | None, major: int | None) -> str | None:
    if not found.package.startswith("nvidia-"):
        return None
    package = found.package if major == _UNSUFFIXED else f"{found.package}-cu{major or 12}"
    least = "" if wanted is None else f" to {wanted} or newer"
    return f"upgrade {package}{least}, at best to what the framework pins (reinstall it without --no-deps)"


RULES: Mapping[str, Rule] = {"undefined-symbol": undefined_symbol}
