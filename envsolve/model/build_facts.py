"""Requirements of builds that their metadata does not state."""

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
    """Requirements of the builds of some versions of a package on the Python index, beyond their metadata.

    ``cuda`` are the toolkits whose libraries they load, None for any. ``requires`` are packages without which they do
    not run, ``constraints`` the versions of packages that they run with. ``loss`` is what does not work if CUDA or the
    GPU do not fit, "" if nothing works. ``beside`` is the framework that the facts apply to, if any. ``code`` is what
    their kernels are compiled for, None if unknown. ``linked_cuda`` is the major of a CUDA runtime that they contain,
    which needs a driver for that CUDA whatever the stack has. ``with_cuda`` are the toolkits of stacks in which they
    use ``code``, None for all. ``platforms`` are those that the facts apply to, () for all. ``ptx_cuda`` is the toolkit
    that made their PTX, which older drivers do not compile.

    If there is only a ``loss``, their kernels and their CUDA do not have to fit. ``read_here`` has the meaning as in
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
        """Whether the facts are about ``version``.

        A version with a local label (``+cu126``) was built elsewhere. Facts about CUDA do not apply to it, unless they
        name the label.
        """
        known = Version(version)
        if known.local and self.need_cuda and "+" not in str(self.versions):
            return False
        return any(self.versions.contains(it, prereleases=True) for it in (Version(known.public), known))

    @property
    def are_about_cuda(self) -> bool:
        """Whether they say which CUDA or which GPUs the builds are for, or that it does not matter."""
        return bool(self.loss) or self.need_cuda

    @property
    def are_from_file_name(self) -> bool:
        """Whether they are only based on the name of a wheel."""
        return all(it.kind is EvidenceKind.FILE_NAME for it in self.evidence)

    @property
    def need_cuda(self) -> bool:
        """Whether a CUDA, a driver or a GPU has to fit."""
        return self.cuda is not None or self.code is not None or self.linked_cuda is not None

    def go_with(self, cuda: CudaVersion) -> bool:
        """Whether they load the libraries of ``cuda``."""
        return self.cuda is None or self.cuda.contains(str(cuda))

    def unmet(self, versions: Mapping[str, str]) -> Iterator[str]:
        """Yield half a sentence for each requirement that is not met by the installed ``versions``."""
        for need in self.requires:
            there = versions.get(need.name)
            if there is not None and there not in SpecifierSet(need.specifier, prereleases=True):
                yield f"requires {need.in_words}, and {need.name} is {there}"

    def run_with(self, newest: int) -> bool:
        """Whether they run on a driver for CUDA major ``newest``."""
        return self.linked_cuda is None or self.linked_cuda <= newest

    def without_code_for(
        self, gpus: Iterable[ComputeCapability], cuda: CudaVersion | None, compiles: CudaVersion | None = None
    ) -> ComputeCapability | None:
        """Return the first of ``gpus`` that their kernels do not run on in a stack of ``cuda``; None also if unknown.

        ``compiles`` is the newest CUDA whose PTX the driver compiles, None if unknown.
        """
        if self.with_cuda is not None and (cuda is None or not self.with_cuda.contains(str(cuda))):
            return None
        is_too_new = compiles is not None and self.ptx_cuda is not None and self.ptx_cuda > compiles
        code = self.code._replace(ptx=()) if self.code is not None and is_too_new else self.code
        return None if code is None else next((gpu for gpu in gpus if code.runs_as(gpu) is None), None)

    @property
    def cuda_text(self) -> str:
        """The toolkits as text: ``CUDA 12``, ``CUDA >=11.7,<12.7``."""
        text = ",".join(sorted(map(str, self.cuda or ()), reverse=True))
        return f"CUDA {text.removeprefix('==').removesuffix('.*')}"


class Place(NamedTuple):
    """A directory or a library with the same ``name`` in several packages, of which only one may be installed."""

    name: str
    packages: tuple[str, ...]
    evidence: tuple[Evidence, ...]
