"""Fast loading of rows that passed the strict check before.

Checking every value of every row is most of the cost of loading a framework. Checked rows are cached in parsed form,
one part for each platform, and are built from it without a check. Both ways must give the same result: a test compares
them for every row of the shipped matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from envsolve.boundary.document import Document
from envsolve.matrix.parse import read_specifiers, read_target, read_version
from envsolve.model.capability import DeviceCode
from envsolve.model.fact import Evidence, EvidenceKind
from envsolve.model.host import Platform
from envsolve.model.release import CudaLibraries, Release, Source
from envsolve.model.versions import CudaVersion, LibcVersion

_TABLES = ("known_bad", "platform_limit", "disagreement")
_SOURCES = {source.value: source for source in Source}
_LIBRARIES = {kind.value: kind for kind in CudaLibraries}
_KINDS = {kind.value: kind for kind in EvidenceKind}
_libc = cache(LibcVersion.parse)
_cuda = cache(CudaVersion.parse)
_NOTHING: tuple[str, ...] = ()


@cache
def _code(sass: tuple[str, ...], ptx: tuple[str, ...]) -> DeviceCode:
    """One object for all builds with the same code, so that what it runs on is computed once."""
    return DeviceCode(tuple(map(read_target, sass)), tuple(map(read_target, ptx)))


def part_of(document: Mapping[str, Any], platform: Platform) -> Document:
    """Return the part of a valid framework file that a request for ``platform`` needs."""
    evidence = document["evidence"]
    order = list(EvidenceKind)
    days = {version: day for row in document.get("dates", []) for version, day in row.get("released", {}).items()}
    releases = [
        {
            **row,
            "evidence": sorted(row["evidence"], key=lambda name: order.index(EvidenceKind(evidence[name]["kind"]))),
            "companions": sorted(row.get("companions", {}).items()),
            **({"jit": sorted(row["jit"].items())} if "jit" in row else {}),
            **({"released": days[row["version"]]} if row["version"] in days else {}),
        }
        for row in document["release"]
        if row["platform"] == platform.value
    ]
    tables = {name: document[name] for name in _TABLES if name in document}
    cited = {name for row in releases for name in row["evidence"]}
    cited |= {name for rows in tables.values() for row in rows for name in row["evidence"]}
    head = {name: value for name, value in document.items() if name not in (*_TABLES, "dates", "release", "evidence")}
    used = {name: entry for name, entry in evidence.items() if name in cited}
    return {**head, **tables, "evidence": used, "release": releases}


def evidence_of(part: Mapping[str, Any]) -> dict[str, Evidence]:
    """Return the ``[evidence.<id>]`` tables of a part."""
    return {
        name: Evidence(_KINDS[entry["kind"]], entry["reference"], entry["seen"], entry.get("sha256"))
        for name, entry in part["evidence"].items()
    }


def releases_of(
    framework: str, part: Mapping[str, Any], platform: Platform, known: Mapping[str, Evidence]
) -> tuple[Release, ...]:
    """Return the ``[[release]]`` rows of a part."""
    return tuple(_release(framework, row, platform, known) for row in part["release"])


def _release(framework: str, row: Mapping[str, Any], platform: Platform, known: Mapping[str, Evidence]) -> Release:
    get = row.get
    glibc, cuda, libraries = get("glibc"), get("cuda"), get("cuda_libraries")
    cuda_requires, cudnn, cudnn_requires = get("cuda_requires"), get("cudnn"), get("cudnn_requires")
    build = row["build"]
    return Release(
        framework=framework,
        version=read_version(row["version"]),
        source=_SOURCES[row["source"]],
        platform=platform,
        build=build,
        build_string=get("build_string") or f"{build}*",
        package=row["package"],
        pythons=tuple(row["pythons"]),
        glibc=None if glibc is None else _libc(glibc),
        cuda=None if cuda is None else _cuda(cuda),
        cuda_requires=None if cuda_requires is None else read_specifiers(cuda_requires),
        cuda_libraries=None if libraries is None else _LIBRARIES[libraries],
        cudnn=None if cudnn is None else read_version(cudnn),
        cudnn_requires=None if cudnn_requires is None else read_specifiers(cudnn_requires),
        cudnn_package=get("cudnn_package"),
        extras=tuple(get("extras", _NOTHING)),
        code=_code(tuple(get("sass", _NOTHING)), tuple(get("ptx", _NOTHING))),
        companions=tuple(row["companions"]),
        constraints=tuple(get("constraints", _NOTHING)),
        evidence=tuple([known[name] for name in row["evidence"]]),
        inferred=tuple(get("inferred", _NOTHING)),
        note=get("note", ""),
        wheel=get("wheel", ""),
        jit=tuple((read_target(target), _cuda(cuda)) for target, cuda in row["jit"]) if "jit" in row else (),
        released=get("released"),
    )
