"""The matrix as the solver needs it: values that do not depend on a problem are computed once and reused.

Everything is computed on first use. A request looks at a few dozen of a framework's hundreds of builds, and comparing
versions with specifiers is most of the cost of a solve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.matrix.tables import CudaTable, FrameworkTable
from envsolve.model.capability import CodeTarget, ComputeCapability, DeviceCode
from envsolve.model.host import Platform
from envsolve.model.release import CudaLibraries, CudnnRelease, KnownBad, Release, Source, Toolkit
from envsolve.model.request import Request
from envsolve.model.versions import CudaVersion, LibcVersion
from envsolve.model.words import day_of
from envsolve.resolve.parts import CudnnIn, FrameworkIn, PythonAmong, ToolkitIn

_Code = tuple[CodeTarget | None, CodeTarget | None]


class Libraries:
    """Toolkits and cuDNN releases: which of them a limit admits, and which GPUs device code runs on."""

    def __init__(self, cuda: CudaTable, cudnn: Sequence[CudnnRelease]) -> None:
        self.cuda = cuda
        self.cudnn = tuple(cudnn)
        self._by_version = {toolkit.version: toolkit for toolkit in cuda.toolkits}
        self._compiled = {it.version: DeviceCode(tuple(map(CodeTarget, it.compiles_for))) for it in cuda.toolkits}
        self._toolkit_limits: dict[tuple[int, CudaVersion | None], ToolkitIn] = {}
        self._exact: dict[CudaVersion, SpecifierSet] = {}
        self._majors: dict[int, SpecifierSet] = {}
        self._cudnn_limits: dict[tuple[object, ...], CudnnIn] = {}
        self._code: dict[tuple[int, ComputeCapability], tuple[DeviceCode, _Code]] = {}
        self._served: dict[tuple[int, ComputeCapability, bool], bool] = {}

    def toolkit(self, version: CudaVersion) -> Toolkit | None:
        """The toolkit of that version, or None."""
        return self._by_version.get(version)

    def toolkit_limit(self, specifier: SpecifierSet, built: CudaVersion | None) -> ToolkitIn:
        """The limit to toolkits in ``specifier``. Builds with the same limit share one object."""
        key = (id(specifier), built)
        known = self._toolkit_limits.get(key)
        if known is None:
            admitted = frozenset(version for version in self._by_version if specifier.contains(str(version)))
            known = self._toolkit_limits[key] = ToolkitIn(specifier, built, admitted)
        return known

    def only(self, toolkit: Toolkit) -> ToolkitIn:
        """The limit that admits only ``toolkit``."""
        return self.toolkit_limit(self._exactly(toolkit.version), None)

    def of_major(self, major: int) -> ToolkitIn:
        """The limit that admits the toolkits of one CUDA major."""
        if major not in self._majors:
            self._majors[major] = SpecifierSet(f"=={major}.*")
        return self.toolkit_limit(self._majors[major], None)

    def _exactly(self, version: CudaVersion) -> SpecifierSet:
        if version not in self._exact:
            self._exact[version] = SpecifierSet(f"=={version}")
        return self._exact[version]

    def cudnn_limit(
        self,
        specifier: SpecifierSet,
        cuda_major: int,
        source: Source | None,
        platform: Platform,
        glibc: LibcVersion | None,
    ) -> CudnnIn:
        """The limit to cuDNN releases in ``specifier``. Builds with the same limit share one object.

        ``glibc`` matters only for packages of conda-forge.
        """
        glibc = glibc if source is Source.CONDA_FORGE else None
        key = (id(specifier), cuda_major, source, platform, glibc)
        known = self._cudnn_limits.get(key)
        if known is None:
            admitted = frozenset(
                id(release)
                for release in self.cudnn
                if release.cuda_major == cuda_major
                and (source is None or release.offered_by(source, platform))
                and (glibc is None or release.conda_glibc is None or release.conda_glibc <= glibc)
                and specifier.contains(release.version)
            )
            known = self._cudnn_limits[key] = CudnnIn(specifier, cuda_major, source, platform, glibc, admitted)
        return known

    def code_for(self, code: DeviceCode, gpu: ComputeCapability) -> _Code:
        """The machine code that runs on ``gpu``, and the PTX that a driver can compile for it."""
        key = (id(code), gpu)
        known = self._code.get(key)
        if known is None:  # storing the code keeps its id() from being reused
            known = self._code[key] = (code, (code.machine_code_for(gpu), code.ptx_for(gpu)))
        return known[1]

    def compiles_for(self, toolkit: Toolkit, gpu: ComputeCapability) -> bool:
        """Whether the libraries of the toolkit contain machine code for ``gpu``."""
        return self.code_for(self._compiled[toolkit.version], gpu)[0] is not None

    def cudnn_serves(self, release: CudnnRelease, gpu: ComputeCapability, platform: Platform) -> bool:
        """Whether a cuDNN release contains code for ``gpu``."""
        key = (id(release), gpu, platform is Platform.LINUX_AARCH64)
        known = self._served.get(key)
        if known is None:
            known = self._served[key] = release.serves(gpu, platform)
        return known


class Builds:
    """The builds of a framework for one platform, newest version first."""

    def __init__(self, table: FrameworkTable) -> None:
        self.table = table
        newest_first = sorted(table.releases, key=attrgetter("version"), reverse=True)
        self.by_version = [(version, tuple(same)) for version, same in groupby(newest_first, attrgetter("version"))]
        minors = {python for release in table.releases for python in release.pythons}
        self.pythons = {minor: Version(minor) for minor in minors}
        self._known_bad: dict[int, tuple[KnownBad, ...]] = {}
        self._pythons_limits: dict[tuple[str, ...], PythonAmong] = {}

    def known_against(self, release: Release) -> tuple[KnownBad, ...]:
        """The known failures of ``release``, for any GPU."""
        known = self._known_bad.get(id(release))
        if known is None:
            known = tuple(entry for entry in self.table.known_bad if entry.covers(release))
            self._known_bad[id(release)] = known
        return known

    def python_limit(self, release: Release) -> PythonAmong:
        """The limit to the Pythons of ``release``. Builds with the same limit share one object."""
        return self._pythons_limits.setdefault(release.pythons, PythonAmong(release.pythons))

    def named_by(self, limit: FrameworkIn, version: Version, releases: Sequence[Release]) -> Sequence[Release]:
        """The requested builds among those of one version. A local version may name a single build."""
        if "+" in str(limit.specifier):
            return [release for release in releases if limit.admits(release)]
        return releases if limit.specifier.contains(version) else ()


class Catalogue(NamedTuple):
    """The parts of the matrix that one problem needs."""

    libraries: Libraries
    builds: Mapping[str, Builds]

    def day_of(self, request: Request) -> str:
        """The day that an answer to ``request`` refers to.

        It is the date of the newest table, or ``exclude_newer`` of the request if that is earlier.
        """
        updated = max([self.libraries.cuda.updated, *(it.table.updated for it in self.builds.values())])
        moment = request.packages.exclude_newer
        return updated if moment is None else min(updated, day_of(moment))

    @classmethod
    def of(cls, cuda: CudaTable, cudnn: Sequence[CudnnRelease], frameworks: Mapping[str, FrameworkTable]) -> Catalogue:
        """Create a catalogue from tables that contain the builds of one platform."""
        return cls(Libraries(cuda, cudnn), {name: Builds(table) for name, table in frameworks.items()})


def cudnn_provider(release: Release) -> Source | None:
    """Who installs the cuDNN of ``release``, or None if the package contains it.

    A wheel without CUDA libraries uses the cuDNN of conda-forge, the only source with packages for toolkits older than
    11.8.
    """
    if release.brings_cudnn:
        return None
    if release.cuda_libraries is CudaLibraries.NONE:
        return Source.CONDA_FORGE
    return release.source
