"""Facts on builds of frameworks and programs without CUDA, and on machines without an NVIDIA GPU."""

from __future__ import annotations

import re

from packaging.version import Version

from envsolve.diagnose.case import Case, Lines, Sighting
from envsolve.diagnose.facts.shared.gpu_code import first_field
from envsolve.model.host import Platform
from envsolve.model.release import Release, Source
from envsolve.model.versions import CudaVersion, parsed_version

_ASKS_FOR_NVIDIA = re.compile(r"nvidia|cuda|gpu", re.IGNORECASE)
_FOR_OLD_AND_NEW = CudaVersion(12, 6)
"""The CUDA whose wheels of PyTorch run on the most GPUs and drivers of those that are still built."""


# ---------------------------------------------------------------------------------------------- PyTorch


def pytorch_driver_too_old(case: Case, _lines: Lines) -> bool:
    """Whether the driver is below the floor of PyTorch's CUDA."""
    return not _driver_runs(case, case.cuda_of("pytorch"))


def _driver_runs(case: Case, cuda: CudaVersion | None) -> bool:
    floor = None if cuda is None else case.knowledge.driver_floor(cuda, windows=case.windows)
    return case.driver is None or floor is None or case.driver.meets(floor)


def _wheels(case: Case, platform: Platform | None) -> list[Release]:
    """PyTorch's own CUDA wheels of the installed version, else of its newest, that run on the GPU and the driver."""
    every = [
        it
        for it in case.knowledge.all_releases("pytorch", platform)
        if it.source is Source.PYTORCH
        and it.cuda is not None
        and (case.capability is None or it.code.runs_as(case.capability) is not None)
    ]
    version = parsed_version(case.version_of("pytorch"))
    own = [it for it in every if version is not None and it.version == Version(version.public)]
    served = [it for it in own or every if _driver_runs(case, it.cuda)] or own or every
    return [it for it in served if it.version == max(other.version for other in served)]


def _wheel(wheels: list[Release]) -> Release | None:
    """Of builds the one that serves the most drivers and GPUs: CUDA 12.6, else the newest."""
    return next((it for it in wheels if it.cuda == _FOR_OLD_AND_NEW), wheels[0] if wheels else None)


def wheel_build(case: Case, _lines: Lines) -> str | None:
    """The folder of PyTorch's index with a build of the version for GPU and driver: cu126."""
    wheel = _wheel(_wheels(case, case.platform))
    return None if wheel is None else wheel.build


def wheel_builds(case: Case, _lines: Lines) -> tuple[str, ...]:
    """All such builds."""
    return tuple(dict.fromkeys(it.build for it in _wheels(case, case.platform)))


def wheel_version(case: Case, _lines: Lines) -> str | None:
    """Their release, where the installed one is known and has such builds."""
    version, wheel = parsed_version(case.version_of("pytorch")), _wheel(_wheels(case, case.platform))
    same = version is not None and wheel is not None and wheel.version == Version(version.public)
    return str(wheel.version) if wheel is not None and same else None


def conda_has(case: Case, _lines: Lines) -> tuple[str, ...]:
    """The CUDA versions for which PyTorch's channel has a build of the installed version."""
    version = (case.version_of("pytorch") or "").partition("+")[0]
    builds = case.knowledge.releases("pytorch", version, case.platform)
    return tuple(map(str, sorted({it.cuda for it in builds if it.source is Source.PYTORCH_CHANNEL and it.cuda})))


def conda_newest(case: Case, lines: Lines) -> CudaVersion | None:
    """The newest of them."""
    return CudaVersion.parse(conda_has(case, lines)[-1]) if conda_has(case, lines) else None


# ---------------------------------------------------------------------------------------------- Arm, Jetson, AMD


def nvidia_asked(case: Case, _lines: Lines) -> bool:
    """Whether something else in the text requests NVIDIA or CUDA."""
    others = (it for it in case.sightings if it.symptom != "amd-gpu")
    return any(_ASKS_FOR_NVIDIA.search(f"{it.symptom} {it.line}") for it in others)


# ---------------------------------------------------------------------------------------------- TensorFlow


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


def _plugin_import(case: Case) -> tuple[Sighting, ...]:
    """Names that the plugin's own files need and JAX lacks: right after them in a traceback."""
    frames = [it.number for it in case.of("jax-plugin-failed") if "jax_plugins" in it.line]
    return tuple(it for it in case.of("jax-plugin-import") if any(0 < it.number - frame <= 3 for frame in frames))  # noqa: PLR2004


def plugin_misses(case: Case, _lines: Lines) -> str | None:
    """What the CUDA plugin of JAX imports and the installed JAX has not got."""
    missing = _plugin_import(case)
    name = first_field(missing, "missing_name", "attribute")
    where = first_field(missing, "missing_in", "module", "missing_module")
    return (f"{name} from {where}" if name else str(where)) if missing else None


def only_plugin_failed(case: Case, lines: Lines) -> bool:
    """Whether a plugin failed and no other line says what failed."""
    telling_nothing = {
        *("jax-plugin-failed", "jax-plugin-import", "import-frame", "program-named"),
        *("extension-frame", "tensorflow-gpu-listed"),
    }
    others = {it.symptom for it in case.sightings} - telling_nothing
    return not others and any(it.get("failed") for it in lines)
