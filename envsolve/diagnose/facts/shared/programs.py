"""Which program needs a library, by what a text names.

Beside the frameworks of the matrix these are programs that people meet CUDA's libraries through.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from envsolve.diagnose.case import TITLES, Case, Sighting


class Program(NamedTuple):
    """A program: its title, and by what a line names it."""

    title: str
    pattern: re.Pattern[str]


def _program(title: str, pattern: str) -> Program:
    return Program(title, re.compile(pattern, re.IGNORECASE))


PROGRAMS = {
    "ctranslate2": _program(
        "CTranslate2", r"ctranslate2|faster[-_ ]?whisper|whisper[-_]?x|is not found or cannot be loaded"
    ),
    "bitsandbytes": _program("bitsandbytes", r"bitsandbytes|CUDA[_ ]SETUP:"),
    "tfjs": _program("TensorFlow.js for Node", r"tfjs|node_modules[\\/]@tensorflow"),
    "llama.cpp": _program("llama.cpp", r"llama[-_. ]cpp|\bllama\.dll|ggml|llama-server"),
    "mxnet": _program("MXNet", r"mxnet|libmxnet"),
    "rapids": _program(
        "RAPIDS", r"(?<![\w-])(?:rapids(?:ai)?|cuml|cudf|cugraph|cuspatial|librmm|libcuml|libcudf|libraft)"
    ),
    "vllm": _program("vLLM", r"(?<!\w)vllm"),
    "cudarc": _program(
        "The Rust program (cudarc)", r"cudarc|shared library - searched for library names|candle|mistralrs|mistral\.rs"
    ),
    "julia": _program("CUDA.jl", r"CUDA\.jl|CUDA_Runtime|julia"),
    "dlib": _program("dlib", r"(?<!\w)dlib(?!\w)|_dlib_pybind11"),
}

_FRAMEWORK_NAMED = {
    "onnxruntime": re.compile(r"onnxruntime|provider_bridge_ort", re.IGNORECASE),
    "cupy": re.compile(r"\bcupy|Original error:\s+ImportError: lib(?:cu|nv)", re.IGNORECASE),
    "paddlepaddle": re.compile(r"paddle|shared library\. Cannot invoke", re.IGNORECASE),
    "jax": re.compile(
        r"\bjax|jaxlib|xla_extension|versions_helpers|Unable to load cu\w+\. Is it installed", re.IGNORECASE
    ),
    "tensorflow": re.compile(
        r"tensorflow|dso_loader\.cc|cudart_stub\.cc|(Could not load dynamic|open CUDA) library", re.IGNORECASE
    ),
    "pytorch": re.compile(r"[\\/]torch[\\/]|\btorch\b(?!-)|caffe2|\bc10\b|not found in the system path", re.IGNORECASE),
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
    """What wants the library, a program here or a framework: by what the text names, else that of the case."""
    return named_program(case, sightings) or case.framework


def named_program(case: Case, sightings: tuple[Sighting, ...]) -> str | None:
    """The program or framework that the lines name, then the one that is named nearby."""
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
    return None


def _or_offspring(case: Case, name: str) -> str:
    """JAX of old and TensorFlow.js report their errors from TensorFlow's source files."""
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


def _named(text: str) -> str | None:
    for name, program in PROGRAMS.items():
        if program.pattern.search(text):
            return name
    for name, pattern in _FRAMEWORK_NAMED.items():
        if pattern.search(text):
            return name
    return "pytorch" if text == "torch" else None
