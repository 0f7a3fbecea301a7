"""The frameworks of an environment as builds: versions, the CUDA and cuDNN they were built with, matrix rows.

What a package needs whose build the matrix does not know is read from its libraries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import NamedTuple

from packaging.version import Version

from envsolve.binary.package_facts import facts_in
from envsolve.boundary.files import open_regular
from envsolve.diagnose.environment.conda_meta import CondaMeta, CondaPackage
from envsolve.frameworks import FRAMEWORKS
from envsolve.matrix import Matrix
from envsolve.model.build_facts import BuildFacts
from envsolve.model.fact import Evidence, EvidenceKind
from envsolve.model.host import Platform
from envsolve.model.release import Release, Source
from envsolve.model.versions import CudaVersion, parsed_version
from envsolve.resolve.closure.unknown_builds import is_about_cuda
from envsolve.validation.installed import Files, Installed
from envsolve.validation.metadata import Package, Packages

_BUDGET = 2_000_000_000
"""Limit in bytes for the libraries of one package: a few seconds."""
_CHUNK = 1 << 20


class Build(NamedTuple):
    """An installed framework as a build.

    ``cuda`` is as the framework reports it, ``12.8`` or ``12``; None for a CPU build or unknown. ``releases`` are the
    matching rows of the matrix; empty for a build that the matrix does not know.
    """

    framework: Installed
    version: str | None
    package: Package | None
    conda: CondaPackage | None
    cuda: str | None
    releases: tuple[Release, ...]

    @property
    def name(self) -> str:
        """The framework's name in envsolve."""
        return self.framework.name

    @property
    def title(self) -> str:
        """The framework's official name."""
        return self.framework.title

    @property
    def label(self) -> str:
        """Its name in sentences: ``PyTorch 2.8.0+cu128``."""
        return f"{self.title} {self.version}" if self.version else self.title

    @property
    def facts(self) -> Mapping[str, object]:
        """The facts of findings about it."""
        return {**self.framework.facts, "version": self.version, "built_cuda": self.cuda}

    @property
    def references(self) -> tuple[str, ...]:
        """The sources of its row in the matrix."""
        return tuple(release.reference for release in self.releases)[:1]

    @property
    def cuda_version(self) -> CudaVersion | None:
        """The CUDA it was built with, including the minor version; None if that is unknown."""
        if self.cuda is not None and "." in self.cuda:
            with suppress(ValueError):  # a file may contain nonsense
                return CudaVersion.parse(self.cuda)
        found = {release.cuda for release in self.releases}
        return found.pop() if len(found) == 1 else None

    @property
    def cuda_major(self) -> int | None:
        """The major of the CUDA it was built with."""
        return None if self.cuda is None else int(self.cuda.partition(".")[0])

    @property
    def cudnn(self) -> Version | None:
        """The cuDNN it was built with, if the matrix knows it."""
        found = {release.cudnn for release in self.releases}
        return found.pop() if len(found) == 1 else None


def builds_of(
    files: Files, packages: Packages, conda: CondaMeta, matrix: Matrix, platform: Platform
) -> tuple[Build, ...]:
    """Every installed framework as a build."""
    return tuple(_build(framework, packages, conda, matrix, platform) for framework in files.frameworks)


def _build(framework: Installed, packages: Packages, conda: CondaMeta, matrix: Matrix, platform: Platform) -> Build:
    name = framework.name
    package = next(_packages(framework, packages), None)
    record = _conda_package(framework, package, conda)
    version = framework.built_version or (package.version if package else record.version if record else None)
    build = Build(framework, version, package, record, framework.built_cuda, ())
    listed = matrix.framework(name, platform).releases if platform.has_cuda else ()
    return build._replace(releases=tuple(release for release in listed if _may_be(release, build)))


def _packages(framework: Installed, packages: Packages) -> Iterator[Package]:
    """The distributions of the framework, first the one that claims its module."""
    known = FRAMEWORKS[framework.name]
    named = [it for it in packages.by_name.values() if known.is_installed_as(it.name)]
    init = f"{framework.libraries.package}/__init__.py"
    yield from (it for it in named if any(row.path == init for row in packages.record(it) or ()))
    yield from named


def _conda_package(framework: Installed, package: Package | None, conda: CondaMeta) -> CondaPackage | None:
    """The conda package it came with; None if pip has overwritten it."""
    if package is not None and package.is_wheel and package.installer is not None and not package.is_of_conda:
        return None
    names = framework.framework.conda_builds
    return next((conda.by_name[name] for name in names if name in conda.by_name), None)


def _may_be(release: Release, build: Build) -> bool:
    """Whether the matrix's ``release`` can be this build, judging by version, packager and build."""
    version = parsed_version(build.version)
    if version is None or release.version != Version(version.public):
        return False
    if build.conda is not None:
        return not release.source.is_wheel and fnmatchcase(build.conda.build, release.build_string)
    if not release.source.is_wheel or (release.cuda is None) != (build.cuda is None):
        return False
    return _is_its_wheel(release, build, parsed_version(build.package.version) if build.package else version)


def _is_its_wheel(release: Release, build: Build, version: Version | None) -> bool:
    """Whether it is the wheel of that row: in PyTorch's index the local version decides, 2.8.0+cu126."""
    known = FRAMEWORKS[build.name]
    if build.package is not None and build.package.name != release.package and known.is_installed_as(release.package):
        return False
    local = version.local if version is not None else None
    if local is not None:
        return release.source is Source.PYTORCH and release.build == local
    if release.source is not Source.PYPI:
        return False
    return build.cuda is None or (release.cuda is not None and release.cuda.major == build.cuda_major)


def facts_of_installed(package: Package, packages: Packages, platform: Platform, matrix: Matrix) -> BuildFacts | None:
    """What ``package`` needs beyond its metadata, from the bytes of its libraries.

    None if it does not use CUDA, if that is unknown, and if a file cannot be read.
    """
    requires = {need.name for need in package.needs if "extra" not in need.marker}
    if not is_about_cuda(package.name, requires):
        return None
    sizes = {row.path: row.size or 0 for row in packages.record(package) or ()}

    def chunks(name: str) -> Iterator[bytes]:
        with open_regular(package.location / name) as file:
            while chunk := file.read(_CHUNK):
                yield chunk

    try:
        found = facts_in(sizes, chunks, _BUDGET)
    except (OSError, ValueError):  # missing and damaged files have findings of their own
        return None
    evidence = Evidence(EvidenceKind.WHEEL, f"the libraries of {package.label} in {package.location}", "")
    torch = matrix.torch_for(found.torch, platform)
    return found.build_facts(package.name, package.version, requires, evidence, torch)
