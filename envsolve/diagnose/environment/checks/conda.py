"""Conda prefixes: the same library from conda and from pip, packages that pip has replaced, and the prefix's CUDA.

* A process loads whichever copy it finds first, and one framework runs with the other's cuDNN or NCCL
(pytorch/pytorch#186591, tensorflow/hub#884).
* Conda's solver sees a driver as the virtual package ``__cuda``. If a prefix was solved without it, on the login node
of a cluster or while an image was built, it gets builds for the CPU (conda, managing virtual packages:
CONDA_OVERRIDE_CUDA).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from envsolve.boundary.display import listed
from envsolve.boundary.reading import is_file, real, shown
from envsolve.diagnose.environment.conda_meta import CondaPackage
from envsolve.diagnose.environment.families import is_of_gpu_stacks
from envsolve.diagnose.environment.scene import Scene
from envsolve.frameworks import FRAMEWORKS
from envsolve.model.cuda_packages import CUDA_PACKAGES
from envsolve.model.finding import Finding, Severity
from envsolve.model.names import normalized
from envsolve.model.versions import CudaVersion
from envsolve.validation.inside.library_versions import component_of
from envsolve.validation.installed import is_of_driver
from envsolve.validation.metadata import Package

_WITH_BUILDS = (
    *(name for framework in FRAMEWORKS.values() for name in framework.conda_builds),
    *("libmagma", "py-xgboost"),
)
"""Conda packages with builds for the CPU and for CUDA."""
_FOR_CPU = re.compile(r"(?:^|_)(?:cpu|mkl)(?:_|$)")


def libraries_of_both(scene: Scene) -> Iterator[Finding]:
    """CUDA libraries that are both in the prefix, from conda, and in packages that pip installed."""
    if not scene.inventory.is_conda:
        return
    copies: dict[str, dict[str, Path]] = defaultdict(dict)
    for file in scene.files.libraries:
        owner = scene.owners.of(file)
        if owner is not None and not is_of_driver(file.name) and is_file(file):
            copies[file.name].setdefault(owner.by, file)
    twice = {name: by for name, by in copies.items() if len(by) > 1 and real(by["conda"]) != real(by["pip"])}
    components: dict[str, dict[str, dict[str, Path]]] = defaultdict(dict)
    for name, by in twice.items():
        components[(component_of(name) or name).partition("_")[0]][name] = by
    for component, names in components.items():
        by = next(iter(names.values()))
        versions = {owner: str(scene.owners.version_of(path) or "") for owner, path in by.items()}
        differ = len(set(versions.values())) > 1 or "" in versions.values()
        found = (it for loading in scene.loads.with_path for it in loading.found())
        frameworks = " ".join(dict.fromkeys(f"-f {it.name}" for it in scene.builds))
        solve = f"envsolve {frameworks} --gpu auto --source conda-forge > environment.yml"
        yield scene.finding(
            "library-of-conda-and-pip",
            (str(path) for paths in names.values() for path in paths.values()),
            about=component,
            severity=None if differ else Severity.INFO,
            component=component,
            places=tuple(f"{path} ({', '.join(filter(None, (versions[it], it)))})" for it, path in by.items()),
            loaded=next((shown(path) for name, path in found if name in names), None),
            solve=solve if frameworks else None,
        )


def overwritten_packages(scene: Scene) -> Iterator[Finding]:
    """Python packages of conda's that pip has replaced."""
    if not scene.inventory.is_conda:
        return
    replaced = []
    for folder, record in scene.conda.distributions.items():
        directory = scene.inventory.prefix / folder
        name = normalized(directory.name.partition("-")[0])
        package = scene.packages.by_name.get(name)
        if package is not None and package.location == directory.parent and _is_of_pip(package, directory):
            replaced.append((record, package))
    matter = [it for it in replaced if is_of_gpu_stacks(it[1].name)]
    others = [it for it in replaced if it not in matter]
    for pairs, severity in ((matter, Severity.WARNING), (others, Severity.INFO)):
        if pairs:
            record, package = pairs[0]
            yield scene.finding(
                "package-of-conda-replaced",
                (f"{record.label} of conda, {package.label} in {package.folder}" for record, package in pairs),
                about=package.name,
                severity=severity,
                packages=listed(package.name for _, package in pairs),
                package=package.label,
                other=record.label,
                conda_names=" ".join(dict.fromkeys(record.name for record, _ in pairs)),
            )


def _is_of_pip(package: Package, of_conda: Path) -> bool:
    """Whether the current metadata is not from conda."""
    if package.folder != of_conda:
        return package.is_wheel and not package.is_of_conda
    return package.installer in ("pip", "uv")


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
