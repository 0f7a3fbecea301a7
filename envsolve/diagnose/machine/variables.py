"""CUDA variables that break programs or slow them down, and variables that describe another machine to tools.

The catalogue explains each of the first kind. The second kind is correct for building for another machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from envsolve.diagnose.machine.survey import Survey
from envsolve.model.capability import ComputeCapability
from envsolve.model.finding import Finding
from envsolve.model.versions import CudaVersion, DriverVersion, LibcVersion


class Rule(NamedTuple):
    """A finding about the variables ``names``, if ``applies`` is true for the value of one."""

    names: tuple[str, ...]
    applies: Callable[[str], bool]
    id: str


def _is_on(value: str) -> bool:
    """Whether a switch of CUDA is on: a number other than 0."""
    return value.strip() not in ("", "0")


RULES = (
    Rule(("CUDA_DISABLE_PTX_JIT", "CUDA_DISABLE_JIT"), _is_on, "ptx-compilation-disabled-by-variable"),
    Rule(("CUDA_FORCE_PTX_JIT", "CUDA_FORCE_JIT"), _is_on, "ptx-compilation-forced"),
    Rule(("CUDA_LAUNCH_BLOCKING",), _is_on, "launch-blocking"),
    Rule(("CUDA_MODULE_LOADING",), lambda value: value.strip().upper() == "EAGER", "eager-module-loading"),
    Rule(("CUDA_CACHE_DISABLE",), _is_on, "jit-cache-disabled"),
    Rule(("NVIDIA_TF32_OVERRIDE",), lambda value: value.strip() == "0", "tf32-switched-off"),
    Rule(("JAX_PLATFORMS", "JAX_PLATFORM_NAME"), lambda value: value.strip().lower() == "cpu", "framework-kept-on-cpu"),
)


def check_variables(survey: Survey) -> Iterator[Finding]:
    """The rules above, for the variables that are set."""
    if not survey.has_gpu or not survey.platform.has_cuda:
        return
    for rule in RULES:
        found = [name for name in rule.names if name in survey.environ and rule.applies(survey.environ[name])]
        if found:
            entries = tuple(f"{name}={survey.environ[name]}" for name in found)
            yield survey.finding(rule.id, entries, entries=entries, variables_typed=" ".join(found))


def _is_cuda(survey: Survey, value: str) -> bool:
    """For conda an empty value means that there is no CUDA."""
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
    """``cpu`` for uv, ``none`` for envsolve: only these values are certainly about the machine."""
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
"""Whether the value of a variable fits this machine, for the variables of conda, pixi, uv, NVIDIA's variants and
envsolve.
"""


def check_overrides(survey: Survey) -> Iterator[Finding]:
    """Every override that is set and contradicts the machine, in one finding."""
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
    """Whether the value fits; an unreadable value never does."""
    try:
        return OVERRIDES[name](survey, survey.environ[name])
    except ValueError:
        return False
