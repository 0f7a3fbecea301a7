"""The content of the environment as data: the ``inventory`` of ``envsolve doctor --json``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from envsolve.diagnose.environment.builds import Build
from envsolve.diagnose.environment.metadata import Package
from envsolve.diagnose.environment.scene import Scene
from envsolve.resolve.closure.bounds import cuda_major_of
from envsolve.validation.report import Library

_LOCAL = re.compile(r"\+cu(\d+)(\d)\b")
_OWN_VERSION = ("cuda-toolkit", "cudatoolkit")


def listing_of(scene: Scene) -> Mapping[str, object]:
    """Prefix, Python, packages, frameworks, the libraries that they would load, and conda's packages."""
    return {
        "prefix": str(scene.inventory.prefix),
        "python": scene.inventory.python or None,
        "packages": [_package(package, scene) for package in sorted(scene.packages.by_name.values())],
        "frameworks": [_framework(build) for build in scene.builds],
        "libraries": list(_libraries(scene)),
        "conda": [
            {"name": it.name, "version": it.version, "build": it.build, "channel": it.channel or None}
            for it in scene.conda.packages
        ],
    }


def _package(package: Package, scene: Scene) -> dict[str, object]:
    return {
        "name": package.name,
        "version": package.version,
        "installer": package.installer,
        "cuda": _cuda_of(package, scene),
    }


def _cuda_of(package: Package, scene: Scene) -> str | None:
    """The CUDA that a package is for, as reported by its framework, or by its local version or name."""
    build = next((it for it in scene.builds if it.package is not None and it.package.folder == package.folder), None)
    if build is not None:
        return build.cuda
    match = _LOCAL.search(package.version)
    if match is not None:
        return f"{match[1]}.{match[2]}"
    if package.name in _OWN_VERSION:
        return ".".join(package.version.split(".")[:2])
    major = cuda_major_of(package.name)
    return str(major) if major is not None else None


def _framework(build: Build) -> dict[str, object]:
    exact = build.cuda_version
    return {
        "framework": build.name,
        "version": build.version,
        "package": build.conda.name if build.conda else build.package.name if build.package else None,
        "cuda": str(exact) if exact is not None else build.cuda,
        "cudnn": str(build.cudnn) if build.cudnn is not None else None,
        "directory": str(build.framework.directory),
    }


def _libraries(scene: Scene) -> Iterator[dict[str, object]]:
    for library in scene.static.libraries:
        owner = scene.owners.of(library.path)
        yield _versioned(library, scene).as_json() | {"package": owner.name if owner is not None else None}


def _versioned(library: Library, scene: Scene) -> Library:
    version = scene.owners.version_of(library.path) if library.version is None else None
    return library._replace(version=str(version)) if version is not None else library
