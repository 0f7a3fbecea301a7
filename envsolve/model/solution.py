"""What a solve decides: a stack that runs on every target, with the facts behind it; or why there is none."""

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
    """The installer whose packages bring the CUDA libraries of an environment. Two would each bring their own."""

    CONDA = "conda"
    PIP = "pip"


class Machine(NamedTuple):
    """What a stack has to run on: one driver with its GPUs. None and empty mean unknown, which constrains nothing.

    ``windows_driver`` says that the driver's number is one of Windows: there, and inside WSL2, which runs on it.
    ``hosts`` names the host files that it stands for: machines that no rule tells apart are one. ``assumed_glibc`` says
    that no one stated the C library.
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
        """How a sentence names it: ``this machine``, ``a.json``, ``a.json (and 3 more hosts like it)``."""
        if not self.hosts:
            return "this machine"
        more = len(self.hosts) - 1
        return self.hosts[0] + (f" (and {more} more host{'s' if more > 1 else ''} like it)" if more else "")

    def gpu_name(self, capability: ComputeCapability) -> str:
        """The product's name, or "" if none is known."""
        return next((name for known, name in self.gpus if known == capability), "")

    def gpu_label(self, capability: ComputeCapability) -> str:
        """How a sentence names a GPU: ``Tesla K80 (3.7)``, or ``compute capability 3.7`` where no product is known."""
        name = self.gpu_name(capability)
        return f"{name} ({capability})" if name else f"compute capability {capability}"


class Problem(NamedTuple):
    """A request made exact: frameworks, limits and the machines it must run on. ``cpu`` asks for CPU builds.

    ``of_lock`` says that Python and CUDA are those of a lock that is there, and no one asks for them.
    """

    frameworks: tuple[FrameworkRequest, ...]
    platform: Platform
    machines: tuple[Machine, ...]
    cpu: bool
    python: SpecifierSet | None
    cuda: SpecifierSet | None
    of_lock: bool = False

    def limit(self, name: str, versions: SpecifierSet) -> str:
        """The sentence that says which ``versions`` of Python or CUDA alone will do."""
        text = f"{name} {versions_text(versions)}"
        return f"the lock file has {text.replace('==', '')}" if self.of_lock else f"{text} was requested"

    @property
    def gpus(self) -> tuple[ComputeCapability, ...]:
        """The distinct compute capabilities of all machines, sorted."""
        return tuple(sorted({gpu for machine in self.machines for gpu, _ in machine.gpus}))


class Choice(NamedTuple):
    """A chosen framework build and what serves each GPU: ``{6.1: "sm_60"}``."""

    release: Release
    runs_as: Mapping[ComputeCapability, str]


class CudnnBound(NamedTuple):
    """The first cuDNN that must not be installed: the next that drops ``dropped``, or the next major (None)."""

    below: str
    dropped: ComputeCapability | None


class NewerElsewhere(NamedTuple):
    """A newer release of a framework that fits as well and is in another source, and the note that says so."""

    framework: str
    note: Note


class Solution(NamedTuple):
    """A stack.

    ``toolkit`` and ``cudnn`` are None for CPU stacks. ``minimum_driver`` is what the whole stack needs.
    ``cudnn_bound`` keeps cuDNN from growing past what every GPU is served by.
    ``newer_elsewhere`` names newer releases that other sources have and that also fit.
    ``owner`` is who installs CUDA, None for CPU stacks.
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
