"""What kind of system this is, as far as it decides which builds can run at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from envsolve.diagnose.machine.survey import Survey
from envsolve.host.jetson import board_model
from envsolve.model.finding import Finding, Severity
from envsolve.model.host import COMMON_GLIBC

_MUSL = re.compile(r"ld-musl-.+\.so\.1\Z")
_JETPACK: Mapping[str, str] = {"32": "4", "34": "5", "35": "5", "36": "6", "38": "7"}
"""JetPack by the major number of Jetson Linux (developer.nvidia.com/embedded/jetpack-archive)."""


def check_platform(survey: Survey) -> Iterator[Finding]:
    """A platform without CUDA."""
    if not survey.platform.has_cuda:
        yield survey.finding("macos-without-cuda", (f"platform {survey.platform}",), platform=survey.platform)


def check_c_library(survey: Survey) -> Iterator[Finding]:
    """A C library that builds with CUDA do not know, or one that current ones leave behind."""
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
    """A Jetson: which JetPack, and what that means for builds."""
    if survey.l4t is None:
        return
    gpus = (f"{it.name}: {it.compute_capability}" for it in survey.host.gpus)
    yield survey.finding(
        "jetson",
        (f"/etc/nv_tegra_release: {survey.l4t}", *gpus),
        l4t=survey.l4t,
        jetpack_major=_JETPACK.get(survey.l4t.partition(".")[0]),
        board=board_model(survey.surroundings.machine.root),
    )


def _musl(survey: Survey) -> str | None:
    """The loader of musl, where no glibc stands beside it."""
    loader = next((name for name in survey.files.names("/lib") if _MUSL.match(name)), None)
    directories = (*survey.loader.defaults, "/lib64")
    glibc = any(survey.files.is_file(f"{directory}/libc.so.6") for directory in directories)
    alpine = survey.distribution is not None and survey.distribution.is_a("alpine")
    return None if loader is None or (glibc and not alpine) else f"/lib/{loader}"
