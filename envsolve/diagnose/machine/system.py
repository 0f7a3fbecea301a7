"""The kind of system: which builds can run on it at all, and on WSL, which driver is used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from envsolve.diagnose.machine.driver_library import is_compatibility
from envsolve.diagnose.machine.survey import Survey
from envsolve.host.jetson import board_model
from envsolve.host.wsl import shadowing_library
from envsolve.model.finding import Finding, Severity
from envsolve.model.host import COMMON_GLIBC

_MUSL = re.compile(r"ld-musl-.+\.so\.1\Z")
_JETPACK: Mapping[str, str] = {"32": "4", "34": "5", "35": "5", "36": "6", "38": "7"}
"""JetPack by the major number of Jetson Linux (developer.nvidia.com/embedded/jetpack-archive)."""
_FIRST_WSL = re.compile(r"4\.4\.0-\d+-Microsoft\Z")
"""The kernel version that WSL 1 reports."""
_STATUS = "/var/lib/dpkg/status"
_PACKAGE = re.compile(r"^Package: (\S+)\nStatus: install ok installed$", re.MULTILINE)
_OF_A_DRIVER = re.compile(
    r"(?:cuda-drivers(?:-\d+)?|nvidia-driver(?:-.+)?|nvidia-dkms-.+|nvidia-kernel-dkms|nvidia-open(?:-.+)?"
    r"|libnvidia-compute(?:-.+)?|libcuda1)\Z"
)


def check_platform(survey: Survey) -> Iterator[Finding]:
    """A platform without CUDA."""
    if not survey.platform.has_cuda:
        yield survey.finding("macos-without-cuda", (f"platform {survey.platform}",), platform=survey.platform)


def check_c_library(survey: Survey) -> Iterator[Finding]:
    """A C library that builds with CUDA do not support, or that current builds no longer support."""
    if not survey.is_linux:
        return
    glibc = survey.host.glibc
    musl = _musl(survey) if glibc is None else None
    if musl is not None:
        severity = None if survey.has_gpu else Severity.WARNING
        yield survey.finding("musl", (musl,), severity=severity, path=musl)
    elif glibc is not None and glibc < COMMON_GLIBC:
        yield survey.finding("glibc-old", (f"glibc {glibc}",), glibc_here=glibc, glibc_least=COMMON_GLIBC)


def check_jetson(survey: Survey) -> Iterator[Finding]:
    """A Jetson: its JetPack, and what that means for builds."""
    if survey.l4t is None:
        return
    gpus = (f"{it.name}: {it.compute_capability}" for it in survey.host.gpus)
    yield survey.finding(
        "jetson",
        (f"/etc/nv_tegra_release: {survey.l4t}", *gpus),
        l4t=survey.l4t,
        jetpack_major=_JETPACK.get(survey.l4t.partition(".")[0]),
        board=board_model(survey.root),
    )


def _musl(survey: Survey) -> str | None:
    """The loader of musl, if there is no glibc beside it."""
    loader = next((name for name in survey.files.names("/lib") if _MUSL.match(name)), None)
    directories = (*survey.loader.defaults, "/lib64")
    glibc = any(survey.files.is_file(f"{directory}/libc.so.6") for directory in directories)
    alpine = survey.distribution is not None and survey.distribution.is_a("alpine")
    return None if loader is None or (glibc and not alpine) else f"/lib/{loader}"


def check_first_wsl(survey: Survey) -> Iterator[Finding]:
    """WSL 1, which has no GPU at all."""
    release = survey.files.text("/proc/sys/kernel/osrelease") or ""
    if survey.is_linux and _FIRST_WSL.match(release):
        yield survey.finding("wsl-1", (f"/proc/sys/kernel/osrelease: {release}",), kernel_release=release)


def check_linux_driver(survey: Survey) -> Iterator[Finding]:
    """A Linux driver inside WSL: before Windows' library, or possibly so later."""
    if not survey.is_wsl or survey.container is not None:
        return
    packages = _driver_packages(survey)
    hidden = _hides(survey)
    shadow = shadowing_library(survey.root)
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
