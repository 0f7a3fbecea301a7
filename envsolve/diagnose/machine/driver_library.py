"""The driver's CUDA library: whether the loader finds one, and whether it is the driver's own.

With forward compatibility (cuda-compat) it is newer than the driver, which only some GPUs allow.
NVIDIA: docs.nvidia.com/deploy/cuda-compatibility/forward-compatibility.html. It must be newer than the kernel module.
An older one before the driver's own causes error 803 (seen in github.com/NVIDIA-NeMo/labs-molt/pull/44, and on an H200
with 580.95.05 before 580.159.04, the same branch), and a GPU that does not allow it causes error 804. A package that
the loader does not reach is harmless: CUDA images contain one, and the container toolkit puts it first only if it is
newer (github.com/NVIDIA/nvidia-container-toolkit/pull/906).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from envsolve.binary.lookup import Rule
from envsolve.diagnose.machine.survey import Survey
from envsolve.host.loader import COMPATIBILITY_DIRECTORY
from envsolve.host.probe import Source
from envsolve.model.finding import Finding, Severity

_NIX = "/run/opengl-driver/lib"
_NEVER = re.compile(r"\b(?:GeForce|TITAN)\b", re.IGNORECASE)
"""Products that never support forward compatibility; some RTX cards for workstations do."""


def check_library(survey: Survey) -> Iterator[Finding]:
    """A driver whose CUDA library the loader does not find."""
    if survey.platform.is_windows:
        yield from _on_windows(survey)
    elif survey.is_linux and survey.libcuda is None:
        yield from _not_found(survey)


def check_damage(survey: Survey) -> Iterator[Finding]:
    """A file in place of the CUDA library that is no library: the search ends there."""
    found = survey.libcuda
    if found is not None and found.damage is not None:
        yield survey.finding("driver-library-unusable", (str(found),), path=found.real, detail=found.damage.detail)


def check_stubs(survey: Survey) -> Iterator[Finding]:
    """The toolkit's stub before the driver's library, or on LD_LIBRARY_PATH for programs that need ``libcuda.so``."""
    if not survey.is_linux:
        return
    found = survey.libcuda
    loaded = found if found is not None and "/stubs/" in found.real else None
    paths = (f"{directory}/libcuda.so" for directory in survey.library_directories)
    lying = [it for it in paths if "stubs" in (survey.files.real(it) or "").split("/")]
    by_variable = [loaded.path] if loaded is not None and loaded.rule is Rule.LIBRARY_PATH else lying
    if loaded is not None or lying:
        yield survey.finding(
            "stub-driver-library",
            lying[:1] if loaded is None else (str(loaded),),
            severity=Severity.WARNING if loaded is None else None,
            stub_path=lying[0] if loaded is None else loaded.path,
            stub_use="is on LD_LIBRARY_PATH" if loaded is None else None,
            **(survey.facts_without(map(survey.files.parent, by_variable)) if by_variable else {}),
        )


def _on_windows(survey: Survey) -> Iterator[Finding]:
    system = survey.environ.get("SystemRoot") or survey.environ.get("WINDIR") or r"C:\Windows"
    library = survey.files.join(system, "System32", "nvcuda.dll")
    if survey.host.gpus and not survey.libcuda_works and not survey.files.is_file(library):
        yield survey.finding("driver-library-missing", survey.gpus_seen, path=library)


def _not_found(survey: Survey) -> Iterator[Finding]:
    misplaced = survey.misplaced_libraries
    loader = survey.loader
    looked_in = f"looked in {', '.join((*loader.library_path, '/etc/ld.so.cache', *loader.defaults))}"
    if misplaced and survey.is_wsl:
        yield survey.finding("wsl-driver-not-reached", (*misplaced, looked_in))
    elif misplaced:
        directory = survey.files.parent(misplaced[0])
        nix = directory == _NIX
        severity = Severity.WARNING if nix else None
        evidence = (*misplaced, looked_in)
        yield survey.finding("driver-library-off-path", evidence, severity=severity, directory=directory, nix=nix)
    elif survey.module_is_loaded and survey.container is None and not survey.libcuda_works:
        version = survey.module_version
        evidence = ("kernel module" if version is None else f"kernel module {version}", looked_in)
        yield survey.finding("driver-without-compute", evidence, module_version=version)


def check_management_library(survey: Survey) -> Iterator[Finding]:
    """CUDA works, and the loader does not find NVML. On a Jetson there may be none."""
    if survey.is_linux and survey.l4t is None and survey.libcuda_works and survey.nvml is None:
        reading = survey.reading(Source.NVML)
        said = () if reading is None or reading.problem is None else (f"nvml: {reading.problem.text}",)
        yield survey.finding("nvml-missing", said or ("libnvidia-ml.so.1 is not found",))


def is_compatibility(survey: Survey) -> bool:
    """Whether the libcuda that programs load is one of forward compatibility.

    It is one by its directory, or if its branch is newer than the kernel module while NVML is the module's: that is how
    it looks if a container has it mounted over the driver's own.
    """
    libcuda, nvml, module = survey.libcuda, survey.nvml, survey.module_version
    if libcuda is None:
        return False
    if any(map(COMPATIBILITY_DIRECTORY.search, (libcuda.real, libcuda.path))):
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
    refused = tuple(gpu.label for gpu in survey.gpus if _NEVER.search(gpu.name or ""))
    if kernel is not None and version is not None and version.parts[0] <= kernel.parts[0] and version != kernel:
        severity = Severity.WARNING if survey.libcuda_works else Severity.ERROR
        facts = {"path": path, "version": version, "driver": kernel, "conda_typed": _conda(survey)}
        yield survey.finding("old-compat-library", (path, f"driver {kernel}"), severity=severity, **facts)
    elif refused and not survey.libcuda_works and version != kernel:
        yield survey.finding("forward-compatibility-unsupported", (path, *refused), path=path, gpus=refused)
    elif version is None or kernel is None or version.parts[0] > kernel.parts[0]:
        evidence = (path, *(it.label for it in survey.gpus))
        yield survey.finding("forward-compatibility-in-use", evidence, path=path, driver=kernel)


def _conda(survey: Survey) -> str | None:
    """The conda environment that the library belongs to, quoted for a shell."""
    prefix = survey.environ.get("CONDA_PREFIX")
    of_conda = prefix and survey.libcuda is not None and survey.libcuda.path.startswith(prefix)
    return shlex.quote(prefix) if prefix and of_conda else None
