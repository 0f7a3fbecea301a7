"""The CUDA of a conda prefix and its frameworks: toolkits of another major, builds solved without a driver.

Conda's solver sees a driver as the virtual package ``__cuda``. If a prefix was solved without it, on the login node of
a cluster or while an image was built, it gets builds for the CPU (conda, managing virtual packages:
CONDA_OVERRIDE_CUDA).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from envsolve.diagnose.environment.conda_meta import CondaPackage
from envsolve.diagnose.environment.scene import Scene
from envsolve.frameworks import FRAMEWORKS
from envsolve.model.cuda_packages import CUDA_PACKAGES
from envsolve.model.finding import Finding
from envsolve.model.versions import CudaVersion

_WITH_BUILDS = (
    *(name for framework in FRAMEWORKS.values() for name in framework.conda_builds),
    *("libmagma", "py-xgboost"),
)
"""Conda packages with builds for the CPU and for CUDA."""
_FOR_CPU = re.compile(r"(?:^|_)(?:cpu|mkl)(?:_|$)")


def toolkit_of_another_cuda(scene: Scene) -> Iterator[Finding]:
    """Frameworks built for another major version of CUDA than conda's toolkit in the same prefix."""
    toolkit = _toolkit(scene)
    if toolkit is None:
        return
    package, version = toolkit
    for build in scene.builds:
        if build.cuda_major is not None and build.cuda_major != version.major:
            yield scene.finding(
                "conda-cuda-differs",
                (package.label, f"{build.label}: CUDA {build.cuda}"),
                about=build,
                package=package.label,
                package_cuda=version,
                package_cuda_versions=f"{version.major}.*",
                installer="conda" if build.conda is not None else "pip",
            )


def solved_without_cuda(scene: Scene) -> Iterator[Finding]:
    """A prefix that was solved as if the machine had no driver."""
    if not scene.has_gpu or not scene.inventory.is_conda:
        return
    with_builds = [it for name in _WITH_BUILDS if (it := scene.conda.by_name.get(name)) is not None]
    for_cpu = [it for it in with_builds if _FOR_CPU.search(it.build)]
    if for_cpu and len(for_cpu) == len(with_builds) and not any(it.needs("__cuda") for it in scene.conda.packages):
        labels = tuple(it.label for it in for_cpu)
        yield scene.finding(
            "conda-without-cuda",
            labels,
            packages=labels,
            conda_names=" ".join(dict.fromkeys(package.name for package in for_cpu)),
            driver_cuda=scene.host.driver_cuda,
        )


def _toolkit(scene: Scene) -> tuple[CondaPackage, CudaVersion] | None:
    for name in CUDA_PACKAGES:
        package = scene.conda.by_name.get(name)
        if package is not None:
            try:
                return package, CudaVersion.parse(package.version if "." in package.version else f"{package.version}.0")
            except ValueError:
                continue
    return None
