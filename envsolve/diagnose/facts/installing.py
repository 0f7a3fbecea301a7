"""Facts on what was requested of pip, uv or Poetry: its versions, its builds and their systems."""

from __future__ import annotations

import re

from packaging.version import Version

from envsolve.diagnose.case import Case, Lines
from envsolve.diagnose.facts.shared.requested import (
    FRAMEWORK_OF,
    Requested,
    is_for_cuda,
    requested,
    requested_package,
    wheels_of,
)
from envsolve.model.host import Platform
from envsolve.model.release import Release, Source

_CUDA_BUILD = re.compile(r"cu\d{2,3}")
_LAST_TENSORFLOW_GPU = {Platform.WIN_64: Version("2.10.1")}
_LAST_ON_LINUX = Version("2.11")
_SYSTEMS = {
    Platform.LINUX_64: "Linux on x86_64",
    Platform.LINUX_AARCH64: "Linux on ARM (aarch64)",
    Platform.WIN_64: "Windows",
    Platform.OSX_64: "macOS on Intel (x86_64)",
    Platform.OSX_ARM64: "macOS on Apple silicon",
}


# ---------------------------------------------------------------------------------------------- what was requested


def asked_package(_case: Case, lines: Lines) -> str | None:
    """The package that a line of an installer is about, by its normalized name."""
    return requested_package(lines)


def for_cuda(_case: Case, lines: Lines) -> bool:
    """Whether every wheel of it is one for CUDA."""
    return is_for_cuda(requested_package(lines) or "")


def pip_request(case: Case, lines: Lines) -> Requested:
    """What was requested of the installer, and the versions that it found."""
    return requested(case, lines)


def asked_requirement(case: Case, lines: Lines) -> str | None:
    """The same as a requirement for envsolve, if the package is the framework itself."""
    asked = requested(case, lines)
    own = asked.package in ("torch", "tensorflow", "jax")
    return f"{asked.framework}=={asked.version.public}" if own and asked.version is not None else None


# ---------------------------------------------------------------------------------------------- pip's list of versions


def lists_builds(case: Case, lines: Lines) -> bool:
    """Whether versions in pip's list name builds, as PyTorch's own index does."""
    return any(it.local for it in requested(case, lines).listed or ())


def lists_version(case: Case, lines: Lines) -> bool:
    """Whether pip's list has the version that was requested, in whatever build."""
    asked = requested(case, lines)
    return asked.version is not None and any(it.public == asked.version.public for it in asked.listed or ())


# ---------------------------------------------------------------------------------------------- builds of PyTorch


def published_builds(case: Case, lines: Lines) -> tuple[str, ...]:
    """The builds of the version on PyTorch's index, on whatever platform."""
    asked = requested(case, lines)
    every = (it for platform in Platform for it in wheels_of(case, asked, platform))
    return tuple(sorted({it.build for it in every if it.source is Source.PYTORCH}))


def asked_build(case: Case, lines: Lines) -> str | None:
    """The build that was requested: by the version's local part, or by a folder of the index without such a version."""
    asked = requested(case, lines)
    if asked.framework != "pytorch" or asked.version is None:
        return None
    folder = None if asked.listed else case.clue("pytorch_index")
    return asked.version.local or (folder if folder and _CUDA_BUILD.fullmatch(folder) else None)


# ---------------------------------------------------------------------------------------------- versions and systems


def nearest_build(case: Case, lines: Lines) -> str:
    """The build of the version for the nearest CUDA."""
    cuda = [it for it in published_builds(case, lines) if it.startswith("cu")]
    wanted = int((asked_build(case, lines) or "cu0")[2:])
    return min(cuda, key=lambda it: abs(int(it[2:]) - wanted), default="cpu")


def unreleased(case: Case, lines: Lines) -> bool:
    """Whether a version that the matrix does not have lies among those that it has: it was never released."""
    asked = requested(case, lines)
    if asked.package not in ("torch", "tensorflow") or asked.version is None:
        return False
    versions = {it.version for it in case.knowledge.all_releases(asked.framework or "")}
    version = Version(asked.version.public)
    return bool(versions) and version not in versions and min(versions) < version < max(versions)


def _around(case: Case, lines: Lines) -> tuple[list[Version], list[Version]]:
    asked = requested(case, lines)
    versions = sorted({it.version for it in case.knowledge.all_releases(asked.framework or "") if it.source.is_wheel})
    if asked.version is None:
        return [], []
    version = asked.version
    return [it for it in versions if it < version][-2:], [it for it in versions if it > version][:2]


def releases_around(case: Case, lines: Lines) -> tuple[str, ...]:
    """The releases next to the version."""
    below, above = _around(case, lines)
    return tuple(map(str, (*below, *above)))


def release_below(case: Case, lines: Lines) -> str | None:
    """The release next to the version, an older one if there is any."""
    below, above = _around(case, lines)
    return next((str(it) for it in (*below[::-1], *above)), None)


def other_systems(case: Case, lines: Lines) -> tuple[str, ...]:
    """The systems that have wheels of the version, if the one of the case has none."""
    asked = requested(case, lines)
    if wheels_of(case, asked):
        return ()
    return tuple(name for platform, name in _SYSTEMS.items() if wheels_of(case, asked, platform))


def newest_here(case: Case, lines: Lines) -> str | None:
    """The newest release of the framework itself with a wheel for the platform."""
    asked = requested(case, lines)
    every = case.knowledge.all_releases(asked.framework or "", case.platform or Platform.LINUX_64)
    own = [it.version for it in every if it.source.is_wheel]
    return str(max(own)) if own and asked.package in (asked.framework, "torch") else None


def arm_release(case: Case, lines: Lines) -> Release | None:
    """The first release of a package for CUDA with a wheel for ARM on pip's index, if the requested one has none."""
    package = requested_package(lines) or ""
    every = case.knowledge.all_releases(FRAMEWORK_OF.get(package, ""), Platform.LINUX_AARCH64)
    having = (it for it in every if it.source is Source.PYPI and it.package == package)
    missing = is_for_cuda(package) and not case.jetson and not wheels_of(case, requested(case, lines))
    return min(having, key=lambda it: it.version, default=None) if missing else None


def tensorflow_gpu_gone(case: Case, lines: Lines) -> bool:
    """Whether it is a tensorflow-gpu after the last one that had code."""
    asked = requested(case, lines)
    last = _LAST_TENSORFLOW_GPU.get(case.platform or Platform.LINUX_64, _LAST_ON_LINUX)
    return asked.package == "tensorflow-gpu" and asked.version is not None and asked.version > last
