"""What the compatibility matrix contains: framework builds, CUDA toolkits, driver branches, GPU generations, cuDNN."""

from enum import StrEnum
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.model.capability import CodeTarget, ComputeCapability, DeviceCode
from envsolve.model.fact import Evidence
from envsolve.model.host import Platform
from envsolve.model.versions import CudaVersion, DriverVersion, LibcVersion
from envsolve.model.words import day_of

PYTORCH_INDEX = "https://download.pytorch.org/whl/"
"""The address of ``Source.PYTORCH``, with a directory for each build."""


class Source(StrEnum):
    """Who packages a release."""

    CONDA_FORGE = "conda-forge"
    JAX_RELEASES = "jax-releases"
    PYPI = "pypi"
    PYTORCH = "pytorch"
    PYTORCH_CHANNEL = "pytorch-channel"

    @property
    def channel(self) -> str | None:
        """The name of the conda channel, or None if pip installs from it."""
        return _CHANNELS.get(self)

    @property
    def is_wheel(self) -> bool:
        """Whether pip installs it."""
        return self.channel is None


_CHANNELS = {Source.CONDA_FORGE: "conda-forge", Source.PYTORCH_CHANNEL: "pytorch"}


class CudaLibraries(StrEnum):
    """Where the CUDA libraries of a GPU build come from."""

    BUNDLED = "bundled"
    DEPENDENCIES = "dependencies"
    NONE = "none"


class Release(NamedTuple):
    """A framework version in one packaged form.

    ``cuda`` is None for a CPU build. The matrix README describes the fields.

    ``released`` is the day of its version, such as ``2026-10-07``, None if unknown. ``read_here`` is true if its row
    was read on this machine and not shipped.
    """

    framework: str
    version: Version
    source: Source
    platform: Platform
    build: str
    build_string: str
    package: str
    pythons: tuple[str, ...]
    glibc: LibcVersion | None
    cuda: CudaVersion | None
    cuda_requires: SpecifierSet | None
    cuda_libraries: CudaLibraries | None
    cudnn: Version | None
    cudnn_requires: SpecifierSet | None
    cudnn_package: str | None
    extras: tuple[str, ...]
    code: DeviceCode
    companions: tuple[tuple[str, str], ...]
    constraints: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    inferred: tuple[str, ...]
    note: str
    wheel: str = ""
    jit: tuple[tuple[CodeTarget, CudaVersion], ...] = ()
    released: str | None = None
    read_here: bool = False

    @property
    def brings_cudnn(self) -> bool:
        """Whether the package contains cuDNN, as in every build of the conda channel ``pytorch``."""
        return self.cuda_libraries is CudaLibraries.BUNDLED or self.source is Source.PYTORCH_CHANNEL

    @property
    def full_version(self) -> Version:
        """The version for pip. In PyTorch's index it includes the build, ``2.14.0+cu126``, with few exceptions."""
        named = self.source is Source.PYTORCH and not self.wheel
        return Version(f"{self.version}+{self.build}") if named else self.version

    @property
    def label(self) -> str:
        """Its name in a sentence: ``pytorch 2.14.1 (pytorch, cu126)``."""
        return f"{self.framework} {self.version} ({self.source}, {self.build})"

    def is_older_than(self, moment: str | None) -> bool:
        """Whether its version was released before the day of ``moment``, in RFC 3339; never if its day is unknown.

        Without a moment every build counts.
        """
        return moment is None or (self.released is not None and self.released < day_of(moment))

    def lies_in(self, specifier: SpecifierSet) -> bool:
        """Whether ``specifier`` admits it. ``==2.6.0+cu126``, with a local version, is a wheel of PyTorch's index."""
        if "+" not in str(specifier):
            return specifier.contains(self.version)
        return self.source is Source.PYTORCH and specifier.contains(self.full_version)

    @property
    def reference(self) -> str:
        """All its sources, most reliable first, because no single document has every fact of a row."""
        return "; ".join(item.reference for item in self.evidence)


class KnownBad(NamedTuple):
    """Builds that install and then fail. An empty selection means all."""

    versions: SpecifierSet
    sources: tuple[Source, ...]
    builds: tuple[str, ...]
    platforms: tuple[Platform, ...]
    capabilities: tuple[ComputeCapability, ...]
    reason: str
    evidence: tuple[Evidence, ...]

    def covers(self, release: Release) -> bool:
        """Whether ``release`` is one of these builds."""
        return (
            (not self.sources or release.source in self.sources)
            and (not self.builds or release.build in self.builds)
            and (not self.platforms or release.platform in self.platforms)
            and self.versions.contains(release.version, prereleases=True)
        )


class Disagreement(NamedTuple):
    """Two sources that disagree, which one the rows follow, and why.

    ``versions`` is None if it is about no framework.
    """

    about: str
    versions: SpecifierSet | None
    used: str
    rejected: str
    because: str
    evidence: tuple[Evidence, ...]


class PlatformLimit(NamedTuple):
    """Versions without any GPU build for a platform, the reason, and an alternative."""

    platform: Platform
    versions: SpecifierSet
    reason: str
    instead: str
    evidence: tuple[Evidence, ...]


class Toolkit(NamedTuple):
    """A CUDA toolkit, with its drivers per system: under minor-version compatibility (``floor``) and for full support.

    It compiles for the capabilities in ``compiles_for`` and, beyond plain code, for the ``feature_targets``, such as
    9.0a.
    """

    version: CudaVersion
    linux_floor: DriverVersion
    linux_full: DriverVersion | None
    windows_floor: DriverVersion
    windows_full: DriverVersion | None
    compiles_for: tuple[ComputeCapability, ...]
    feature_targets: tuple[CodeTarget, ...]
    evidence: tuple[Evidence, ...]

    def floor(self, *, windows: bool) -> DriverVersion:
        """Return the lowest driver that runs machine code of this toolkit.

        ``windows`` selects the numbers of Windows drivers.
        """
        return self.windows_floor if windows else self.linux_floor

    def full(self, *, windows: bool) -> DriverVersion | None:
        """Return the lowest driver that supports this toolkit in full, PTX included; None if NVIDIA does not say."""
        return self.windows_full if windows else self.linux_full


class Component(NamedTuple):
    """A package on the Python index that is part of a toolkit release: its name and the shipped version."""

    package: str
    version: Version


class ToolkitRelease(NamedTuple):
    """An exact release of a toolkit, such as 12.6.3: the driver that supports it in full, and its parts if recorded."""

    version: Version
    cuda: CudaVersion
    linux_full: DriverVersion | None
    windows_full: DriverVersion | None
    components: tuple[Component, ...]
    evidence: tuple[Evidence, ...]


class ComponentPatch(NamedTuple):
    """Later releases of one component that no toolkit release pins, and their toolkit."""

    package: str
    versions: tuple[Version, ...]
    cuda: CudaVersion
    evidence: tuple[Evidence, ...]


class ForwardCompatibility(NamedTuple):
    """The cuda-compat packages, which run a newer toolkit on an older driver, only on Linux and data-centre GPUs.

    ``branches`` are the driver branches that a package runs on, by its toolkit, oldest toolkit first. ``gpus`` are
    first words of names of GPUs.
    """

    gpus: frozenset[str]
    branches: tuple[tuple[CudaVersion, frozenset[int]], ...]
    evidence: tuple[Evidence, ...]

    def serves(self, gpu: str) -> bool:
        """Whether NVIDIA supports it on a GPU with that name."""
        return gpu.removeprefix("NVIDIA ").replace("-", " ").split(" ")[0] in self.gpus


class DriverBranch(NamedTuple):
    """A branch of the NVIDIA driver and the newest CUDA that it supports in full."""

    branch: int
    cuda: CudaVersion
    first_linux: DriverVersion | None
    first_windows: DriverVersion | None
    evidence: tuple[Evidence, ...]

    def first(self, *, windows: bool) -> DriverVersion:
        """Return its first release, or only the branch if that is unknown."""
        first = self.first_windows if windows else self.first_linux
        return first or DriverVersion((self.branch,), str(self.branch))


class Architecture(NamedTuple):
    """The support of a compute capability: its first and last toolkits and driver branches (None: not ended)."""

    capability: ComputeCapability
    name: str
    first_branch: int | None
    last_branch: int | None
    evidence: tuple[Evidence, ...]

    @property
    def is_jetson(self) -> bool:
        """Whether no driver branch for discrete GPUs ever listed it, so that only Jetson modules have it."""
        return self.first_branch is None and self.last_branch is None


class CudnnRelease(NamedTuple):
    """A cuDNN release for one CUDA major.

    ``oldest`` and ``newest`` are the range that NVIDIA states. ``code`` is the contents of its binaries, if they were
    read, ``code_aarch64`` those for Arm if they differ. ``cuda`` are the toolkits of that major that NVIDIA names.
    """

    version: Version
    cuda_major: int
    cuda: tuple[CudaVersion, ...]
    code: DeviceCode | None
    code_aarch64: DeviceCode | None
    oldest: ComputeCapability
    newest: ComputeCapability
    on_pypi: bool
    conda_platforms: tuple[Platform, ...]
    conda_glibc: LibcVersion | None
    evidence: tuple[Evidence, ...]

    def serves(self, gpu: ComputeCapability, platform: Platform) -> bool:
        """Whether its kernels run on ``gpu``. Those for Arm may have code for Jetson modules.

        The lower end and the newest family of NVIDIA's range are limits. A newer minor of a family runs the machine
        code of an older one. PTX, which some of its libraries contain, does not count for families that came later.
        """
        within = gpu.major <= self.newest.major
        code = self.code_aarch64 if self.code_aarch64 and platform is Platform.LINUX_AARCH64 else self.code
        if code is not None:
            return code.machine_code_for(gpu) is not None or (within and code.ptx_for(gpu) is not None)
        return self.oldest <= gpu and within

    def offered_by(self, source: Source, platform: Platform) -> bool:
        """Whether ``source`` ships it for ``platform``."""
        return self.on_pypi if source.is_wheel else platform in self.conda_platforms
