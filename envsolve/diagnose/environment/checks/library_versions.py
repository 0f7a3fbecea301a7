"""Releases of CUDA libraries that do not match the framework that loads them, or each other.

* cuDNN runs with the minor version it was compiled with or a newer one of the same major. TensorFlow and JAX check this
and refuse an older one (``cuda_dnn.cc`` of XLA, "Loaded runtime CuDNN library"). PyTorch runs with it (2.11.0, built
with 9.19, had right results on an H200 with 9.14); only ``torch/backends/cudnn/__init__.py`` refuses it.
* The parts of cuDNN have to be of one release (NVIDIA cuDNN, API ``cudnnGetVersion``:
CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH). On an H200, cuDNN 9.19 with the libcudnn_engines_precompiled of 9.14 found no
engine for a convolution; with the libcudnn_ops of 9.14 all results were right.
* A library loads only if the C and the C++ library have the symbol versions that it needs.
* A library that uses a function of another one does not load if that is from a release without it: cuSPARSE 12.5 with
the nvJitLink of 12.4 fails with "undefined symbol: __nvJitLinkComplete_12_5". The files say which functions these are,
and from which library they are expected.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from packaging.version import Version

from envsolve.binary.elf import read_needed_versions
from envsolve.binary.lookup import Rule
from envsolve.binary.unreadable import UnreadableLibraryError
from envsolve.boundary.reading import placed, real, shown
from envsolve.diagnose.environment.builds import Build
from envsolve.diagnose.environment.loads import Loading
from envsolve.diagnose.environment.scene import Scene
from envsolve.diagnose.environment.symbols import NONE, Symbols, defined_versions, read_symbols
from envsolve.model.finding import Finding, Severity
from envsolve.validation.inside.library_versions import component_of
from envsolve.validation.installed import is_of_driver

_UNVERSIONED = {"nccl": re.compile(rb"nccl[A-Z]\w*")}
"""Libraries whose functions have no symbol version, and a pattern for the names of these functions."""
_C, _CXX = re.compile(r"GLIBC_(\d+(?:\.\d+)+)"), re.compile(r"GLIBCXX_(\d+(?:\.\d+)+)")
"""Symbol versions, except GLIBC_PRIVATE and the like."""
_CXX_LIBRARY = "libstdc++.so.6"
_T = TypeVar("_T")


class _Edge(NamedTuple):
    """A file that needs a library, the name that it needs, and the file that is found."""

    requester: str
    name: str
    provider: str


def old_cudnn(scene: Scene) -> Iterator[Finding]:
    """Frameworks that would load an older cuDNN than the one they were built with."""
    builds = {build.name: build for build in scene.builds}
    for loading in scene.loads.with_path:
        build = builds.get(loading.framework.name)
        treated = loading.framework.libraries.older_cudnn
        wanted = _built_with(build) if build is not None and treated is not None else None
        for name, path in loading.found() if wanted is not None else ():
            version = scene.owners.version_of(path) if component_of(name) == "cudnn" else None
            if build is not None and version is not None and wanted is not None and _is_too_old(version, wanted):
                owner = scene.owners.of(path)
                yield scene.finding(
                    "old-cudnn-loaded",
                    (f"{shown(path)} is cuDNN {version}", f"{build.label}: cuDNN {wanted}"),
                    about=build,
                    severity=Severity.WARNING if treated == "run" else None,
                    sources=build.references,
                    wanted=str(wanted),
                    wanted_minor=f"{wanted.major}.{wanted.minor}",
                    next_major=wanted.major + 1,
                    found_version=str(version),
                    path=_with_owner(path, scene),
                    package=None if owner is None else owner.name,
                    installer=None if owner is None else owner.by,
                    **_off(_by_variable([path], loading), scene),
                )


def cudnn_of_two_releases(scene: Scene) -> Iterator[Finding]:
    """Frameworks that would load parts of cuDNN of two releases, from two places; one finding for the same files."""
    by_files: dict[frozenset[str], list[Loading]] = defaultdict(list)
    for loading in scene.loads.with_path:
        by_files[frozenset(real(path) for name, path in loading.found() if _is_of_cudnn(name))].append(loading)
    for loadings in by_files.values():
        files = [path for name, path in loadings[0].found() if _is_of_cudnn(name)]
        places: dict[str, list[str]] = defaultdict(list)
        for path in files:
            places[os.path.dirname(real(path))].append(path)  # noqa: PTH120 - as the loader wrote it
        versions = {place: scene.owners.version_of(paths[0]) for place, paths in places.items()}
        if len(places) > 1 and (None in versions.values() or len(set(versions.values())) > 1):
            yield _two_releases(loadings, places, versions, scene)


def missing_functions(scene: Scene) -> Iterator[Finding]:
    """Libraries that would get another library without the functions that they need from it."""
    symbols = cache(_symbols)
    edges: dict[_Edge, Loading] = {}
    for loading in scene.loads.with_path:
        for edge in _edges(loading, scene):
            edges.setdefault(edge, loading)
    for edge, loading in edges.items():
        missing = _missing(edge, symbols)
        if missing:
            yield _missing_functions(edge, missing, loading, scene)


def old_c_library(scene: Scene) -> Iterator[Finding]:
    """Frameworks with libraries compiled for a newer C library than the machine's."""
    here = scene.host.glibc
    for framework in scene.files.frameworks if here is not None else ():
        newer = _newer(framework.own_files, _C, Version(str(here)))
        if newer:
            yield scene.finding(
                "glibc-too-old",
                (f"{file} asks for GLIBC_{version}" for file, version in newer.items()),
                about=framework,
                glibc_least=max(newer.values()),
                glibc_here=here,
            )


def old_cxx_library(scene: Scene) -> Iterator[Finding]:
    """Frameworks with libraries compiled for a newer C++ library than the one in their process."""
    for loading in scene.loads.with_path:
        found = next((it.path for it in loading.lookups if it.name == _CXX_LIBRARY and it.path is not None), None)
        has = _newest(_read(defined_versions, found), _CXX) if found is not None else None
        needing = {it.requester for it in loading.lookups if it.name == _CXX_LIBRARY and it.requester is not None}
        newer = _newer(needing, _CXX, has) if has is not None else {}
        if found is not None and newer:
            yield scene.finding(
                "cxx-library-too-old",
                (f"{shown(file)} asks for GLIBCXX_{version}" for file, version in newer.items()),
                about=loading.framework,
                wanted=str(max(newer.values())),
                found_version=str(has),
                path=_with_owner(found, scene),
                **_off(_by_variable([found], loading), scene),
            )


def _newer(files: Iterable[Path | str], pattern: re.Pattern[str], than: Version) -> dict[Path | str, Version]:
    """The files that need symbols of a newer library ``than`` this one, and of which version."""
    needing = {file: _newest((it.version for it in _read(read_needed_versions, file)), pattern) for file in files}
    return {file: version for file, version in needing.items() if version is not None and version > than}


def _read(read: Callable[[Path], Iterable[_T]], file: Path | str) -> Iterable[_T]:
    """What ``read`` returns for a file; empty if the file is not a library."""
    try:
        return read(Path(file))
    except UnreadableLibraryError:
        return ()


def _newest(versions: Iterable[str], pattern: re.Pattern[str]) -> Version | None:
    return max((Version(match[1]) for it in versions if (match := pattern.fullmatch(it))), default=None)


def _missing(edge: _Edge, symbols: Callable[[str], Symbols]) -> list[str]:
    """The symbols that the requester needs from the library and the provider does not define."""
    wanted = symbols(edge.requester).wanted
    names = set(wanted.get(edge.name, ()))
    pattern = _UNVERSIONED.get(component_of(edge.name) or "")
    if pattern is not None:
        names |= {name for name in wanted.get("", ()) if pattern.fullmatch(name)}
    exported = symbols(edge.provider).exported if names else frozenset()
    return sorted(name.decode("utf-8", "replace") for name in names - exported) if exported else []


def _symbols(path: str) -> Symbols:
    """The symbols of a file; none if it is not a library."""
    try:
        return read_symbols(Path(path))
    except UnreadableLibraryError:
        return NONE


def _edges(loading: Loading, scene: Scene) -> Iterator[_Edge]:
    """The needs for CUDA libraries; functions of libraries that a framework opens by name are looked up one by one."""
    for lookup in loading.lookups:
        is_cuda = component_of(lookup.name) is not None and not is_of_driver(lookup.name)
        if is_cuda and lookup.path is not None and lookup.requester is not None:
            requester = scene.loads.read(lookup.requester)
            if requester is not None and lookup.name in requester.needed:
                yield _Edge(placed(lookup.requester), lookup.name, placed(lookup.path))


def _built_with(build: Build) -> Version | None:
    """The cuDNN of the build, or else the oldest one that its package allows."""
    if build.cudnn is not None:
        return build.cudnn
    bounds = {
        Version(it.version)
        for release in build.releases
        for it in release.cudnn_requires or ()
        if it.operator in (">=", "==") and "*" not in it.version
    }
    return min(bounds, default=None)


def _is_too_old(version: Version, wanted: Version) -> bool:
    if version.major != wanted.major:
        return version.major < wanted.major
    return version.minor < wanted.minor


def _by_variable(paths: Sequence[str], loading: Loading) -> list[str]:
    """Those of ``paths``, as the loader writes them, that were found through LD_LIBRARY_PATH."""
    led = {it.path for it in loading.lookups if it.rule is Rule.LIBRARY_PATH}
    return [path for path in paths if path in led]


def _with_owner(path: str, scene: Scene) -> str:
    owner = scene.owners.of(path)
    return f"{shown(path)} ({owner.label})" if owner is not None else shown(path)


def _off(by_variable: Sequence[str], scene: Scene) -> dict[str, object]:
    """Facts on the directories of LD_LIBRARY_PATH that files came from; empty if none did."""
    return scene.loads.facts_without(map(os.path.dirname, by_variable)) if by_variable else {}


def _is_of_cudnn(name: str) -> bool:
    return (component_of(name) or "").startswith("cudnn")


def _two_releases(
    loadings: Sequence[Loading], places: Mapping[str, list[str]], versions: Mapping[str, Version | None], scene: Scene
) -> Finding:
    paths = [path for paths in places.values() for path in paths]
    with_versions = (f"{place} ({versions[place]})" if versions[place] is not None else place for place in places)
    return scene.finding(
        "cudnn-parts-from-two-places",
        map(shown, paths),
        about=loadings[0].framework,
        severity=Severity.WARNING if None in versions.values() else None,
        framework=tuple(it.title for it in loadings),
        places=tuple(with_versions),
        **_off(_by_variable(paths, loadings[0]), scene),
    )


def _missing_functions(edge: _Edge, missing: list[str], loading: Loading, scene: Scene) -> Finding:
    provided = [it.path for it in loading.lookups if it.path is not None and placed(it.path) == edge.provider]
    owner = scene.owners.of(edge.provider)
    return scene.finding(
        "function-missing",
        (edge.requester, edge.provider, *(f"not there: {name}" for name in missing)),
        about=loading.framework,
        requester=Path(edge.requester).name,
        library=edge.name,
        path=_with_owner(edge.provider, scene),
        function=missing[0],
        more_functions=len(missing) - 1,
        package=None if owner is None else owner.name,
        **_off(_by_variable(provided, loading), scene),
    )
