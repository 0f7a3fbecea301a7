"""Variables that tell tools another machine than this one, envsolve among them: fine for building elsewhere's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from envsolve.diagnose.machine.survey import Survey
from envsolve.model.capability import ComputeCapability
from envsolve.model.finding import Finding, Severity
from envsolve.model.versions import CudaVersion, DriverVersion, LibcVersion


class Override(NamedTuple):
    """A variable, who reads it, what it replaces, and whether its value says what this machine is."""

    reader: str
    about: str
    agrees: Callable[[Survey, str], bool]
    real: Callable[[Survey], str]


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


def _cuda(survey: Survey) -> str:
    return "no driver for CUDA" if survey.host.driver_cuda is None else f"CUDA {survey.host.driver_cuda}"


def _driver(survey: Survey) -> str:
    return "no driver" if survey.host.driver is None else f"the driver {survey.host.driver}"


def _capabilities(survey: Survey) -> str:
    found = survey.host.capabilities
    return f"GPUs of {' and '.join(map(str, found))}" if found else "no GPU that is known"


def _glibc(survey: Survey) -> str:
    return f"glibc {survey.host.glibc}"


def _gpu_or_not(survey: Survey, value: str) -> bool:
    """``cpu`` for uv, ``none`` for envsolve: only that says something of the machine for certain."""
    return value.strip().lower() not in ("cpu", "none") or not survey.host.gpus


_CUDA_VERSION, _DRIVER_VERSION = "the newest CUDA that the driver supports", "the version of the driver"
_CAPABILITY = "the compute capability"
OVERRIDES: Mapping[str, Override] = {
    "CONDA_OVERRIDE_CUDA": Override("conda, mamba, pixi and envsolve", _CUDA_VERSION, _is_cuda, _cuda),
    "CONDA_OVERRIDE_CUDA_ARCH": Override("pixi and envsolve", _CAPABILITY, _is_capability, _capabilities),
    "CONDA_OVERRIDE_GLIBC": Override("conda, mamba, pixi and envsolve", "the C library", _is_glibc, _glibc),
    "UV_CUDA_DRIVER_VERSION": Override("uv and envsolve", _DRIVER_VERSION, _is_driver, _driver),
    "UV_TORCH_BACKEND": Override("uv", "the builds of PyTorch", _gpu_or_not, _capabilities),
    "NV_VARIANT_PROVIDER_FORCE_CUDA_DRIVER_VERSION": Override(
        "NVIDIA's variant provider", _CUDA_VERSION, _is_cuda, _cuda
    ),
    "NV_VARIANT_PROVIDER_FORCE_SM_ARCH": Override(
        "NVIDIA's variant provider", _CAPABILITY, _is_capability, _capabilities
    ),
    "ENVSOLVE_DRIVER": Override("envsolve", _DRIVER_VERSION, _is_driver, _driver),
    "ENVSOLVE_GPU": Override("envsolve", "the GPU", _gpu_or_not, _capabilities),
}


def check_overrides(survey: Survey) -> Iterator[Finding]:
    """Every override that is set and says something else than the machine, in one finding."""
    differing = [name for name in OVERRIDES if name in survey.environ and not _agrees(survey, name)]
    if not differing:
        return
    said = [_sentence(survey, name) for name in differing]
    yield Finding(
        "override-differs",
        "Variables tell tools another machine than this one",
        Severity.INFO,
        " ".join(said),
        "That is right for environments that will run elsewhere. For this machine, unset them.",
        survey.unset(*differing),
        tuple(f"{name}={survey.environ[name]}" for name in differing),
    )


def _agrees(survey: Survey, name: str) -> bool:
    """A value that nobody can read agrees with nothing."""
    try:
        return OVERRIDES[name].agrees(survey, survey.environ[name])
    except ValueError:
        return False


def _sentence(survey: Survey, name: str) -> str:
    it = OVERRIDES[name]
    value = survey.environ[name]
    return f"{name} tells {it.reader} that {it.about} is {value!r}; this machine has {it.real(survey)}."
