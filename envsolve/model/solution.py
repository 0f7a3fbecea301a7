"""The result of a solve: a stack that runs on every target with the facts behind it, or why there is none."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.model.capability import ComputeCapability
from envsolve.model.fact import Fact
from envsolve.model.host import Platform
from envsolve.model.note import Note
from envsolve.model.release import CudnnRelease, Release, Toolkit
from envsolve.model.request import FrameworkRequest, Request, versions_text
from envsolve.model.versions import DriverVersion, LibcVersion


class Owner(StrEnum):
    """The installer whose packages contain the CUDA libraries of an environment. Two would each install their own."""

    CONDA = "conda"
    PIP = "pip"


class Machine(NamedTuple):
    """What a stack has to run on: one driver with its GPUs. None and empty mean unknown, which excludes nothing.

    ``windows_driver`` is true if the driver has a Windows version number: on Windows, and inside WSL2. ``hosts`` are
    the host files that it represents, because equivalent machines are merged. ``assumed_glibc`` is true if the C
    library was not given.
    """

    driver: DriverVersion | None
    gpus: tuple[tuple[ComputeCapability, str], ...]
    glibc: LibcVersion | None
    driver_origin: str = ""
    windows_driver: bool = False
    hosts: tuple[str, ...] = ()
    assumed_glibc: bool = False

    @property
    def name(self) -> str:
        """Its name in a sentence: ``this machine``, ``a.json``, ``a.json (and 3 more hosts like it)``."""
        if not self.hosts:
            return "this machine"
        more = len(self.hosts) - 1
        return self.hosts[0] + (f" (and {more} more host{'s' if more > 1 else ''} like it)" if more else "")

    def gpu_name(self, capability: ComputeCapability) -> str:
        """Return the product name, or "" if it is unknown."""
        return next((name for known, name in self.gpus if known == capability), "")

    def gpu_label(self, capability: ComputeCapability) -> str:
        """Return a GPU's name in a sentence: ``Tesla K80 (3.7)``, or ``compute capability 3.7`` if unknown."""
        name = self.gpu_name(capability)
        return f"{name} ({capability})" if name else f"compute capability {capability}"


class Problem(NamedTuple):
    """The input of the solver: frameworks, limits and the machines to run on. ``cpu`` requests CPU builds.

    ``of_lock`` is true if Python and CUDA are those of an existing lock, and not requested.
    """

    frameworks: tuple[FrameworkRequest, ...]
    platform: Platform
    machines: tuple[Machine, ...]
    cpu: bool
    python: SpecifierSet | None
    cuda: SpecifierSet | None
    of_lock: bool = False

    def limit(self, name: str, versions: SpecifierSet) -> str:
        """Return the sentence about the required ``versions`` of Python or CUDA."""
        text = f"{name} {versions_text(versions)}"
        return f"the lock file has {text.replace('==', '')}" if self.of_lock else f"{text} was requested"

    @property
    def gpus(self) -> tuple[ComputeCapability, ...]:
        """The distinct compute capabilities of all machines, sorted."""
        return tuple(sorted({gpu for machine in self.machines for gpu, _ in machine.gpus}))


class Choice(NamedTuple):
    """A chosen framework build and the code for each GPU: ``{6.1: "sm_60"}``."""

    release: Release
    runs_as: Mapping[ComputeCapability, str]


class CudnnBound(NamedTuple):
    """The first cuDNN that must not be installed: the next that drops ``dropped``, or the next major (None)."""

    below: str
    dropped: ComputeCapability | None


class NewerElsewhere(NamedTuple):
    """A newer release of a framework that also fits and is in another source, and the note about it."""

    framework: str
    note: Note


class Solution(NamedTuple):
    """A stack.

    ``toolkit`` and ``cudnn`` are None for CPU stacks. ``minimum_driver`` is that of the whole stack. ``cudnn_bound``
    excludes cuDNN releases that no longer support every GPU. ``newer_elsewhere`` are newer releases in other sources
    that also fit. ``owner`` is who installs CUDA, None for CPU stacks.
    """

    request: Request
    problem: Problem
    python: Version
    toolkit: Toolkit | None
    cudnn: CudnnRelease | None
    cudnn_bound: CudnnBound | None
    minimum_driver: DriverVersion | None
    choices: tuple[Choice, ...]
    because: tuple[Fact, ...]
    notes: tuple[Note, ...] = ()
    newer_elsewhere: tuple[NewerElsewhere, ...] = ()
    owner: Owner | None = None
