"""What is known of the environment and the machine that a text is about."""

from __future__ import annotations

from envsolve.diagnose.case import TITLES, Case, Sighting
from envsolve.diagnose.facts.shared.gpu_packages import about_gpus
from envsolve.frameworks import FRAMEWORKS
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.versions import CudaVersion, DriverVersion

Lines = tuple[Sighting, ...]


def framework(case: Case, lines: Lines) -> str | None:
    """The framework, as its makers write it."""
    known = name(case, lines)
    return TITLES.get(known, known) if known else None


def name(case: Case, lines: Lines) -> str | None:
    """The framework, by envsolve's name: of the case, or the one that alone says it in the words of the lines."""
    return case.framework or next((it for it in FRAMEWORKS if any(line.get(it) for line in lines)), None)


def version(case: Case, _lines: Lines) -> str | None:
    """The framework's version, local part included."""
    return case.version_of(case.framework)


def built_cuda(case: Case, _lines: Lines) -> CudaVersion | None:
    """The CUDA that the framework was built with."""
    return case.built_cuda


def toolkit(case: Case, _lines: Lines) -> CudaVersion | None:
    """A CUDA toolkit that is installed on the machine."""
    return case.toolkit


def cudnn(case: Case, _lines: Lines) -> str | None:
    """The cuDNN that is installed."""
    return case.cudnn


def python(case: Case, _lines: Lines) -> str | None:
    """The version of Python."""
    return case.python


def driver(case: Case, _lines: Lines) -> DriverVersion | None:
    """The version of the driver."""
    return case.driver


def driver_cuda(case: Case, _lines: Lines) -> CudaVersion | None:
    """The newest CUDA that the driver supports in full."""
    return case.driver_cuda


def gpu(case: Case, _lines: Lines) -> str | None:
    """The name of the GPU."""
    return case.gpus[0] if case.gpus else None


def capability(case: Case, _lines: Lines) -> ComputeCapability | None:
    """The compute capability of the GPU."""
    return case.capability


def platform(case: Case, _lines: Lines) -> str | None:
    """The platform, ``linux-64``."""
    return None if case.platform is None else case.platform.value


def platform_given(case: Case, _lines: Lines) -> bool:
    """Whether the platform is given and not read from the text."""
    return case.given.platform is not None


def in_conda(case: Case, _lines: Lines) -> bool:
    """Whether the text shows a conda environment."""
    return case.clue("conda") is not None


def windows(case: Case, _lines: Lines) -> bool:
    """Whether it happened on native Windows."""
    return case.windows


def linux(case: Case, _lines: Lines) -> bool:
    """Whether nothing says that it happened elsewhere than on Linux with a driver of its own."""
    return case.platform in (None, Platform.LINUX_64, Platform.LINUX_AARCH64) and not case.wsl


def macos(case: Case, _lines: Lines) -> bool:
    """Whether it happened on a Mac."""
    return case.platform in (Platform.OSX_64, Platform.OSX_ARM64)


def wsl(case: Case, _lines: Lines) -> bool:
    """Whether it happened inside WSL."""
    return case.wsl


def container(case: Case, _lines: Lines) -> bool:
    """Whether it happened in a container."""
    return case.container


def jetson(case: Case, _lines: Lines) -> bool:
    """Whether it happened on a Jetson module."""
    return case.jetson


def of_gpus(case: Case, _lines: Lines) -> bool:
    """Whether the text names a GPU framework or a package built for CUDA."""
    return about_gpus(case)


def line(_case: Case, lines: Lines) -> str:
    """The text of the first judged line."""
    return lines[0].line
