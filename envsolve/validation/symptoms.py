"""Texts by which CUDA, its libraries and the frameworks tell what is wrong, and the finding that each means. Data.

Where several match, the first in this table is the cause and the others follow from it; so what names one thing comes
before what many things can bring about. A pattern looks at one line. ``told`` is a sentence about what that line holds:
its fields are the groups of the pattern; ``cuda`` is a number as CUDA writes versions, 12080 for 12.8.

Where each text was seen is told beside it in tests/validation/cases/symptoms.jsonl.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class Symptom(NamedTuple):
    """A text and the id of its finding."""

    finding: str
    pattern: re.Pattern[str]
    told: str = ""


class Sighting(NamedTuple):
    """A symptom in a text: the line it was seen in, cut down around it, and what that line tells."""

    finding: str
    line: str
    told: str


def _symptom(finding: str, pattern: str, told: str = "") -> Symptom:
    return Symptom(finding, re.compile(pattern, re.IGNORECASE), told)


def _number(error: int) -> str:
    """A CUresult where a framework could not name it: Error 803 (PyTorch), (803) (TensorFlow), error 803; (JAX)."""
    return rf"|\bError {error}:|unknown (CUDA )?error \(?{error}\b|CUDA (runtime )?error ?\({error}\)"


_LIBRARY = r"(?P<library>[\w+.-]+\.so(?:\.\d+)*|[\w.-]+\.dll)"
_CUDNN = r"(?P<library>libcudnn\w*\.so(?:\.\d+)*|cudnn\w*\.dll)"

SYMPTOMS = (
    # The driver
    _symptom("stub-driver-library", r"CUDA_ERROR_STUB_LIBRARY|cudaErrorStubLibrary|is a stub library" + _number(34)),
    _symptom(
        "forward-compatibility-unsupported", r"forward compatibility was attempted on non supported HW" + _number(804)
    ),
    _symptom(
        "driver-version-mismatch",
        r"kernel version (?P<kernel>[\d.]+) does not match DSO version (?P<library>[\d.]+)",
        "The kernel module is {kernel}, libcuda is {library}.",
    ),
    _symptom(
        "driver-version-mismatch",
        r"unsupported display driver / cuda driver combination|CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"
        r"|Driver/library version mismatch" + _number(803),
    ),
    _symptom(
        "fabric-manager-not-ready",
        r"system not yet initialized|CUDA_ERROR_SYSTEM_NOT_READY|cudaErrorSystemNotReady" + _number(802),
    ),
    _symptom(
        "driver-unknown-error",
        r"CUDA unknown error|CUDA_ERROR_UNKNOWN\b|cudaErrorUnknown\b|cuda runtime error \(30\)" + _number(999),
    ),
    _symptom(
        "driver-too-old",
        r"NVIDIA driver on your system is too old \(found version (?P<cuda>\d+)\)",
        "The driver supports CUDA up to {cuda}.",
    ),
    _symptom("libcuda-not-found-by-cudnn", r"Could not load library libcudnn[\w.]*\. Error: libcuda\.so: cannot open"),
    _symptom("driver-library-missing", r"(libcuda\.so\.1|nvcuda\.dll)'?[:;]? .*(cannot open|not found|No such file)"),
    _symptom(
        "driver-library-missing",
        r"Found no NVIDIA driver on your system" + _number(303),
    ),
    _symptom(
        "driver-too-old",
        r"driver version is insufficient for CUDA runtime version|cudaErrorInsufficientDriver" + _number(35),
    ),
    _symptom(
        "driver-too-old-for-call",
        r"API call is not supported in the installed CUDA driver|CallRequiresNewerDriver|CALL_REQUIRES_NEWER_DRIVER",
    ),
    _symptom(
        "driver-not-initialized",
        r"CUDA driver initialization failed|cudaErrorInitializationError|cuInit.*: CUDA_ERROR_NOT_INITIALIZED"
        + _number(3),
    ),
    _symptom("ptx-compiler-missing", r"PTX JIT compiler library (was )?not found|CUDA_ERROR_JIT_COMPILER_NOT_FOUND"),
    _symptom(
        "ptx-too-new",
        r"PTX was compiled with an unsupported toolchain|cudaErrorUnsupportedPtxVersion"
        r"|CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    ),
    # The GPU and what the build has for it
    _symptom(
        "no-code-for-gpu",
        r"(?P<gpu>\S.*?) with CUDA capability (?P<capability>sm_\w+) is not compatible with the current PyTorch",
        "{gpu} is {capability}.",
    ),
    _symptom(
        "no-code-for-gpu",
        r"Ignoring visible gpu device .* capability (?P<capability>[\d.]+)\. The minimum required Cuda capability is "
        r"(?P<least>\d+\.\d+)",
        "The GPU has compute capability {capability}, the least that this build runs on is {least}.",
    ),
    _symptom(
        "no-code-for-gpu",
        r"not built with CUDA kernel binaries compatible with compute capability (?P<capability>\d+\.\d+)",
        "The GPU has compute capability {capability}.",
    ),
    _symptom(
        "no-code-for-gpu",
        r"no kernel image is available|CUDA_ERROR_NO_BINARY_FOR_GPU|cudaErrorNoKernelImageForDevice"
        r"|_STATUS_ARCH_MISMATCH"
        r"|invalid value for --gpu-architecture",
    ),
    _symptom("invalid-kernel-image", r"device kernel image is invalid|CUDA_ERROR_INVALID_IMAGE"),
    _symptom("gpu-ecc-error", r"uncorrectable ECC error|CUDA_ERROR_ECC_UNCORRECTABLE"),
    _symptom("gpu-unavailable", r"CUDA-capable device\(s\) is/are busy or unavailable|devices are busy or unavailable"),
    # Memory: before cuDNN and cuBLAS, which say it in their own way
    _symptom(
        "out-of-memory",
        r"out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|RESOURCE_EXHAUSTED|_STATUS_ALLOC_FAILED",
    ),
    # Builds
    _symptom(
        "cpu-build",
        r"Torch not compiled with CUDA enabled|installed CPU version PaddlePaddle"
        r"|'cuda' is not in the list of known backends"
        r"|not compiled with CUDA|no attribute 'GpuAllocatorConfig'",
    ),
    # cuDNN
    _symptom(
        "cudnn-version-mismatch",
        r"Loaded runtime CuDNN library: (?P<found>[\d.]+\d) but source was compiled with:? (?P<built>[\d.]+\d)",
        "cuDNN {found} was loaded, and the build needs {built} or newer of the same major version.",
    ),
    _symptom(
        "cudnn-version-mismatch",
        r"compiled with CUDNN (?P<built>[\d.]+), but CUDNN version in your machine is (?P<found>[\d.]+\d)",
        "cuDNN {found} was loaded, and the build was made with {built}.",
    ),
    _symptom(
        "cudnn-version-mismatch",
        r"cuDNN version incompatibility: PyTorch was compiled\s+against \((?P<built>[\d, ]+)\) but found runtime "
        r"version \((?P<found>[\d, ]+)\)",
        "cuDNN {found} was loaded, and the build was made with {built}.",
    ),
    _symptom("cudnn-version-mismatch", r"CUDNN_STATUS_(SUBLIBRARY_)?(VERSION_MISMATCH|LOADING_FAILED)"),
    _symptom("cudnn-broken", rf"Could not load library {_CUDNN}", "It is {library}."),
    _symptom("zlib-missing", r"Could not locate zlibwapi\.dll"),
    # Libraries
    _symptom(
        "library-mismatch",
        r"(?P<library>[\w.+-]+\.so[\w.]*)?(: )?undefined symbol: (?P<symbol>\w+)(, version (?P<of>[\w.]+))?",
        "The loader looks for {symbol}.",
    ),
    _symptom(
        "libdevice-missing", r"libdevice not found|Can't find libdevice directory|libdevice is required by this HLO"
    ),
    _symptom(
        "cuda-headers-missing",
        r"cannot open source file \"(?P<header>[\w./]+)\"|(?P<other>Failed to find CUDA headers)",
        "The compiler misses {header}.",
    ),
    _symptom("library-missing", rf"{_LIBRARY}'?[:;]? (dlerror: .*)?cannot open shared object file", "It is {library}."),
    _symptom("library-missing", rf"Could not load dynamic library '{_LIBRARY}'", "It is {library}."),
    _symptom("library-missing", rf"failed to load {_LIBRARY}", "It is {library}."),
    _symptom(
        "library-missing",
        rf"WinError 126\].*Error loading \"(?:.*\\)?{_LIBRARY}\" or one of its dependencies",
        "It is {library}, or a library that this one needs.",
    ),
    _symptom(
        "library-missing",
        r"The third-party dynamic library \((?P<library>[\w.]+)\) that Paddle depends on is not configured",
        "It is {library}.",
    ),
    _symptom(
        "library-missing", r"Unable to load (?P<library>CUDA|cuDNN|cuBLAS|cuFFT|cuSPARSE|cuSOLVER)\. Is it installed"
    ),
    _symptom("library-missing", r"Error loading CUDA libraries"),
    _symptom("no-gpu-for-framework", r"Unable to load cuPTI\. Is it installed"),
    _symptom("glibc-too-old", r"version `(?P<version>GLIBC(XX)?_[\d.]+)' not found", "It asks for {version}."),
    # Python packages around a framework
    _symptom(
        "numpy-mismatch",
        r"compiled using NumPy 1\.x cannot be run in|was removed in the NumPy 2\.0 release|numpy\.dtype size changed"
        r"|module compiled against API version",
    ),
    _symptom("protobuf-mismatch", r"Descriptors cannot (not )?be created directly"),
    # What many things bring about
    _symptom(
        "no-gpu-for-framework",
        r"No CUDA GPUs are available|no CUDA-capable device is detected|CUDA_ERROR_NO_DEVICE|cudaErrorNoDevice\b"
        r"|No visible GPU devices|NoDeviceError|Cannot dlopen some GPU libraries|CUDA device is not set properly"
        r"|invalid device ordinal" + _number(100),
    ),
    _symptom(
        "cudnn-broken", r"CUDNN_STATUS_\w+|CUDNN error|DNN library is not found|DNN library initialization failed"
    ),
    _symptom("cudnn-broken", r"unable to find (an engine to execute|a valid cuDNN algorithm)"),
    _symptom("cublas-broken", r"CUBLAS_STATUS_\w+|failed to create cublas handle|CUBLAS error"),
    _symptom(
        "kernel-failed",
        r"illegal memory access|CUDA_ERROR_ILLEGAL_ADDRESS|unspecified launch failure|CUDA_ERROR_LAUNCH_FAILED"
        r"|illegal instruction was encountered|misaligned address|device-side assert",
    ),
)
_HARMLESS = re.compile(r"libnvinfer|TF-TRT|TensorRT|libtpu|Compile with `TORCH_USE_CUDA_DSA`", re.IGNORECASE)
"""Lines that tell of nothing: TensorFlow and ONNX Runtime look for TensorRT and go on without it, PyTorch gives one
piece of advice with every error of CUDA."""

_COLOUR = re.compile(r"\x1b\[[\d;]*m")

LONGEST_LINE = 300
LONGEST_LEAD = 120
"""Characters of a line that are kept, and of those before the symptom."""
WEAK = frozenset({"no-gpu-for-framework", "cudnn-broken", "cublas-broken"})
"""Findings that many things bring about: another one in the same output is the better answer."""


def sightings(text: str) -> tuple[Sighting, ...]:
    """Every finding that ``text`` tells of, once each, the cause of the others first; each line tells of one."""
    lines = [line.strip() for line in _COLOUR.sub("", text).splitlines()]
    lines = [line for line in dict.fromkeys(lines) if line and not _HARMLESS.search(line)]
    found: dict[str, Sighting] = {}
    for symptom in SYMPTOMS:
        matches = [(line, match) for line in lines if (match := symptom.pattern.search(line))]
        if matches:
            match = matches[0][1]
            found.setdefault(symptom.finding, Sighting(symptom.finding, _around(match), _filled(symptom, match)))
            lines = [it for it in lines if it not in {line for line, _ in matches}]
    return tuple(found.values())


def _around(match: re.Match[str]) -> str:
    line = match.string
    start = max(0, match.start() - LONGEST_LEAD) if len(line) > LONGEST_LINE else 0
    cut = line[start : start + LONGEST_LINE]
    return ("…" if start else "") + cut + ("…" if start + LONGEST_LINE < len(line) else "")


def _filled(symptom: Symptom, match: re.Match[str]) -> str:
    fields = dict(_fields(match))
    try:
        return symptom.told.format_map(fields)
    except KeyError:  # a group that took no part
        return ""


def _fields(match: re.Match[str]) -> Iterator[tuple[str, str]]:
    for name, value in match.groupdict().items():
        if value is not None:
            yield name, _version(value) if name == "cuda" else value


def _version(number: str) -> str:
    """12.8 of 12080, as CUDA_VERSION in cuda.h counts."""
    return f"{int(number) // 1000}.{int(number) % 1000 // 10}"
