"""What builds need that their metadata do not say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.model.capability import ComputeCapability, DeviceCode
from envsolve.model.fact import Evidence, EvidenceKind
from envsolve.model.versions import CudaVersion

if TYPE_CHECKING:
    from envsolve.model.host import Platform
    from envsolve.model.need import Need


class BuildFacts(NamedTuple):
    """What the builds of some versions of a package of the Python index need, beyond what their metadata say.

    ``cuda`` are the toolkits whose libraries they load, None if any will do. ``requires`` are packages that they do
    not run without, ``constraints`` versions of packages that they do not run with otherwise. ``loss`` is what is lost
    where CUDA or GPU do not fit, "" if nothing runs. ``beside`` is a framework without which they say nothing.
    ``code`` is what their kernels are compiled for, None if not known. ``linked_cuda`` is the major of a CUDA runtime
    that is part of them: it needs a driver for that CUDA, whatever the stack has. ``with_cuda`` are the toolkits of a
    stack in which ``code`` is what they use, None if in all; ``platforms`` are those that they are for, () if all.
    ``ptx_cuda`` is the toolkit that wrote their PTX, which older drivers do not compile.

    Where they name a ``loss`` alone, nothing of their kernels or of their CUDA has to fit. ``read_here`` is as in a
    Release.
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
    with_cuda: SpecifierSet | None = None
    platforms: tuple[Platform, ...] = ()
    ptx_cuda: CudaVersion | None = None
    read_here: bool = False

    def covers(self, version: str) -> bool:
        """Whether they are about ``version``.

        One with a local label (``+cu126``) was built elsewhere: what is said of CUDA is not about it, unless they name
        the label.
        """
        known = Version(version)
        if known.local and self.need_cuda and "+" not in str(self.versions):
            return False
        return any(self.versions.contains(it, prereleases=True) for it in (Version(known.public), known))

    @property
    def are_of_cuda(self) -> bool:
        """Whether they say which CUDA or which GPUs the builds are for, or that it does not matter."""
        return bool(self.loss) or self.need_cuda

    @property
    def are_of_name(self) -> bool:
        """Whether they are only what the name of a wheel says."""
        return all(it.kind is EvidenceKind.FILE_NAME for it in self.evidence)

    @property
    def need_cuda(self) -> bool:
        """Whether a CUDA, a driver or a GPU has to fit."""
        return self.cuda is not None or self.code is not None or self.linked_cuda is not None

    def go_with(self, cuda: CudaVersion) -> bool:
        """Whether they load the libraries of ``cuda``."""
        return self.cuda is None or self.cuda.contains(str(cuda))

    def unmet(self, versions: Mapping[str, str]) -> Iterator[str]:
        """What they require that is there in another version, each as half a sentence; ``versions`` are there."""
        for need in self.requires:
            there = versions.get(need.name)
            if there is not None and there not in SpecifierSet(need.specifier, prereleases=True):
                yield f"requires {need.in_words}, and {need.name} is {there}"

    def run_with(self, newest: int) -> bool:
        """Whether a driver runs them that is for CUDA ``newest``, a major, at most."""
        return self.linked_cuda is None or self.linked_cuda <= newest

    def without_code_for(
        self, gpus: Iterable[ComputeCapability], cuda: CudaVersion | None, compiles: CudaVersion | None = None
    ) -> ComputeCapability | None:
        """The first of ``gpus`` that their kernels do not run on in a stack of ``cuda``, None if it is not known.

        ``compiles`` is the newest CUDA whose PTX the driver compiles, None if that is not known.
        """
        if self.with_cuda is not None and (cuda is None or not self.with_cuda.contains(str(cuda))):
            return None
        is_too_new = compiles is not None and self.ptx_cuda is not None and self.ptx_cuda > compiles
        code = self.code._replace(ptx=()) if self.code is not None and is_too_new else self.code
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
