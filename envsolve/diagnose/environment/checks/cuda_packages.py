"""NVIDIA packages for a CUDA that nothing installed here uses: harmless, until something finds them first."""

from __future__ import annotations

from collections.abc import Iterator

from envsolve.diagnose.environment.families import cuda_suffix
from envsolve.diagnose.environment.metadata import Package
from envsolve.diagnose.environment.scene import Scene
from envsolve.diagnose.environment.wanted import required_by_any
from envsolve.matrix.tables import ComponentTable
from envsolve.model.finding import Finding

_SHOWN = 8


def leftover_packages(scene: Scene) -> Iterator[Finding]:
    """Packages for another major version of CUDA than any framework here, which no package requires."""
    used = {build.cuda_major for build in scene.builds if build.cuda_major is not None}
    if not used:
        return
    required = required_by_any(scene.packages)
    left: dict[int, list[Package]] = {}
    for package in scene.packages.by_name.values():
        major = major_of(package, scene.matrix.components)
        if major is not None and major not in used and package.name not in required:
            left.setdefault(major, []).append(package)
    for major, packages in left.items():
        names = [package.name for package in packages]
        yield scene.finding(
            "leftover-cuda-packages",
            (package.label for package in packages),
            packages=tuple(names[:_SHOWN]),
            pins=" ".join(names),
            package_cuda=f"CUDA {major}",
            built_cuda=tuple(map(str, sorted(used))),
        )


def major_of(package: Package, components: ComponentTable) -> int | None:
    """The major version of CUDA that an NVIDIA package is for; since 13 some names no longer end in it."""
    suffix = cuda_suffix(package.name)
    if suffix is not None or not package.name.startswith("nvidia-"):
        return suffix
    known = any(part.package == package.name for it in components.releases for part in it.components)
    numbers = package.version.split(".")
    if not known or not numbers[0].isdecimal():
        return None
    holding = {
        it.cuda.major
        for it in components.releases
        for part in it.components
        if part.package == package.name and part.version.release[:2] == _minor(package.version)
    }
    return holding.pop() if len(holding) == 1 else None


def _minor(version: str) -> tuple[int, ...]:
    parts = version.split(".")[:2]
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else ()
