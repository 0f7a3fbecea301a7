"""What builds need that their metadata do not say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.model.capability import ComputeCapability, DeviceCode
from envsolve.model.fact import Evidence
from envsolve.model.versions import CudaVersion

if TYPE_CHECKING:
    from envsolve.model.need import Need


class BuildFacts(NamedTuple):
    """What the builds of some versions of a package of the Python index need, beyond what their metadata say.

    ``cuda`` are the toolkits whose libraries they load, None where any will do. ``requires`` are packages that they do
    not run without, ``constraints`` versions of packages that they do not run with otherwise. ``loss`` is what is lost
    where the CUDA is another, "" where nothing runs. ``beside`` is a framework without which they say nothing.
    ``code`` is what their kernels are compiled for, None if not known. ``linked_cuda`` is the major of a CUDA runtime
    that is linked into them: it needs a driver for that CUDA, whatever the stack has. ``read_here`` as of a Release.
    """

    package: str
    versions: SpecifierSet
    cuda: SpecifierSet | None
    requires: tuple[Need, ...]
    constraints: tuple[Need, ...]
    loss: str
    evidence: tuple[Evidence, ...]
    beside: str = ""
    code: DeviceCode | None = None
    linked_cuda: int | None = None
    read_here: bool = False

    def covers(self, version: str) -> bool:
        """Whether they are about ``version``; where they name no local label, whatever label it has."""
        public = Version(version).public
        return any(self.versions.contains(Version(it), prereleases=True) for it in (public, version))

    def go_with(self, cuda: CudaVersion) -> bool:
        """Whether they load the libraries of ``cuda``."""
        return self.cuda is None or self.cuda.contains(str(cuda))

    def run_with(self, newest: int) -> bool:
        """Whether a driver runs them that is for CUDA ``newest``, a major, at most."""
        return self.linked_cuda is None or self.linked_cuda <= newest

    def without_code_for(self, gpus: Iterable[ComputeCapability]) -> ComputeCapability | None:
        """The first of ``gpus`` that their kernels do not run on."""
        code = self.code
        return None if code is None else next((gpu for gpu in gpus if code.runs_as(gpu) is None), None)

    @property
    def cuda_text(self) -> str:
        """The toolkits in words: ``CUDA 12``, ``CUDA >=11.7,<12.7``."""
        text = ",".join(sorted(map(str, self.cuda or ()), reverse=True))
        return f"CUDA {text.removeprefix('==').removesuffix('.*')}"


class Place(NamedTuple):
    """A folder or a library by its ``name``, which several packages have under that name: one of them may be there."""

    name: str
    packages: tuple[str, ...]
    evidence: tuple[Evidence, ...]
