"""WSL: the GPU is Windows', and a Linux driver inside only hides it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envsolve.diagnose.machine.compatibility import is_compatibility
from envsolve.diagnose.machine.survey import Survey
from envsolve.host.wsl import shadowing_library
from envsolve.model.finding import Finding, Severity

_FIRST_WSL = re.compile(r"4\.4\.0-\d+-Microsoft\Z")
"""The kernel that WSL 1 pretends to be."""
_STATUS = "/var/lib/dpkg/status"
_PACKAGE = re.compile(r"^Package: (\S+)\nStatus: install ok installed$", re.MULTILINE)
_OF_A_DRIVER = re.compile(
    r"(?:cuda-drivers(?:-\d+)?|nvidia-driver(?:-.+)?|nvidia-dkms-.+|nvidia-kernel-dkms|nvidia-open(?:-.+)?"
    r"|libnvidia-compute(?:-.+)?|libcuda1)\Z"
)


def check_first_wsl(survey: Survey) -> Iterator[Finding]:
    """WSL 1, which has no GPU at all."""
    release = survey.files.text("/proc/sys/kernel/osrelease") or ""
    if survey.is_linux and _FIRST_WSL.match(release):
        yield survey.finding("wsl-1", (f"/proc/sys/kernel/osrelease: {release}",), kernel_release=release)


def check_linux_driver(survey: Survey) -> Iterator[Finding]:
    """A driver for Linux inside WSL: in front of Windows' library, or ready to be."""
    if not survey.is_wsl or survey.container is not None:
        return
    packages = _driver_packages(survey)
    hidden = _hides(survey)
    shadow = shadowing_library(survey.surroundings.machine.root)
    if not hidden and shadow is None and not packages:
        return
    found = str(survey.libcuda) if hidden else shadow
    yield survey.finding(
        "linux-driver-in-wsl",
        filter(None, (found, *(f"package {name}" for name in packages))),
        severity=Severity.ERROR if hidden and not survey.libcuda_works else Severity.WARNING,
        path=found,
        hides=hidden,
        packages=tuple(packages),
        pins=" ".join(packages),
    )


def _hides(survey: Survey) -> bool:
    """Whether another driver's library comes first; stubs and compatibility packages have findings of their own."""
    if survey.libcuda is None or survey.libcuda.real.startswith("/usr/lib/wsl/"):
        return False
    return "/stubs/" not in survey.libcuda.real and not is_compatibility(survey)


def _driver_packages(survey: Survey) -> list[str]:
    text = survey.files.text(_STATUS) or ""
    return sorted({name for name in _PACKAGE.findall(text) if _OF_A_DRIVER.match(name)})
