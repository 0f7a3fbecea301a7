"""What the compatibility matrix knows for a diagnosis. Every answer is a row's, or None."""

from __future__ import annotations

import re
from functools import cached_property

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.errors import UsageError
from envsolve.matrix import Matrix
from envsolve.matrix.library_names import LibraryNames
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.release import Release
from envsolve.model.versions import CudaVersion, DriverVersion, parsed_version

_SERIES = re.compile(r"((?:[RG]TX[ -]?)?[51]0)[ -]?(?:series|x0|xx|系列?)?", re.IGNORECASE)
"""A series of GeForce GPUs, each of which has a product whose name ends in 60."""


class Knowledge:
    """A matrix that answers single questions; each table is read when it is first needed."""

    def __init__(self, matrix: Matrix) -> None:
        self.matrix = matrix

    @cached_property
    def libraries(self) -> LibraryNames:
        """The file names of CUDA libraries."""
        return LibraryNames(self.matrix.document("libraries"))

    def cuda_range(self, file_name: str) -> tuple[CudaVersion, CudaVersion] | None:
        """The first and the last toolkit in which a library has this name: 11.0 and 11.8 of libcudart.so.11.0."""
        found = [CudaVersion.parse(_minor(it.cuda)) for it in self.libraries.of_file(file_name) if it.cuda is not None]
        return (min(found), max(found)) if found else None

    # drivers

    def cuda_of(self, driver: DriverVersion) -> CudaVersion | None:
        """The newest CUDA that a driver supports in full, by its branch."""
        branch = self.matrix.cuda.branch_of(driver)
        return None if branch is None else branch.cuda

    def full_driver(self, cuda: CudaVersion, *, windows: bool = False) -> DriverVersion | None:
        """The oldest driver that supports ``cuda`` in full, PTX included."""
        return self.matrix.cuda.driver_for(cuda, windows=windows)

    def driver_floor(self, cuda: CudaVersion, *, windows: bool = False) -> DriverVersion | None:
        """The oldest driver that runs machine code built with ``cuda``: minor-version compatibility."""
        toolkits = [it for it in self.matrix.cuda.toolkits if it.version <= cuda and it.version.major == cuda.major]
        return toolkits[0].floor(windows=windows) if toolkits else None

    def last_branch(self, capability: ComputeCapability) -> int | None:
        """The last driver branch for GPUs of ``capability``; None if there is none yet, or nothing is known."""
        life = self.matrix.cuda.life_of(capability)
        return None if life is None else life.last_branch

    # GPUs

    def capability_of(self, gpu: str) -> ComputeCapability | None:
        """The compute capability of a product or of a series (RTX 50), where its name stands for only one."""
        series = _SERIES.fullmatch(gpu)
        try:
            return self.matrix.gpus.find(f"{series[1]}60" if series else gpu).capabilities[0]
        except UsageError:
            return None

    def architecture(self, capability: ComputeCapability) -> str | None:
        """The name of a generation, ``Pascal``."""
        life = self.matrix.cuda.life_of(capability)
        return None if life is None else life.name

    def cuda_for(self, capability: ComputeCapability) -> tuple[CudaVersion, CudaVersion | None] | None:
        """The first and the last toolkit that compiles for ``capability``; the last is None if it goes on."""
        toolkits = self.matrix.cuda.toolkits
        having = [it.version for it in toolkits if capability in it.compiles_for]
        if not having:
            return None
        return min(having), None if max(having) == toolkits[0].version else max(having)

    # builds

    def releases(self, framework: str, version: str, platform: Platform | None = None) -> tuple[Release, ...]:
        """The builds of ``framework`` that are ``version``; a local part (``+cu118``, ``+cpu``) selects among them.

        A version of fewer parts stands for all that begin with it. Without a platform those for Linux count.
        """
        public, _, local = version.partition("+")
        wanted = parsed_version(public)
        if wanted is None or framework not in self.matrix.framework_names:
            return ()
        table = self.matrix.framework(framework, platform or Platform.LINUX_64)
        found = [it for it in table.releases if it.version.release[: len(wanted.release)] == wanted.release]
        return tuple(it for it in found if not local or it.build == local)

    def all_releases(self, framework: str, platform: Platform | None = None) -> tuple[Release, ...]:
        """Every build of ``framework`` for a platform, or for Linux."""
        if framework not in self.matrix.framework_names:
            return ()
        return self.matrix.framework(framework, platform or Platform.LINUX_64).releases

    def companions_of(self, framework: str, version: Version | None, platform: Platform | None) -> dict[str, str]:
        """The versions of the packages that belong to a release of ``framework``, by their names."""
        releases = () if version is None else self.releases(framework, version.public, platform)
        companions = next((it.companions for it in releases if it.companions), ())
        return {name: text.removeprefix("==") for name, text in companions}

    def versions_beside(
        self, framework: str, companion: str, version: Version, platform: Platform | None
    ) -> list[Version]:
        """The releases of ``framework`` that a version of a companion belongs to, in order."""
        found = {
            release.version
            for release in self.all_releases(framework, platform)
            for name, specifier in release.companions
            if name == companion and SpecifierSet(specifier).contains(version.public)
        }
        return sorted(found)

    def pythons(self, framework: str, version: str, platform: Platform | None = None) -> tuple[str, ...]:
        """The Python versions that some build of ``version`` is for, in order."""
        found = {python for it in self.releases(framework, version, platform) for python in it.pythons}
        return tuple(sorted(found, key=Version))


def _minor(cuda: str) -> str:
    return cuda if "." in cuda else f"{cuda}.0"
