"""Which program wants a library, and what is to be known of it: which CUDA and cuDNN its builds want, who brings them.

Beside the frameworks of the matrix these are programs that people meet CUDA's libraries through. Facts here are those
that are not in the matrix; each has its source.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from envsolve.diagnose.case import TITLES, Case, Sighting
from envsolve.diagnose.cause import Remedy


class Program(NamedTuple):
    """A program: its title, by what a line names it, and one sentence or two on its libraries with their source."""

    title: str
    pattern: re.Pattern[str]
    advice: str
    source: str


def _program(title: str, pattern: str, advice: str, source: str) -> Program:
    return Program(title, re.compile(pattern, re.IGNORECASE), advice, source)


PROGRAMS = {
    "ctranslate2": _program(
        "CTranslate2",
        r"ctranslate2|faster[-_ ]?whisper|whisper[-_]?x|is not found or cannot be loaded",
        "CTranslate2 (faster-whisper, WhisperX) wants CUDA 11 and cuDNN 8 before 4.0, CUDA 12 and cuDNN 8 from "
        "4.0 to 4.4, CUDA 12 and cuDNN 9 from 4.5 on, and brings neither: install nvidia-cublas-cu12 and "
        "'nvidia-cudnn-cu12==9.*' (==8.* for 4.0 to 4.4) and put site-packages/nvidia/cublas/lib and "
        "site-packages/nvidia/cudnn/lib on LD_LIBRARY_PATH (on Windows their bin directories on PATH), or take "
        "the CTranslate2 for the cuDNN that is there: ctranslate2==4.4.0 for cuDNN 8, 4.5 or newer with PyTorch "
        "2.4 or newer for cuDNN 9.",
        "https://github.com/SYSTRAN/faster-whisper/issues/1086",
    ),
    "bitsandbytes": _program(
        "bitsandbytes",
        r"bitsandbytes|CUDA[_ ]SETUP:",
        "bitsandbytes before 0.43 looks for libcudart only on LD_LIBRARY_PATH and in $CONDA_PREFIX/lib; from "
        "0.43 on it takes the CUDA of PyTorch: upgrade bitsandbytes to 0.43 or newer, or put the directory of "
        "libcudart on LD_LIBRARY_PATH.",
        "https://github.com/bitsandbytes-foundation/bitsandbytes/issues/778",
    ),
    "tfjs": _program(
        "TensorFlow.js for Node",
        r"tfjs|node_modules[\\/]@tensorflow",
        "tfjs-node-gpu brings no CUDA and wants that of the TensorFlow inside it, whatever TensorFlow's own page says: "
        "1.x has TensorFlow 1.14 or 1.15 and wants CUDA 10.0 and cuDNN 7, 2.x TensorFlow 2.1 to 2.3 with CUDA 10.1 and "
        "cuDNN 7.6, current releases want CUDA 11.2 and cuDNN 8.1; an older or newer CUDA beside it does not help. Its "
        "bin or lib directory has to be on PATH (on Linux LD_LIBRARY_PATH).",
        "https://github.com/tensorflow/tfjs/issues/8362",
    ),
    "llama.cpp": _program(
        "llama.cpp",
        r"llama[-_. ]cpp|\bllama\.dll|ggml|llama-server",
        "A CUDA build of llama.cpp or llama-cpp-python is for one CUDA (cu118, cu121, cu124 in its name) and "
        "brings no cudart and cuBLAS: install the runtime of that CUDA, and on Windows have its bin directory "
        "in CUDA_PATH; the releases of llama.cpp have them as cudart-llama-bin-win-cuda.",
        "https://github.com/abetlen/llama-cpp-python/pull/225",
    ),
    "mxnet": _program(
        "MXNet",
        r"mxnet|libmxnet",
        "MXNet has a package for each CUDA (mxnet-cu102, mxnet-cu112) and brings no CUDA: take the one for the "
        "CUDA that is there.",
        "https://github.com/apache/mxnet/issues/21179",
    ),
    "rapids": _program(
        "RAPIDS",
        r"(?<![\w-])(?:rapids(?:ai)?|cuml|cudf|cugraph|cuspatial|librmm|libcuml|libcudf|libraft)",
        "RAPIDS (cudf, cuml, cugraph) has packages for each CUDA major, by their suffix -cu11, -cu12 or -cu13: it has "
        "to be the CUDA major of the machine or notebook (nvcc --version; a driver runs its own major and older "
        "ones). Packages of the other major find no library of theirs: uninstall them and install those with the "
        "right suffix.",
        "https://docs.rapids.ai/install/",
    ),
    "vllm": _program(
        "vLLM",
        r"(?<!\w)vllm",
        "vLLM's wheel and PyTorch have to be of one CUDA major: a wheel for CUDA 13 with a PyTorch of CUDA 12 "
        "(or the other way round) finds no libcudart of its own; take both from one index (cu128, cu129, cu130).",
        "https://github.com/vllm-project/vllm/issues/52300",
    ),
    "cudarc": _program(
        "The Rust program (cudarc)",
        r"cudarc|shared library - searched for library names|candle|mistralrs|mistral\.rs",
        "A program with cudarc looks for the library under names of the CUDA it was built for and without a "
        "number; an image with the runtime only has numbered names: use the devel image or make the link "
        "without a number, and build for the CUDA that is there.",
        "https://github.com/chelsea0x3b/cudarc/issues/274",
    ),
    "julia": _program(
        "CUDA.jl",
        r"CUDA\.jl|CUDA_Runtime|julia",
        "CUDA.jl downloads its own CUDA: CUDA.set_runtime_version! picks one that the driver supports, "
        "local_toolkit=true takes the one of the machine.",
        "https://github.com/JuliaGPU/CUDA.jl/issues/1291",
    ),
    "dlib": _program(
        "dlib",
        r"(?<!\w)dlib(?!\w)|_dlib_pybind11",
        "dlib with CUDA is built against the CUDA of the machine and needs its libraries at run time.",
        "https://github.com/davisking/dlib/issues/2039",
    ),
}
FRAMEWORK_ADVICE = {
    "tensorflow": (
        (
            "TensorFlow from pip takes CUDA and cuDNN from the machine (the toolkit's installer, or conda's "
            "cudatoolkit and cudnn); only tensorflow[and-cuda], from 2.14 on (CUDA 12 from 2.15 on), brings them."
        ),
        "https://www.tensorflow.org/install/pip",
    ),
    "onnxruntime": (
        (
            "onnxruntime-gpu from PyPI is built for CUDA 11 and cuDNN 8 up to 1.18, for CUDA 12 and cuDNN 9 from "
            "1.19 on, and for CUDA 13 and cuDNN 9 from 1.27 on (the CUDA 12 builds of its own index want cuDNN 8 up "
            "to 1.18.0 and cuDNN 9 from 1.18.1 on). So with CUDA 12 take onnxruntime-gpu 1.19 to 1.26. It brings no "
            "CUDA: install onnxruntime-gpu[cuda,cudnn] and call onnxruntime.preload_dlls() before the first session "
            "(1.21 and newer), or import a PyTorch of the same CUDA and cuDNN first."
        ),
        "https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html",
    ),
    "pytorch": (
        (
            "PyTorch's wheels bring their CUDA libraries, in torch/lib or as the nvidia-* packages that they depend "
            "on, and need no CUDA of the machine; where one of these is missing, it was installed with --no-deps, "
            "in part, or for another CUDA: reinstall torch with its dependencies."
        ),
        "https://github.com/pytorch/pytorch/issues/131284",
    ),
    "jax": (
        "JAX brings its CUDA libraries as jax[cuda12] or jax[cuda13]; jax[cuda12-local] takes those of the machine.",
        "https://docs.jax.dev/en/latest/installation.html",
    ),
    "cupy": (
        (
            "CuPy has a package for each CUDA major, cupy-cuda11x (for 11.2 and newer; cupy-cuda110 and cupy-cuda111 "
            "for older ones), cupy-cuda12x and cupy-cuda13x, of which only one may be installed: take the one for the "
            "CUDA toolkit that is there (not for the number that nvidia-smi shows), or cupy-cuda12x[ctk] and "
            "cupy-cuda13x[ctk] of CuPy 14, which bring the libraries; on Windows set CUDA_PATH."
        ),
        "https://docs.cupy.dev/en/stable/install.html",
    ),
    "paddlepaddle": (
        (
            "paddlepaddle-gpu has builds for several CUDAs: the one on PyPI is for CUDA 10.2 and cuDNN 7 up to 2.4, "
            "for CUDA 11 from 2.5 on; those for other CUDAs (post112 to post120 up to 2.6, cu118, cu126 from 3.0 "
            "on) are in Paddle's own index, by version and CUDA."
        ),
        "https://github.com/PaddlePaddle/Paddle/discussions/56329",
    ),
}
"""What is to be known of the libraries of each framework of the matrix, with its source."""

_FRAMEWORK_NAMED = {
    "onnxruntime": re.compile(r"onnxruntime|provider_bridge_ort", re.IGNORECASE),
    "cupy": re.compile(r"\bcupy|Original error:\s+ImportError: lib(?:cu|nv)", re.IGNORECASE),
    "paddlepaddle": re.compile(r"paddle|shared library\. Cannot invoke", re.IGNORECASE),
    "jax": re.compile(r"\bjax|jaxlib|xla_extension", re.IGNORECASE),
    "tensorflow": re.compile(
        r"tensorflow|dso_loader\.cc|cudart_stub\.cc|(Could not load dynamic|open CUDA) library", re.IGNORECASE
    ),
    "pytorch": re.compile(r"[\\/]torch[\\/]|\btorch\b(?!-)|caffe2|\bc10\b", re.IGNORECASE),
}
NOT_EXTENSIONS = frozenset(
    {
        "torch", "tensorflow", "tensorflow_core", "jax", "jaxlib", "jax_plugins", "onnxruntime", "cupy", "pynvrtc",
        "cupy_backends", "paddle", "ctranslate2", "faster_whisper", "bitsandbytes", "mxnet", "numba", "nvidia",
        "keras", "transformers", "diffusers", "accelerate", "streamlit", "gradio", "llama_cpp", "pip", "ctypes",
        "insightface", "rembg", "whisperx", "lightning", "pytorch_lightning", "huggingface_hub",
        "sentence_transformers", "numpy", "scipy", "triton", "tensorrt", "pycuda", "skcuda", "theano", "pygpu",
        "ultralytics", "peft", "timm", "dlib",
    }
)  # fmt: skip
"""Packages that are no extension of PyTorch, or load no library of their own: they are not at fault."""


def program_of(case: Case, sightings: tuple[Sighting, ...]) -> str | None:
    """What wants the library, a program here or a framework: by the lines, then by what is named nearby."""
    lines = [it.line for it in sightings]
    for name, program in PROGRAMS.items():
        if any(program.pattern.search(line) for line in lines):
            return name
    for name, pattern in _FRAMEWORK_NAMED.items():
        if any(pattern.search(line) for line in lines):
            return _or_offspring(case, name)
    importer = importer_of(case, sightings)
    if importer is not None:
        named = _named(importer)
        if named is not None:
            return named
    for sighting in case.of("program-named"):
        named = _named(sighting.line)
        if named is not None:
            return named
    if any(name in case.packages for name in ("ctranslate2", "faster-whisper")):
        return "ctranslate2"
    return case.framework


def remedy_of(case: Case, sightings: tuple[Sighting, ...]) -> Remedy | None:
    """The environment to ask for: that of the program that wants the library, none where it is no framework."""
    program = program_of(case, sightings)
    return None if program is None or program == case.framework else Remedy(frameworks=(program,))


def _or_offspring(case: Case, name: str) -> str:
    """JAX of old and TensorFlow.js tell their errors from TensorFlow's source files."""
    others = case.packages
    if name == "tensorflow" and any(_named(it.line) == "tfjs" for it in case.of("program-named")):
        return "tfjs"
    jax_alone = any(it in others for it in ("jax", "jaxlib")) and "tensorflow" not in others
    return "jax" if name == "tensorflow" and jax_alone else name


def importer_of(case: Case, sightings: tuple[Sighting, ...]) -> str | None:
    """The package whose import failed on these libraries: the last that the traceback before them names."""
    last = max((it.number for it in sightings), default=0)
    before = [it for it in case.of("import-frame") if it.number <= last and it.get("package")]
    return before[-1].get("package") if before else None


def title_of(program: str | None) -> str | None:
    """How its makers write it."""
    if program is None:
        return None
    return PROGRAMS[program].title if program in PROGRAMS else TITLES.get(program, program)


def advice_of(program: str | None) -> str | None:
    """What is to be known of its libraries."""
    if program in PROGRAMS:
        return PROGRAMS[program].advice
    return FRAMEWORK_ADVICE[program][0] if program in FRAMEWORK_ADVICE else None


def _named(text: str) -> str | None:
    for name, program in PROGRAMS.items():
        if program.pattern.search(text):
            return name
    for name, pattern in _FRAMEWORK_NAMED.items():
        if pattern.search(text):
            return name
    return "pytorch" if text == "torch" else None
