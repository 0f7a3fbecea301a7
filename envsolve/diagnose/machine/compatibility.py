"""Forward compatibility: a libcuda newer than the driver (cuda-compat), which only some GPUs allow.

NVIDIA: docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html. It must be newer than the kernel module.
An older one before the driver's own causes error 803 (seen in github.com/NVIDIA-NeMo/labs-molt/pull/44), and a GPU that
does not allow it causes error 804. A package that the loader does not reach is harmless: CUDA images contain one, and
the container toolkit puts it first only if it is newer (github.com/NVIDIA/nvidia-container-toolkit/pull/906).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from envsolve.diagnose.machine.survey import Survey, name_of
from envsolve.host.probe import Source
from envsolve.model.finding import Finding, Severity

_DIRECTORY = re.compile(r"/(?:compat(?:-orin)?|cuda-compat)/")
_NEVER = re.compile(r"\b(?:GeForce|TITAN)\b", re.IGNORECASE)
"""Products that never support forward compatibility; some RTX cards for workstations do."""


def is_compatibility(survey: Survey) -> bool:
    """Whether the libcuda that programs load is one of forward compatibility.

    It is one by its directory, or if its branch is newer than the kernel module while NVML is the module's: that is how
    it looks if a container has it mounted over the driver's own.
    """
    libcuda, nvml, module = survey.libcuda, survey.nvml, survey.module_version
    if libcuda is None:
        return False
    if _DIRECTORY.search(libcuda.real) or _DIRECTORY.search(libcuda.path):
        return True
    if libcuda.version is None or module is None or nvml is None:
        return False
    return nvml.version == module and libcuda.version.parts[0] > module.parts[0]


def check_compatibility(survey: Survey) -> Iterator[Finding]:
    """A compatibility library before the driver's own: stale, not allowed, or in use."""
    if not is_compatibility(survey) or survey.libcuda is None:
        return
    path, version = str(survey.libcuda), survey.libcuda.version
    reading = survey.reading(Source.NVML)
    kernel = survey.module_version or (None if reading is None else reading.driver)
    refused = tuple(name_of(gpu) for gpu in survey.gpus if _NEVER.search(gpu.name or ""))
    if kernel is not None and version is not None and version.parts[0] <= kernel.parts[0] and version != kernel:
        works = survey.libcuda_works or version.parts[0] == kernel.parts[0]  # # one of an older branch does not
        severity = Severity.WARNING if works else Severity.ERROR
        facts = {"path": path, "version": version, "driver": kernel, "conda_typed": _conda(survey)}
        yield survey.finding("old-compat-library", (path, f"driver {kernel}"), severity=severity, **facts)
    elif refused and not survey.libcuda_works and version != kernel:
        yield survey.finding("forward-compatibility-unsupported", (path, *refused), path=path, gpus=refused)
    elif version is None or kernel is None or version.parts[0] > kernel.parts[0]:
        evidence = (path, *map(name_of, survey.gpus))
        yield survey.finding("forward-compatibility-in-use", evidence, path=path, driver=kernel)


def _conda(survey: Survey) -> str | None:
    """The conda environment that the library belongs to, quoted for a shell."""
    prefix = survey.environ.get("CONDA_PREFIX")
    of_conda = prefix and survey.libcuda is not None and survey.libcuda.path.startswith(prefix)
    return shlex.quote(prefix) if prefix and of_conda else None
