"""The CUDA of a conda prefix against its frameworks: toolkits of another major, builds for want of a driver.

Conda's solver sees a driver as the virtual package ``__cuda``. Where it was solved without one, on the login node of a
cluster or while an image was built, it takes builds for the CPU (conda, managing virtual packages:
CONDA_OVERRIDE_CUDA).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from envsolve.diagnose.environment.builds import Build
from envsolve.diagnose.environment.conda_meta import CondaPackage
from envsolve.diagnose.environment.remedies import quoted
from envsolve.diagnose.environment.scene import Scene
from envsolve.frameworks import FRAMEWORKS
from envsolve.model.cuda_packages import CUDA_PACKAGES
from envsolve.model.finding import Finding, Severity
from envsolve.model.versions import CudaVersion

_WITH_BUILDS = (
    *(name for framework in FRAMEWORKS.values() for name in framework.conda_builds),
    *("libmagma", "py-xgboost"),
)
"""Conda packages that have builds for the CPU and for CUDA."""
_FOR_CPU = re.compile(r"(?:^|_)(?:cpu|mkl)(?:_|$)")


def toolkit_of_another_cuda(scene: Scene) -> Iterator[Finding]:
    """Frameworks that were built for another major of CUDA than conda's toolkit in the same prefix."""
    toolkit = _toolkit(scene)
    if toolkit is None:
        return
    package, version = toolkit
    for build in scene.builds:
        if build.cuda_major is not None and build.cuda_major != version.major:
            yield _differs(build, package, version)


def solved_without_cuda(scene: Scene) -> Iterator[Finding]:
    """A prefix that was solved as if the machine had no driver."""
    if not scene.has_gpu or not scene.inventory.is_conda:
        return
    with_builds = [it for name in _WITH_BUILDS if (it := scene.conda.by_name.get(name)) is not None]
    for_cpu = [it for it in with_builds if _FOR_CPU.search(it.build)]
    if for_cpu and len(for_cpu) == len(with_builds) and not any(it.needs("__cuda") for it in scene.conda.packages):
        yield _without(for_cpu, scene)


def _toolkit(scene: Scene) -> tuple[CondaPackage, CudaVersion] | None:
    for name in CUDA_PACKAGES:
        package = scene.conda.by_name.get(name)
        if package is not None:
            try:
                return package, CudaVersion.parse(package.version if "." in package.version else f"{package.version}.0")
            except ValueError:
                continue
    return None


def _differs(build: Build, package: CondaPackage, version: CudaVersion) -> Finding:
    by = "conda" if build.conda is not None else "pip"
    return Finding(
        "conda-cuda-differs",
        f"conda's CUDA is {version}, and {build.title} is built for CUDA {build.cuda}",
        Severity.WARNING,
        f"{package.label} has conda install CUDA {version.major} into this prefix; {build.label}, installed by {by}, "
        f"is built for CUDA {build.cuda}. {build.title} does not run on conda's libraries, and extensions that are "
        "compiled here are compiled for the wrong CUDA",
        f"install {build.title} from conda, which takes the build for its CUDA, or remove conda's CUDA packages",
        (f"envsolve -f {build.name} --cuda '{version.major}.*' --gpu auto --source conda-forge > environment.yml",),
        (package.label, f"{build.label}: CUDA {build.cuda}"),
        about=build.name,
    )


def _without(packages: list[CondaPackage], scene: Scene) -> Finding:
    cuda = scene.host.driver_cuda
    told = f"CONDA_OVERRIDE_CUDA={cuda} " if cuda is not None else ""
    names = " ".join(dict.fromkeys(package.name for package in packages))
    return Finding(
        "conda-without-cuda",
        "conda has taken builds for the CPU",
        Severity.WARNING,
        "every package of this prefix that has builds for CUDA is one for the CPU: "
        f"{', '.join(it.label for it in packages)}. So conda chooses where it sees no driver (the virtual package "
        "__cuda): it was solved on a machine without GPU, or before the driver was installed",
        "solve it again where the driver is seen, or tell conda which CUDA the driver supports",
        (f"{told}conda install -p {quoted(scene.inventory.prefix)} {names}", "conda info"),
        tuple(it.label for it in packages),
    )
