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
        yield Finding(
            "macos-without-cuda",
            "There is no CUDA for this platform",
            Severity.INFO,
            f"This is {survey.platform}, for which NVIDIA ships no CUDA (macOS lost it with CUDA 10.2): environments "
            "here compute on the CPU, or on the GPU through other means than CUDA.",
            "Nothing has to be done; ask for builds for the CPU with --gpu none.",
            evidence=(f"platform {survey.platform}",),
        )


def check_c_library(survey: Survey) -> Iterator[Finding]:
    """A C library that builds with CUDA do not know, or one that current ones leave behind."""
    if not survey.is_linux:
        return
    glibc = survey.host.glibc
    musl = _musl(survey) if glibc is None else None
    if musl is not None:
        yield _without_glibc(survey, musl)
    elif glibc is not None and glibc < COMMON_GLIBC:
        yield Finding(
            "glibc-old",
            "The C library is too old for current builds",
            Severity.INFO,
            f"This system has glibc {glibc}, and builds of today ask for {COMMON_GLIBC} (manylinux_2_28): the newest "
            "release of a framework may not be one that runs here.",
            "Let envsolve choose: it takes the newest build that this C library runs. Packages of conda-forge often "
            "ask for less than wheels.",
            (),
            (f"glibc {glibc}",),
        )


def check_jetson(survey: Survey) -> Iterator[Finding]:
    """A Jetson: which JetPack, and what that means for builds."""
    if survey.l4t is None:
        return
    jetpack = _JETPACK.get(survey.l4t.partition(".")[0])
    which = f", which is JetPack {jetpack}" if jetpack is not None else ""
    board = board_model(survey.surroundings.machine.root) or "an NVIDIA Jetson"
    yield Finding(
        "jetson",
        "This is an NVIDIA Jetson",
        Severity.INFO,
        f"This is {board} with Jetson Linux {survey.l4t}{which}. Its driver is part of JetPack and has no number of "
        "the ordinary series; builds for other Arm machines may have no code for its GPU.",
        "Take builds that NVIDIA makes for this JetPack, or ones with code for the compute capability of the module.",
        (),
        (f"/etc/nv_tegra_release: {survey.l4t}", *(f"{it.name}: {it.compute_capability}" for it in survey.host.gpus)),
    )


def _musl(survey: Survey) -> str | None:
    """The loader of musl, where no glibc stands beside it."""
    loader = next((name for name in survey.files.names("/lib") if _MUSL.match(name)), None)
    directories = (*survey.loader.defaults, "/lib64")
    glibc = any(survey.files.is_file(f"{directory}/libc.so.6") for directory in directories)
    alpine = survey.distribution is not None and survey.distribution.is_a("alpine")
    return None if loader is None or (glibc and not alpine) else f"/lib/{loader}"


def _without_glibc(survey: Survey, loader: str) -> Finding:
    name = survey.distribution.name if survey.distribution is not None else ""
    return Finding(
        "musl",
        "There are no builds with CUDA for this C library",
        Severity.ERROR if survey.has_gpu else Severity.WARNING,
        f"The C library of this system{f' ({name})' if name else ''} is musl. NVIDIA's driver and CUDA, and every "
        "framework built with them, need glibc.",
        "Use a system, or the image of a container, with glibc: Debian, Ubuntu, Fedora, Rocky Linux.",
        (),
        (loader,),
    )
