"""Rules on builds of TensorFlow, JAX and ONNX Runtime without CUDA."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from packaging.version import Version

from envsolve.diagnose.case import Case, Sighting
from envsolve.diagnose.cause import Cause, Diagnosis, Remedy, Rule
from envsolve.diagnose.rules.builds_places import FAILED_PARTS, on_arm, on_macos
from envsolve.diagnose.rules.code_coverage import first_told
from envsolve.diagnose.rules.code_reach import listed
from envsolve.model.host import Platform
from envsolve.model.versions import CudaVersion, parsed_version

# TensorFlow

_LAST_ON_WINDOWS = Version("2.10")
_WSL = Platform.LINUX_64.value


def tensorflow(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A TensorFlow that sees no GPU."""
    if case.saw("tensorflow-gpu-listed", *FAILED_PARTS):
        return
    in_words = all(it.get("in_words") for it in sightings)
    if in_words and "tensorflow" not in case.frameworks and case.told("tensorflow_report") is None:
        return
    about = case.fields_of("tensorflow")
    causes = (it._replace(fields={**about, **it.fields}) for it in _tensorflow_causes(case, sightings))
    yield Diagnosis(tuple(causes), sightings)


def _tensorflow_causes(case: Case, sightings: Sequence[Sighting]) -> Iterator[Cause]:
    version = parsed_version(case.version_of("tensorflow"))
    if on_macos(case):
        yield Cause("macos-without-cuda")
    elif on_arm(case) or case.jetson:
        yield Cause("tensorflow-arm")
    elif case.windows and (version is None or version.release[:2] > _LAST_ON_WINDOWS.release):
        yield Cause("tensorflow-native-windows", _windows_fields(case), remedy=Remedy(platform=_WSL))
    elif (other := _other_cuda(case)) is not None:
        yield Cause("tensorflow-other-cuda", other)
    elif any(it.get("built") for it in sightings):
        yield Cause("tensorflow-cpu-build", _windows_fields(case))
    else:
        yield from _tensorflow_unknown(case, version)


def _tensorflow_unknown(case: Case, version: Version | None) -> Iterator[Cause]:
    """The system is not known, or it is x86-64 Linux, or an old release on Windows."""
    libraries = Cause("tensorflow-libraries-needed", _libraries_fields(case))
    if case.platform is None and (version is None or version.release[:2] > _LAST_ON_WINDOWS.release):
        fields = {"windows_if": "Where this is native Windows (not WSL2), it is this:", **_windows_fields(case)}
        yield Cause("tensorflow-native-windows", fields, remedy=Remedy(platform=_WSL))
        yield libraries._replace(fields={"linux_if": "On Linux and in WSL2 it is this:", **libraries.fields})
        yield Cause("tensorflow-cpu-build", {})
        return
    yield libraries
    yield Cause("tensorflow-cpu-build", {})


def _windows_fields(case: Case) -> dict[str, str]:
    version = case.version_of("tensorflow")
    return {} if version is None else {"version_words": f"TensorFlow {version} is the one that is installed."}


def _cuda_of(case: Case) -> CudaVersion | None:
    """The CUDA that TensorFlow was built for: of old releases each has one, whatever is said to be installed."""
    found = {it.cuda for it in case.releases("tensorflow") if it.cuda is not None}
    return found.pop() if len(found) == 1 else case.cuda_of("tensorflow")


def _libraries_fields(case: Case) -> dict[str, str]:
    cuda, cudnn = _cuda_of(case), {str(it.cudnn) for it in case.releases("tensorflow") if it.cudnn is not None}
    version = case.version_of("tensorflow")
    if cuda is None or version is None:
        return {}
    with_cudnn = f" and cuDNN {max(cudnn)}" if len(cudnn) == 1 else ""
    return {"wants": f"TensorFlow {version} was built for CUDA {cuda}{with_cudnn}."}


def _other_cuda(case: Case) -> dict[str, str] | None:
    """Fields where another CUDA is installed than a TensorFlow that brings none was built for."""
    cuda, version = _cuda_of(case), case.version_of("tensorflow")
    toolkit = case.toolkit or case.built_cuda
    if cuda is None or toolkit is None or version is None or cuda == toolkit:
        return None
    if cuda.major == toolkit.major and cuda.major >= 11:  # noqa: PLR2004 - from 11 on a name is a major's
        return None
    cudnn = {str(it.cudnn) for it in case.releases("tensorflow") if it.cudnn is not None}
    words = f" and cuDNN {max(cudnn)}" if len(cudnn) == 1 else ""
    return {"built_cuda": str(cuda), "toolkit": str(toolkit), "cudnn_words": words}


# JAX

_JAX = Remedy(frameworks=("jax",))
"""Its logs name TensorFlow, of whose sources XLA once was a part."""


def jax(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """JAX on the CPU: no CUDA part, or one that failed, which other lines tell."""
    if _versions_differ(case) or _plugin_import(case):
        return
    if case.windows:
        yield Diagnosis((Cause("jax-native-windows", case.fields_of("jax"), _JAX._replace(platform=_WSL)),), sightings)
    elif on_macos(case):
        yield Diagnosis((Cause("macos-without-cuda", case.fields_of("jax")),), sightings)
    elif case.saw(*FAILED_PARTS, "jax-plugin-failed") or _has_plugin(case):
        yield Diagnosis((Cause("jax-plugin-failed", _failed_part(case), _JAX),), sightings)
    else:
        causes = [Cause("jax-cpu-build", _jax_fields(case), _JAX)]
        if case.platform is None:
            causes.append(Cause("jax-native-windows", case.fields_of("jax"), _JAX._replace(platform=_WSL)))
        yield Diagnosis(tuple(causes), sightings)


def _versions_differ(case: Case) -> bool:
    """Whether lines name versions of JAX's parts that do not belong together, which other rules tell."""
    return any(
        it.get("jaxlib")
        or it.get("jaxlib_found")
        or it.get("called")
        or "PJRT" in it.line
        or it.get("attribute") not in {None, "GpuAllocatorConfig"}  # which a jaxlib for the CPU alone has not got
        for it in case.of("jax-versions")
    )


def _failed_part(case: Case) -> dict[str, str]:
    """Which line misleads and where the cause stands; what the plugin did not find, as the lines above say."""
    fields = case.fields_of("jax")
    if case.saw("jax-on-cpu"):
        fields["misleading"] = (
            "The last line, that no CUDA-enabled jaxlib is installed, misleads: JAX says it as well where its CUDA "
            "plugin is there and could not be initialised. What failed stands in the lines above it."
        )
    else:
        fields["beginning"] = (
            "This line says only that the plugin was found and that starting it ended in an error, not that its "
            "version is wrong: the cause is the error that follows it, the last line of the traceback."
        )
    parts = [it.get("part") or it.get("library") for it in case.of("jax-plugin-failed", *FAILED_PARTS)]
    named = tuple(dict.fromkeys(it for it in parts if it))
    if named:
        fields["failed_part"] = f"Here it could not load {listed(named)}."
    return fields


def _has_plugin(case: Case) -> bool:
    return any(re.fullmatch(r"jax-cuda\d+-(plugin|pjrt)", name) for name in case.packages)


def _jax_fields(case: Case) -> dict[str, str]:
    version = case.version_of("jax") or case.packages.get("jaxlib")
    parsed = parsed_version(version)
    fields = case.fields_of("jax")
    if version is None or parsed is None:
        return fields
    fields["jax_version_words"] = f"JAX {version} is what is told."
    if parsed >= Version("0.4.23"):
        fields["jax_told"] = version.partition("+")[0]
    else:
        fields["old_jax"] = (
            "JAX before 0.4.23 had its CUDA inside jaxlib, with a version such as 0.4.13+cuda12.cudnn89, from JAX's "
            "own page of releases (pip's --find-links); of that age, take a newer JAX where the project allows it."
        )
    return fields


def _plugin_import(case: Case) -> tuple[Sighting, ...]:
    """Names of JAX that the plugin's own files ask for in vain: right after them in a traceback."""
    frames = [it.number for it in case.of("jax-plugin-failed") if "jax_plugins" in it.line]
    return tuple(it for it in case.of("jax-plugin-import") if any(0 < it.number - frame <= _NEAR for frame in frames))


_NEAR = 3
_TELL_NOTHING = frozenset(
    {
        "jax-plugin-failed",
        "jax-plugin-import",
        "jax-versions",
        "import-frame",
        "program-named",
        "extension-frame",
        "tensorflow-gpu-listed",
    }
)
"""Symptoms that do not say what failed."""


def _plugin_of_other_version(case: Case, missing: Sequence[Sighting]) -> Cause:
    name = first_told(missing, "missing_name", "attribute")
    where = first_told(missing, "missing_in", "module", "missing_module")
    fields = {**case.fields_of("jax"), "missing_words": f"{name} from {where}" if name else f"{where}"}
    version = parsed_version(case.version_of("jax"))
    if version is not None:
        fields["jax_told"] = version.public
    return Cause("jax-plugin-of-other-version", fields, _JAX)


def jax_plugin(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A plugin that failed, where JAX does not sum it up in a line of its own and nothing else says what failed."""
    missing = _plugin_import(case)
    if missing:
        yield Diagnosis((_plugin_of_other_version(case, missing),), (*sightings, *missing))
        return
    others = {it.symptom for it in case.sightings} - _TELL_NOTHING
    if others or _versions_differ(case) or not any(it.get("failed") for it in sightings):
        return
    yield Diagnosis((Cause("jax-plugin-failed", _failed_part(case), _JAX),), sightings)


# ONNX Runtime


def onnxruntime(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A package without the CUDA provider."""
    available = first_told(sightings, "available")
    fields = case.fields_of("onnxruntime")
    if available is not None:
        fields["available"] = available.strip(" []")
    packages = {it.get("package") for it in case.of("onnxruntime-package")} | set(case.packages)
    if {"onnxruntime", "onnxruntime-gpu"} <= packages:
        fields["ort_both"] = (
            "Here both are installed: they share one folder, and the files of the CPU package onnxruntime overwrote "
            "those of onnxruntime-gpu."
        )
    provider = first_told(sightings, "provider")
    if provider is not None:
        fields["provider"] = provider
    if on_macos(case):
        fields["ort_platform"] = (
            "This is a Mac: ONNX Runtime has no CUDA build for macOS; CoreMLExecutionProvider is there."
        )
    elif on_arm(case) or case.jetson:
        fields["ort_platform"] = (
            "This is Arm (aarch64): few releases of onnxruntime-gpu on the Python index have a wheel for it; for "
            "Jetson take the Jetson AI Lab's, for the installed JetPack."
        )
    yield Diagnosis((Cause("onnxruntime-cpu-build", fields | _ort_needs(case)),), sightings)


def _ort_needs(case: Case) -> dict[str, str]:
    cuda = case.cuda_of("onnxruntime")
    return {} if cuda is None else {"ort_needs": f"CUDA {cuda.major} for {case.version_of('onnxruntime')}"}


def onnxruntime_failed(case: Case, sightings: tuple[Sighting, ...]) -> Iterator[Diagnosis]:
    """A CUDA provider that could not be loaded; where a library is named, that is told instead."""
    if case.saw(*FAILED_PARTS, "onnxruntime-without-provider"):
        return
    fields = {
        **case.fields_of("onnxruntime"),
        "ort_table": "onnxruntime-gpu up to 1.18 wants CUDA 11.8 and cuDNN 8, from 1.19 on CUDA 12 and cuDNN 9, from "
        "1.27 on CUDA 13 and cuDNN 9.",
    }
    cuda, cudnn = first_told(sightings, "cuda_major"), first_told(sightings, "cudnn_major")
    if cuda is not None and cudnn is not None:
        fields["ort_wants"] = f"This one wants CUDA {cuda} and cuDNN {cudnn}."
    yield Diagnosis((Cause("onnxruntime-provider-failed", fields),), sightings)


RULES: Mapping[str, Rule] = {
    "tensorflow-without-gpu": tensorflow,
    "jax-on-cpu": jax,
    "jax-plugin-failed": jax_plugin,
    "onnxruntime-without-provider": onnxruntime,
    "onnxruntime-provider-failed": onnxruntime_failed,
}
