"""Facts on builds of frameworks and programs without CUDA."""

from __future__ import annotations

import re

from packaging.version import Version

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.gpu_code import first_told
from envsolve.diagnose.rules import builds_places
from envsolve.model.versions import CudaVersion, parsed_version

Lines = tuple[Sighting, ...]
_FAILED_PARTS = builds_places.FAILED_PARTS
_LAST_ON_WINDOWS = (2, 10)


def on_mac(case: Case, _lines: Lines) -> bool:
    """Whether it plainly happened on a Mac, also by an Apple GPU."""
    return builds_places.on_macos(case)


def linux_arm(case: Case, _lines: Lines) -> bool:
    """Whether it plainly happened on Linux for Arm, a Jetson included."""
    return case.jetson or builds_places.on_arm(case)


# ---------------------------------------------------------------------------------------------- TensorFlow


def tensorflow_meant(case: Case, lines: Lines) -> bool:
    """Whether words of a person are of TensorFlow, as its own messages always are."""
    in_words = all(it.get("in_words") for it in lines)
    return not in_words or "tensorflow" in case.frameworks or case.told("tensorflow_report") is not None


def tensorflow_version(case: Case, _lines: Lines) -> str | None:
    """The installed TensorFlow."""
    return case.version_of("tensorflow")


def after_windows(case: Case, _lines: Lines) -> bool:
    """Whether TensorFlow is not known to be one that had GPU support on native Windows."""
    version = parsed_version(case.version_of("tensorflow"))
    return version is None or version.release[:2] > _LAST_ON_WINDOWS


def tensorflow_cuda(case: Case, _lines: Lines) -> CudaVersion | None:
    """The CUDA that TensorFlow was built for: of old releases each has one, whatever is said to be installed."""
    found = {it.cuda for it in case.releases("tensorflow") if it.cuda is not None}
    return found.pop() if len(found) == 1 else case.cuda_of("tensorflow")


def tensorflow_cudnn(case: Case, _lines: Lines) -> str | None:
    """The cuDNN that it was built for."""
    found = {str(it.cudnn) for it in case.releases("tensorflow") if it.cudnn is not None}
    return found.pop() if len(found) == 1 else None


def tensorflow_other_cuda(case: Case, lines: Lines) -> CudaVersion | None:
    """The installed CUDA, where a TensorFlow that brings none was built for another."""
    cuda, toolkit = tensorflow_cuda(case, lines), case.toolkit or case.built_cuda
    if cuda is None or toolkit is None or cuda == toolkit or case.version_of("tensorflow") is None:
        return None
    same_names = cuda.major == toolkit.major and cuda.major >= 11  # noqa: PLR2004 - from 11 on a name is a major's
    return None if same_names else toolkit


# ---------------------------------------------------------------------------------------------- JAX


def jax_versions_differ(case: Case, _lines: Lines) -> bool:
    """Whether lines name versions of JAX's parts that do not belong together, which other rules tell."""
    return any(
        it.get("jaxlib")
        or it.get("jaxlib_found")
        or it.get("called")
        or "PJRT" in it.line
        or it.get("attribute") not in {None, "GpuAllocatorConfig"}  # which a jaxlib for the CPU alone has not got
        for it in case.of("jax-versions")
    )


def _plugin_import(case: Case) -> tuple[Sighting, ...]:
    """Names of JAX that the plugin's own files ask for in vain: right after them in a traceback."""
    frames = [it.number for it in case.of("jax-plugin-failed") if "jax_plugins" in it.line]
    return tuple(it for it in case.of("jax-plugin-import") if any(0 < it.number - frame <= 3 for frame in frames))  # noqa: PLR2004


def plugin_misses(case: Case, _lines: Lines) -> str | None:
    """What the CUDA plugin of JAX imports and the installed JAX has not got."""
    missing = _plugin_import(case)
    name = first_told(missing, "missing_name", "attribute")
    where = first_told(missing, "missing_in", "module", "missing_module")
    return (f"{name} from {where}" if name else str(where)) if missing else None


def jax_plugin_installed(case: Case, _lines: Lines) -> bool:
    """Whether the packages include JAX's CUDA plugin."""
    return any(re.fullmatch(r"jax-cuda\d+-(plugin|pjrt)", name) for name in case.packages)


def jax_failed_parts(case: Case, _lines: Lines) -> tuple[str, ...]:
    """The libraries that JAX's plugin could not load."""
    parts = (it.get("part") or it.get("library") for it in case.of("jax-plugin-failed", *_FAILED_PARTS))
    return tuple(dict.fromkeys(it for it in parts if it))


def jax_version(case: Case, _lines: Lines) -> str | None:
    """The installed JAX, or its jaxlib."""
    return case.version_of("jax") or case.packages.get("jaxlib") or None


def jax_public(case: Case, lines: Lines) -> str | None:
    """That version without its local part."""
    version = parsed_version(jax_version(case, lines))
    return None if version is None else version.public


def jax_is_old(case: Case, lines: Lines) -> bool:
    """Whether it is from before JAX had a plugin for CUDA."""
    version = parsed_version(jax_version(case, lines))
    return version is not None and version < Version("0.4.23")


def only_plugin_failed(case: Case, lines: Lines) -> bool:
    """Whether a plugin failed and no other line says what failed."""
    telling_nothing = {
        *("jax-plugin-failed", "jax-plugin-import", "jax-versions", "import-frame", "program-named"),
        *("extension-frame", "tensorflow-gpu-listed"),
    }
    others = {it.symptom for it in case.sightings} - telling_nothing
    return not others and not jax_versions_differ(case, lines) and any(it.get("failed") for it in lines)


# ---------------------------------------------------------------------------------------------- ONNX Runtime, programs


def ort_providers(_case: Case, lines: Lines) -> str | None:
    """The providers that ONNX Runtime has."""
    available = first_told(lines, "available")
    return None if available is None else available.strip(" []")


def ort_both(case: Case, _lines: Lines) -> bool:
    """Whether both packages of ONNX Runtime are installed."""
    packages = {it.get("package") for it in case.of("onnxruntime-package")} | set(case.packages)
    return {"onnxruntime", "onnxruntime-gpu"} <= packages


def ort_cuda_major(case: Case, _lines: Lines) -> int | None:
    """The major of the CUDA that ONNX Runtime was built for."""
    cuda = case.cuda_of("onnxruntime")
    return None if cuda is None else cuda.major


def nothing_better(case: Case, lines: Lines) -> bool:
    """Whether no line says more exactly which program has no CUDA."""
    better = (
        *("cpu-build", "extension-not-built", "extension-without-cuda", "xgboost-cpu-build", "ctranslate2-cpu-build"),
        *("bitsandbytes-binary", "opencv-cpu-build", "paddle-cpu-build", "tensorflow-without-code"),
        *("mxnet-cpu-build", "llama-cpp-cpu-build"),
    )
    return not {it.number for it in case.of(*better)}.intersection(it.number for it in lines)


def named_program(_case: Case, lines: Lines) -> str | None:
    """The program that says so, by a name that is one."""
    name = first_told(lines, "program", "named", "open3d")
    words = {"this", "the", "it", "error", "library", "package", "warning", "that", "version"}
    return name if name is not None and name[0].isupper() and name.casefold() not in words else None
