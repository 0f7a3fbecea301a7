"""The rules of the NVIDIA platform, each in one function with its source: what choosing a thing requires of the rest.

* Driver floor: machine code of a toolkit runs from the driver that minor-version compatibility names
  (NVIDIA, CUDA compatibility, minor-version compatibility, table 1).
* PTX: where only PTX serves a GPU the driver compiles it, which takes a driver that supports the compiling toolkit in
  full; an older one answers cudaErrorUnsupportedPtxVersion, 222 (NVIDIA/nvbandwidth#61).
* Machine code and PTX against capabilities: :mod:`envsolve.model.capability`.
* A toolkit's libraries hold code for the GPUs its compiler targets. A build's own PTX says nothing about that of cuBLAS
  and the others, so a GPU needs the toolkit that first compiled for its family: Blackwell 12.8, Thor 13.0
  (NVIDIA, CUDA toolkit release notes, architectures by toolkit).
* Life of a GPU: driven from the branch whose CUDA first compiled for it up to the last branch that lists it
  (NVIDIA, CUDA toolkit, driver and architecture matrix; supported-GPU tables of open-gpu-kernel-modules).
* cuDNN runs with the minor it was compiled with or a newer one of the same major (NVIDIA cuDNN developer guide), and
  must itself hold code for the GPU: 9.11 and later hold none for 5.x to 7.0, so matrix products work there and
  convolutions fail (fat-binary headers of the wheels).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from envsolve.matrix.load import CudaTable, FrameworkTable
from envsolve.model.capability import CodeTarget, ComputeCapability, DeviceCode
from envsolve.model.fact import Evidence, EvidenceKind, Fact
from envsolve.model.release import CudaLibraries, CudnnRelease, KnownBad, Release, Source, Toolkit
from envsolve.model.solution import Machine, Problem
from envsolve.model.versions import DriverVersion
from envsolve.solve.parts import (
    CUDA,
    CUDNN,
    PYTHON,
    CudnnIn,
    DriverCeiling,
    DriverFloor,
    GlibcFloor,
    PythonAmong,
    Requirement,
    Served,
    ToolkitIn,
    driver_identifier,
    glibc_identifier,
    gpu_identifier,
)

OLDEST_IN_WSL2 = ComputeCapability(6, 0)


class Rules:
    """What each candidate requires, for one problem."""

    def __init__(
        self, problem: Problem, cuda: CudaTable, frameworks: Mapping[str, FrameworkTable], *, from_conda: bool
    ) -> None:
        self._problem = problem
        self._from_conda = from_conda
        self._cuda = cuda
        self._frameworks = frameworks
        self._toolkits = {toolkit.version: toolkit for toolkit in cuda.toolkits}

    def of_release(self, release: Release) -> Iterator[Requirement]:
        """A framework build requires a Python, a C library, its CUDA and cuDNN, and GPUs that it serves."""
        label, reference = release.label, release.reference
        pythons = f"{label} was built for Python {_listed(release.pythons)}"
        yield Requirement(PYTHON, PythonAmong(release.pythons), Fact(pythons, reference))
        if release.glibc is not None:
            for number, _ in enumerate(self._problem.machines):
                fact = Fact(f"{label} needs glibc {release.glibc} or newer", reference)
                yield Requirement(glibc_identifier(number), GlibcFloor(release.glibc), fact)
        if release.cuda is not None:
            yield from self._served_by(release)
            yield from self._libraries_of(release)

    def of_toolkit(self, toolkit: Toolkit) -> Iterator[Requirement]:
        """A CUDA toolkit requires a driver at its floor and GPUs it still compiles for."""
        code = DeviceCode(tuple(CodeTarget(capability) for capability in toolkit.compiles_for))
        oldest = min(toolkit.compiles_for)
        for number, machine in enumerate(self._problem.machines):
            floor = toolkit.floor(windows=machine.windows_driver)
            text = f"CUDA {toolkit.version} needs NVIDIA driver {floor} or newer"
            fact = Fact(text, _said_by(toolkit.evidence, EvidenceKind.VENDOR_TABLE))
            yield Requirement(driver_identifier(number), DriverFloor(floor), fact)
            for gpu, _ in machine.gpus:
                served = code.machine_code_for(gpu) is not None
                limits = _limits(gpu, oldest, max(toolkit.compiles_for))
                text = f"CUDA {toolkit.version} has no code for compute capability {gpu}{limits}"
                source = _said_by(toolkit.evidence, EvidenceKind.WHEEL)
                yield Requirement(gpu_identifier(number, gpu), Served(served), Fact(text, source))

    def of_cudnn(self, release: CudnnRelease) -> Iterator[Requirement]:
        """A cuDNN requires GPUs it holds code for and, from conda, the C library it was built against."""
        source = release.evidence[0].reference
        for number, machine in enumerate(self._problem.machines):
            for gpu, _ in machine.gpus:
                served = release.serves(gpu, self._problem.platform)
                text = f"cuDNN {release.version} for CUDA {release.cuda_major} {_reach(release, gpu, served=served)}"
                yield Requirement(gpu_identifier(number, gpu), Served(served), Fact(text, source))
            if release.conda_glibc is not None and self._from_conda:
                text = f"cuDNN {release.version} from conda-forge needs glibc {release.conda_glibc} or newer"
                yield Requirement(glibc_identifier(number), GlibcFloor(release.conda_glibc), Fact(text, source))

    def of_gpu(self, number: int, machine: Machine, gpu: ComputeCapability) -> Iterator[Requirement]:
        """A GPU requires a driver within its life, and inside WSL2 it must be one that WSL2 passes through."""
        life = self._cuda.life_of(gpu)
        if life is None:
            return
        name, source = machine.gpu_name(gpu), life.evidence[0].reference
        if machine.windows_driver and not self._problem.platform.is_windows:
            text = f"WSL2 passes GPUs through from compute capability {OLDEST_IN_WSL2} (Pascal) on"
            fact = Fact(text, "NVIDIA, CUDA on WSL user guide, section 2")
            yield Requirement(gpu_identifier(number, gpu), Served(gpu >= OLDEST_IN_WSL2), fact)
        if life.first_branch is not None:
            first = self._first_release(life.first_branch, machine)
            spelled = f"R{life.first_branch}" + (f" ({first})" if len(first.parts) > 1 else "")
            text = f"{name} (compute capability {gpu}) needs driver branch {spelled} or newer"
            yield Requirement(driver_identifier(number), DriverFloor(first), Fact(text, source))
        if life.last_branch is not None:
            text = f"R{life.last_branch} is the last driver branch for {name} (compute capability {gpu}, {life.name})"
            limit = DriverCeiling(self._cuda.after(life.last_branch))
            yield Requirement(driver_identifier(number), limit, Fact(text, source))

    def known_against(self, release: Release) -> tuple[KnownBad, ...]:
        """What is known against ``release``, on whatever GPU."""
        return tuple(entry for entry in self._frameworks[release.framework].known_bad if entry.covers(release))

    def _served_by(self, release: Release) -> Iterator[Requirement]:
        against = self.known_against(release)
        for number, machine in enumerate(self._problem.machines):
            for gpu, _ in machine.gpus:
                identifier = gpu_identifier(number, gpu)
                bad = next((entry for entry in against if gpu in entry.capabilities), None)
                if bad is not None:
                    fact = Fact(f"{release.label}: {bad.reason}", bad.evidence[0].reference)
                    yield Requirement(identifier, Served(verdict=False), fact)
                elif release.code.machine_code_for(gpu) is None:
                    yield from self._compiled_by_driver(release, number, machine, gpu)
                else:
                    yield from self._partly_compiled(release, number, machine, gpu)

    def _compiled_by_driver(
        self, release: Release, number: int, machine: Machine, gpu: ComputeCapability
    ) -> Iterator[Requirement]:
        ptx = release.code.ptx_for(gpu)
        assert release.cuda is not None
        toolkit = self._toolkits.get(release.cuda)
        full = toolkit.full(windows=machine.windows_driver) if toolkit else None
        if ptx is None or full is None:
            text = f"{release.label} has no code for compute capability {gpu}: it holds {code_list(release.code)}"
            yield Requirement(gpu_identifier(number, gpu), Served(verdict=False), Fact(text, release.reference))
            return
        text = (
            f"{release.label} serves {machine.gpu_name(gpu)} ({gpu}) through PTX ({ptx.name('compute')}) of CUDA "
            f"{release.cuda}, which only a driver that supports {release.cuda} in full compiles: {full} or newer"
        )
        yield Requirement(driver_identifier(number), DriverFloor(full), Fact(text, release.reference))

    def _partly_compiled(
        self, release: Release, number: int, machine: Machine, gpu: ComputeCapability
    ) -> Iterator[Requirement]:
        """Of some builds a part of the kernels has no machine code for a target that the others have."""
        target = release.code.machine_code_for(gpu)
        cuda = next((cuda for partly, cuda in release.jit if partly == target), None)
        toolkit = None if cuda is None else self._toolkits.get(cuda)
        full = None if toolkit is None else toolkit.full(windows=machine.windows_driver)
        if target is None or full is None:
            return
        text = (
            f"{release.label} holds a part of its kernels for {machine.gpu_name(gpu)} ({gpu}) as PTX of CUDA {cuda} "
            f"({target.name('compute')}), which only a driver that supports {cuda} in full compiles: {full} or newer"
        )
        yield Requirement(driver_identifier(number), DriverFloor(full), Fact(text, release.reference))

    def _libraries_of(self, release: Release) -> Iterator[Requirement]:
        assert release.cuda is not None
        assert release.cuda_requires is not None
        fact = Fact(f"{release.label} is built for CUDA {release.cuda}", release.reference)
        yield Requirement(CUDA, ToolkitIn(release.cuda_requires, release.cuda), fact)
        if release.cudnn_requires is not None:
            text = f"{release.label} needs cuDNN {release.cudnn_requires} for CUDA {release.cuda.major}"
            provider = cudnn_provider(release)
            limit = CudnnIn(release.cudnn_requires, release.cuda.major, provider, self._problem.platform)
            yield Requirement(CUDNN, limit, Fact(text, release.reference))

    def _first_release(self, number: int, machine: Machine) -> DriverVersion:
        branch = next((entry for entry in self._cuda.branches if entry.branch == number), None)
        if branch is None:
            return DriverVersion((number,), str(number))
        return branch.first(windows=machine.windows_driver)


def cudnn_provider(release: Release) -> Source | None:
    """Who installs the cuDNN of ``release``: None where it lies inside the package.

    A wheel that brings no CUDA gets it from conda-forge, which alone ships toolkits older than 11.8 as packages.
    """
    if release.brings_cudnn:
        return None
    if release.cuda_libraries is CudaLibraries.NONE:
        return Source.CONDA_FORGE
    return release.source


def code_list(code: DeviceCode) -> str:
    """``sm_75, sm_80, compute_90``."""
    names = [target.name("sm") for target in code.sass] + [target.name("compute") for target in code.ptx]
    return ", ".join(names)


def _said_by(evidence: tuple[Evidence, ...], kind: EvidenceKind) -> str:
    """The reference of that kind, or the strongest: a table says which driver, a binary which code."""
    return next((item.reference for item in evidence if item.kind is kind), evidence[0].reference)


def _reach(release: CudnnRelease, gpu: ComputeCapability, *, served: bool) -> str:
    if served:
        return f"holds code for compute capability {gpu}"
    return f"has no code for compute capability {gpu}{_limits(gpu, release.oldest, release.newest)}"


def _limits(gpu: ComputeCapability, oldest: ComputeCapability, newest: ComputeCapability) -> str:
    """On which side of a range ``gpu`` lies; nothing where it lies inside and its family was left out."""
    if gpu < oldest:
        return f": it starts at {oldest}"
    return f": it ends at {newest}" if gpu > newest else ""


def _listed(pythons: tuple[str, ...]) -> str:
    return ", ".join(pythons)
