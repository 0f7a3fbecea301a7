"""Variables that describe another machine to tools, envsolve among them: fine for building elsewhere's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from envsolve.diagnose.machine.survey import Survey
from envsolve.model.capability import ComputeCapability
from envsolve.model.finding import Finding
from envsolve.model.versions import CudaVersion, DriverVersion, LibcVersion


def _is_cuda(survey: Survey, value: str) -> bool:
    """For conda an empty value means: no CUDA."""
    if not value.strip():
        return survey.host.driver_cuda is None
    return CudaVersion.parse(value) == survey.host.driver_cuda


def _is_driver(survey: Survey, value: str) -> bool:
    return survey.host.driver is not None and DriverVersion.parse(value).parts == survey.host.driver.parts


def _is_capability(survey: Survey, value: str) -> bool:
    return ComputeCapability.parse(value) in survey.host.capabilities


def _is_glibc(survey: Survey, value: str) -> bool:
    return survey.host.glibc is None or LibcVersion.parse(value) == survey.host.glibc


def _gpu_or_not(survey: Survey, value: str) -> bool:
    """``cpu`` for uv, ``none`` for envsolve: only that says something of the machine for certain."""
    return value.strip().lower() not in ("cpu", "none") or not survey.host.gpus


OVERRIDES: Mapping[str, Callable[[Survey, str], bool]] = {
    "CONDA_OVERRIDE_CUDA": _is_cuda,
    "CONDA_OVERRIDE_CUDA_ARCH": _is_capability,
    "CONDA_OVERRIDE_GLIBC": _is_glibc,
    "UV_CUDA_DRIVER_VERSION": _is_driver,
    "UV_TORCH_BACKEND": _gpu_or_not,
    "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": _is_cuda,
    "NV_VARIANT_PROVIDER_FORCE_SM_ARCH": _is_capability,
    "ENVSOLVE_DRIVER": _is_driver,
    "ENVSOLVE_GPU": _gpu_or_not,
}
"""By variable whether its value says what this machine is: those of conda, pixi, uv, NVIDIA's variants and envsolve."""


def check_overrides(survey: Survey) -> Iterator[Finding]:
    """Every override that is set and says something else than the machine, in one finding."""
    differing = [name for name in OVERRIDES if name in survey.environ and not _agrees(survey, name)]
    if not differing:
        return
    host = survey.host
    entries = tuple(f"{name}={survey.environ[name]}" for name in differing)
    yield survey.finding(
        "override-differs",
        entries,
        entries=entries,
        variables_typed=" ".join(differing),
        driver=None if host.driver is None else f"driver {host.driver}",
        driver_cuda=host.driver_cuda,
        gpus=tuple(f"GPUs of {it}" for it in host.capabilities),
        glibc_here=host.glibc,
    )


def _agrees(survey: Survey, name: str) -> bool:
    """An unreadable value agrees with nothing."""
    try:
        return OVERRIDES[name](survey, survey.environ[name])
    except ValueError:
        return False
