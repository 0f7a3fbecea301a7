"""Rules on files of one's own that are imported in place of a module of the same name."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from envsolve.diagnose.case import Case, Sighting, merged
from envsolve.diagnose.cause import Cause, Diagnosis, Rule
from envsolve.diagnose.rules.named import about_gpus, known

FRAMEWORKS = frozenset(
    {
        "torch", "torchvision", "torchaudio", "tensorflow", "keras", "jax", "jaxlib", "flax", "onnx", "onnxruntime",
        "cupy", "paddle", "numpy", "triton", "transformers", "diffusers", "bitsandbytes", "xformers", "numba",
        "tensorrt", "vllm", "deepspeed",
    }
)  # fmt: skip
"""Modules after which nobody names a file of a project that works."""

LIBRARIES = FRAMEWORKS | {
    "scipy", "pandas", "sklearn", "PIL", "cv2", "accelerate", "datasets", "tokenizers", "safetensors", "peft", "timm",
    "einops", "matplotlib", "tensorboard", "google", "packaging", "yaml", "requests", "tqdm", "sympy", "networkx",
    "fsspec", "filelock", "jinja2", "six",
}  # fmt: skip
"""Libraries that frameworks and programs beside them import, by the names of their modules."""

_LEFT_OUT_BY_NEW_PYTHONS = {"distutils", "imp", "asyncore", "cgi", "telnetlib", "pipes", "uu", "crypt"}
_STANDARD = sys.stdlib_module_names | _LEFT_OUT_BY_NEW_PYTHONS


def shadowed(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A module that a library imports and gets from elsewhere; each once."""
    by_module: dict[str, list[Sighting]] = {}
    for it in sightings:
        module = it.get("module") or ""
        if module in LIBRARIES or (module in _STANDARD and about_gpus(case)):
            by_module.setdefault(module, []).append(it)
    for module, found in by_module.items():
        fields = merged(tuple(found))
        more = known(
            module_is="Python's own module" if module in _STANDARD else "the library",
            alone=None if "file" in fields else "a single file",
        )
        yield Diagnosis((Cause("module-shadowed", {**fields, **more}),), tuple(found))


def script_named_like_library(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A script with the name of a framework, which is no proof alone; told where nothing else is."""
    found = next((it for it in sightings if it.get("module") in FRAMEWORKS), None)
    if found is not None and not case.saw("module-shadowed"):
        yield Diagnosis((Cause("script-named-like-library", known(**found.fields)),), (found,))


RULES: Mapping[str, Rule] = {
    "module-shadowed": shadowed,
    "script-named-like-library": script_named_like_library,
}
