"""The contents of the matrix as rows of the JSON that ``envsolve matrix`` prints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from envsolve.app.matrix.matrix import Overview
from envsolve.app.solve.builds import Build
from envsolve.model.capability import CodeTarget, ComputeCapability
from envsolve.model.fact import Evidence
from envsolve.model.release import CudnnRelease, Disagreement, KnownBad, PlatformLimit, Toolkit

if TYPE_CHECKING:
    from envsolve import documents


def overview_row(entry: Overview) -> documents.OverviewRow:
    """The summary of one framework."""
    return {
        "framework": entry.framework,
        "oldest": entry.oldest,
        "newest": entry.newest,
        "builds": entry.builds,
        "sources": {source.value: count for source, count in entry.sources.items()},
        "wheels_read": entry.wheels_read,
    }


def build_row(build: Build) -> documents.Release:
    """One build, with the fields of the JSON contract and everything else that is known."""
    release, toolkit = build.release, build.toolkit
    windows = release.platform.is_windows
    row: documents.Release = {
        "framework": release.framework,
        "version": str(release.version),
        "source": release.source.value,
        "platform": release.platform.value,
        "build": release.build,
        "package": release.package,
        "pythons": list(release.pythons),
        "cuda": _text(release.cuda),
        "cudnn": _text(release.cudnn),
        "compute_capabilities": _texts(release.code.sass),
        "ptx": _texts(release.code.ptx),
        "minimum_driver": None if toolkit is None else str(toolkit.floor(windows=windows)),
        "full_driver": None if toolkit is None else _text(toolkit.full(windows=windows)),
        "evidence": _evidence(release.evidence),
        "released": release.released,
        "jit": {str(target): str(cuda) for target, cuda in release.jit},
        "build_string": release.build_string if not release.source.is_wheel else None,
        "glibc": _text(release.glibc),
        "cuda_requires": _text(release.cuda_requires),
        "cuda_libraries": _text(release.cuda_libraries),
        "cudnn_requires": _text(release.cudnn_requires),
        "cudnn_package": release.cudnn_package,
        "extras": list(release.extras),
        "companions": dict(release.companions),
        "constraints": list(release.constraints),
        "inferred": list(release.inferred),
        "note": release.note or None,
        "known_bad": [known_bad_row(entry) for entry in build.known_bad],
    }
    if release.read_here:
        row["read_here"] = True
    if build.runs_as:
        row["runs_as"] = {str(gpu): runs_as for gpu, runs_as in build.runs_as.items()}
    return row


def known_bad_row(entry: KnownBad) -> documents.KnownBad:
    """Builds that install and then fail; empty lists mean all."""
    return {
        "versions": str(entry.versions),
        "sources": [source.value for source in entry.sources],
        "builds": list(entry.builds),
        "platforms": [platform.value for platform in entry.platforms],
        "compute_capabilities": _texts(entry.capabilities),
        "reason": entry.reason,
        "evidence": _evidence(entry.evidence),
    }


def platform_limit_row(limit: PlatformLimit) -> documents.PlatformLimit:
    """Versions without a GPU build on a platform."""
    return {
        "platform": limit.platform.value,
        "versions": str(limit.versions),
        "reason": limit.reason,
        "instead": limit.instead,
        "evidence": _evidence(limit.evidence),
    }


def disagreement_row(entry: Disagreement) -> documents.Disagreement:
    """Two sources that disagree."""
    return {
        "about": entry.about,
        "versions": _text(entry.versions),
        "used": entry.used,
        "rejected": entry.rejected,
        "because": entry.because,
        "evidence": _evidence(entry.evidence),
    }


def toolkit_row(toolkit: Toolkit) -> documents.ToolkitRow:
    """A CUDA toolkit with the drivers that run its machine code and that support it in full."""
    return {
        "version": str(toolkit.version),
        "minimum_driver": {"linux": str(toolkit.linux_floor), "windows": str(toolkit.windows_floor)},
        "full_driver": {"linux": _text(toolkit.linux_full), "windows": _text(toolkit.windows_full)},
        "compute_capabilities": _texts(toolkit.compiles_for),
        "evidence": _evidence(toolkit.evidence),
    }


def cudnn_row(release: CudnnRelease) -> documents.CudnnRow:
    """A cuDNN release; lists of GPU code are null if its binaries were not read."""
    return {
        "version": str(release.version),
        "cuda_major": release.cuda_major,
        "min_capability": str(release.oldest),
        "max_capability": str(release.newest),
        "compute_capabilities": None if release.code is None else _texts(release.code.sass),
        "ptx": None if release.code is None else _texts(release.code.ptx),
        "pypi": release.on_pypi,
        "conda_forge": [platform.value for platform in release.conda_platforms],
        "glibc_conda_forge": _text(release.conda_glibc),
        "evidence": _evidence(release.evidence),
    }


def _evidence(items: Iterable[Evidence]) -> list[documents.Evidence]:
    rows: list[documents.Evidence] = []
    for item in items:
        rows.append({"kind": item.kind.value, "reference": item.reference, "seen": item.seen})
        if item.sha256 is not None:
            rows[-1]["sha256"] = item.sha256
    return rows


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _texts(values: Iterable[CodeTarget | ComputeCapability]) -> list[str]:
    return [str(value) for value in values]
