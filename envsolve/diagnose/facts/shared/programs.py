"""Which program needs a library, by what a text names.

Beside the frameworks of the matrix these are programs that people meet CUDA's libraries through.
"""

from __future__ import annotations

from envsolve.diagnose.case import TITLES, Case, Sighting
from envsolve.diagnose.facts.shared.tables import first_match
from envsolve.findings.catalogue import shipped

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
    lines = "\n".join(it.line for it in sightings)
    if program := first_match("program-words", lines):
        return program
    if framework := first_match("framework-words", lines):
        return _or_offspring(case, framework)
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
    known = shipped().table("program")
    return None if program is None else str(known.get(program, TITLES.get(program, program)))


def _named(text: str) -> str | None:
    known = first_match("program-words", text) or first_match("framework-words", text)
    return known or ("pytorch" if text == "torch" else None)
