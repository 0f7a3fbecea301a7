"""The vocabulary of the solver: every part of a stack is a candidate, every rule is a requirement.

Identifiers:

    framework pytorch   a build of a framework, from the matrix
    cuda                the CUDA toolkit of the environment, one for all frameworks
    cudnn               the cuDNN of the environment, one for all frameworks
    python              a CPython minor
    owner               the installer whose packages bring CUDA, one for all frameworks
    driver 0            the NVIDIA driver of machine 0
    gpu 0 8.6           one kind of GPU of machine 0
    glibc 0             the C library of machine 0

Each fact about a machine has one candidate. So a rule about it either holds, or is a conflict with its reason attached.
A requirement computes its reason only when it is read: a solve makes thousands of requirements, and an answer shows
few.
"""

from collections.abc import Callable
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.model.capability import ComputeCapability
from envsolve.model.fact import Fact
from envsolve.model.host import Platform
from envsolve.model.release import CudnnRelease, Release, Source, Toolkit
from envsolve.model.solution import Owner
from envsolve.model.versions import CudaVersion, DriverVersion, LibcVersion

CUDA = "cuda"
CUDNN = "cudnn"
PYTHON = "python"
OWNER = "owner"


def framework_identifier(framework: str) -> str:
    """Return the identifier of a framework's builds."""
    return f"framework {framework}"


def driver_identifier(machine: int) -> str:
    """Return the identifier of a machine's driver."""
    return f"driver {machine}"


def gpu_identifier(machine: int, gpu: ComputeCapability) -> str:
    """Return the identifier of one kind of GPU in a machine."""
    return f"gpu {machine} {gpu}"


def glibc_identifier(machine: int) -> str:
    """Return the identifier of a machine's C library."""
    return f"glibc {machine}"


Thing = Release | Toolkit | CudnnRelease | Owner | Version | DriverVersion | LibcVersion | ComputeCapability | None


class Candidate(NamedTuple):
    """A possible choice for an identifier. None stands for an unknown fact, which meets every limit."""

    identifier: str
    thing: Thing


class Anything(NamedTuple):
    """No limit: the identifier only has to be part of the stack."""

    def admits(self, thing: Thing) -> bool:
        """Whether ``thing`` lies within this limit."""
        return True


class FrameworkIn(NamedTuple):
    """A framework version in the requested range."""

    specifier: SpecifierSet

    def admits(self, thing: Thing) -> bool:
        """Whether ``thing``, a Release, lies within this limit."""
        assert isinstance(thing, Release)
        return thing.lies_in(self.specifier)


class PythonIn(NamedTuple):
    """A Python minor that has a patch release in the range."""

    specifier: SpecifierSet

    def admits(self, thing: Thing) -> bool:
        """Whether ``thing``, a Python minor, lies within this limit."""
        assert isinstance(thing, Version)
        return minor_lies_in(thing, self.specifier)


class PythonAmong(NamedTuple):
    """One of the Python minors that a build supports."""

    pythons: tuple[str, ...]

    def admits(self, thing: Thing) -> bool:
        """Whether ``thing``, a Python minor, lies within this limit."""
        return str(thing) in self.pythons


class ToolkitIn(NamedTuple):
    """A CUDA toolkit in the range that a build runs with. ``built`` is the one it was compiled with."""

    specifier: SpecifierSet
    built: CudaVersion | None
    admitted: frozenset[CudaVersion]

    def admits(self, thing: Thing) -> bool:
        """Whether ``thing``, a Toolkit, lies within this limit."""
        assert isinstance(thing, Toolkit)
        return thing.version in self.admitted


class CudnnIn(NamedTuple):
    """A cuDNN release in the range, for the right CUDA major, from the source that installs it (None: it is bundled).

    A cuDNN from conda-forge must also run with the oldest C library of the machines (``glibc``, None if unknown).
    ``admitted`` contains the identities of the releases that meet all this.
    """

    specifier: SpecifierSet
    cuda_major: int
    source: Source | None
    platform: Platform
    glibc: LibcVersion | None
    admitted: frozenset[int]

    def admits(self, thing: Thing) -> bool:
        """Whether ``thing``, a CudnnRelease, lies within this limit."""
        return id(thing) in self.admitted


class OwnedBy(NamedTuple):
    """CUDA installed by ``owner``."""

    owner: Owner

    def admits(self, thing: Thing) -> bool:
        """Whether ``thing``, an Owner, is this owner."""
        return thing is self.owner


class DriverFloor(NamedTuple):
    """A driver of version ``floor`` or newer."""

    floor: DriverVersion

    def admits(self, thing: Thing) -> bool:
        """Whether ``thing``, a driver or None, lies within this limit."""
        return not isinstance(thing, DriverVersion) or thing.meets(self.floor)


class DriverCeiling(NamedTuple):
    """A driver older than ``below``, the first version of the branch after the GPU's last one."""

    below: int

    def admits(self, thing: Thing) -> bool:
        """Whether ``thing``, a driver or None, lies within this limit."""
        return not isinstance(thing, DriverVersion) or thing.parts[0] < self.below


class Served(NamedTuple):
    """The GPU of the identifier is supported. ``verdict`` was computed when the requirement was made."""

    verdict: bool

    def admits(self, thing: Thing) -> bool:
        """Whether the GPU is supported."""
        return self.verdict


class GlibcFloor(NamedTuple):
    """A C library of version ``floor`` or newer."""

    floor: LibcVersion

    def admits(self, thing: Thing) -> bool:
        """Whether ``thing``, a C library or None, lies within this limit."""
        return not isinstance(thing, LibcVersion) or thing >= self.floor


Limit = (
    Anything
    | FrameworkIn
    | PythonIn
    | PythonAmong
    | ToolkitIn
    | CudnnIn
    | OwnedBy
    | DriverFloor
    | DriverCeiling
    | Served
    | GlibcFloor
)


class Requirement(NamedTuple):
    """A limit on ``identifier``, and the fact that it is based on."""

    identifier: str
    limit: Limit
    reason: Callable[[], Fact]

    @property
    def because(self) -> Fact:
        """The fact that the requirement is based on."""
        return self.reason()

    def admits(self, candidate: Candidate) -> bool:
        """Whether ``candidate`` meets this requirement."""
        return self.limit.admits(candidate.thing)


def minor_lies_in(minor: Version, specifier: SpecifierSet) -> bool:
    """Whether some patch release of a Python minor lies in ``specifier``.

    A range changes only at the patch releases that it names. So these, their neighbours and the two ends are enough to
    test.
    """
    named = {Version(clause.version.removesuffix(".*")).micro for clause in specifier}
    patches = {0, 99} | named | {patch + 1 for patch in named} | {max(patch - 1, 0) for patch in named}
    return any(specifier.contains(f"{minor}.{patch}") for patch in patches)
