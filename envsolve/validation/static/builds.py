"""What an installed framework was built for, read from the files in which it says so, without importing it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from envsolve.validation.static.installed import Installed

TENSORFLOW_BUILD = "tensorflow/python/platform/build_info.py"
_JAX_PLUGIN = re.compile(r"(?:xla_cuda|jax_cuda)(\d+)")
_CUPY = re.compile(r"cupy_cuda(\d\d)")
_VERSION = re.compile(r"\d+(?:\.\d+)?")


def built_cuda(framework: Installed) -> str | None:
    """The CUDA it was built for, ``12.5`` or, where only the major is told, ``12``; None for a CPU build or unknown."""
    name = framework.name
    told: object = None
    if name == "pytorch":
        told = framework.assigned("torch/version.py", "cuda")
    elif name == "tensorflow":
        told = tensorflow_build(framework).get("cuda_version")
    elif name == "paddlepaddle":
        told = framework.assigned("paddle/version/__init__.py", "cuda_version")
    elif name == "onnxruntime":
        told = framework.assigned("onnxruntime/capi/build_and_package_info.py", "cuda_version")
    elif name == "jax":
        plugins = [
            _JAX_PLUGIN.search(file.parent.name) for file in framework.files("jax_plugins/xla_cuda*/__init__.py")
        ]
        told = next((match[1] for match in plugins if match is not None), None)
    elif name == "cupy":
        folders = (_CUPY.match(file.name) for file in framework.files("cupy_cuda*.dist-info"))
        told = next((match[1] for match in folders if match is not None), None)
    match = _VERSION.match(told) if isinstance(told, str) else None
    return None if match is None else match[0]


def tensorflow_build(framework: Installed) -> Mapping[str, object]:
    """TensorFlow's own account of its build; empty where it has none that can be read."""
    told = framework.assigned(TENSORFLOW_BUILD, "build_info")
    if isinstance(told, list):
        told = dict(told)
    return told if isinstance(told, dict) else {}
