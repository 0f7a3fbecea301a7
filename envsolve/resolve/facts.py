"""The facts behind requirements: sentences with their sources, written only when they are shown."""

from __future__ import annotations

from envsolve.model.capability import CodeTarget, ComputeCapability, DeviceCode
from envsolve.model.fact import Evidence, EvidenceKind, Fact
from envsolve.model.release import Architecture, CudaLibraries, CudnnRelease, KnownBad, Release, Toolkit
from envsolve.model.solution import Machine, Owner
from envsolve.model.versions import CudaVersion, DriverVersion, LibcVersion
from envsolve.resolve.parts import CudnnIn

OLDEST_IN_WSL2 = ComputeCapability(6, 0)


def pythons(release: Release) -> Fact:
    """The Pythons that a build supports."""
    return Fact(f"{release.label} was built for Python {_listed(release.pythons)}", release.reference)


def glibc_floor(release: Release, floor: LibcVersion) -> Fact:
    """The C library that a build needs."""
    return Fact(f"{release.label} needs glibc {floor} or newer", release.reference)


def driver_floor(toolkit: Toolkit, floor: DriverVersion) -> Fact:
    """The driver that a toolkit needs."""
    text = f"CUDA {toolkit.version} needs NVIDIA driver {floor} or newer"
    return Fact(text, _reference(toolkit.evidence, EvidenceKind.VENDOR_TABLE))


def toolkit_reach(toolkit: Toolkit, gpu: ComputeCapability) -> Fact:
    """That a toolkit does not compile for a GPU."""
    limits = _limits(gpu, min(toolkit.compiles_for), max(toolkit.compiles_for))
    text = f"CUDA {toolkit.version} has no code for compute capability {gpu}{limits}"
    return Fact(text, _reference(toolkit.evidence, EvidenceKind.WHEEL))


def cudnn_reach(release: CudnnRelease, gpu: ComputeCapability, *, served: bool) -> Fact:
    """Whether a cuDNN release contains code for a GPU."""
    text = f"cuDNN {release.version} for CUDA {release.cuda_major} {_reach(release, gpu, served=served)}"
    return Fact(text, release.evidence[0].reference)


def wsl_reach() -> Fact:
    """Which GPUs WSL2 makes available to Linux."""
    text = f"WSL2 passes GPUs through from compute capability {OLDEST_IN_WSL2} (Pascal) on"
    return Fact(text, "NVIDIA, CUDA on WSL user guide, section 2")


def first_branch(life: Architecture, first: DriverVersion, name: str) -> Fact:
    """The driver branch that a GPU needs."""
    spelled = f"R{life.first_branch}" + (f" ({first})" if len(first.parts) > 1 else "")
    gpu = f"{name} (compute capability {life.capability})" if name else f"compute capability {life.capability}"
    text = f"{gpu} needs driver branch {spelled} or newer"
    return Fact(text, life.evidence[0].reference)


def last_branch(life: Architecture, name: str) -> Fact:
    """The last driver branch that supports a GPU."""
    kind = f"compute capability {life.capability}"
    gpu = f"{name} ({kind}, {life.name})" if name else f"{kind} ({life.name})"
    text = f"R{life.last_branch} is the last driver branch for {gpu}"
    return Fact(text, life.evidence[0].reference)


def known_to_fail(release: Release, bad: KnownBad) -> Fact:
    """A known failure of a build on a GPU."""
    return Fact(f"{release.label}: {bad.reason}", bad.evidence[0].reference)


def no_code(release: Release, gpu: ComputeCapability) -> Fact:
    """That a build contains no code that a GPU runs."""
    text = f"{release.label} has no code for compute capability {gpu}: it has {_code_list(release.code)}"
    return Fact(text, release.reference)


def served_by_ptx(
    release: Release, machine: Machine, gpu: ComputeCapability, ptx: CodeTarget, full: DriverVersion
) -> Fact:
    """That the driver compiles the PTX of a build for a GPU."""
    text = (
        f"{release.label} serves {machine.gpu_label(gpu)} through PTX ({ptx.name('compute')}) of CUDA "
        f"{release.cuda}, which only a driver that supports {release.cuda} in full compiles: {full} or newer"
    )
    return Fact(text, release.reference)


def partly_ptx(
    release: Release,
    machine: Machine,
    gpu: ComputeCapability,
    target: CodeTarget,
    cuda: CudaVersion,
    full: DriverVersion,
) -> Fact:
    """That the driver compiles part of a build for a GPU."""
    text = (
        f"{release.label} has some of its kernels for {machine.gpu_label(gpu)} as PTX of CUDA {cuda} "
        f"({target.name('compute')}), which only a driver that supports {cuda} in full compiles: {full} or newer"
    )
    return Fact(text, release.reference)


def built_for(release: Release) -> Fact:
    """The CUDA version that a build was compiled with."""
    return Fact(f"{release.label} is built for CUDA {release.cuda}", release.reference)


def cudnn_needed(release: Release, limit: CudnnIn) -> Fact:
    """The cuDNN that a build requires. A cuDNN of conda-forge also requires a C library."""
    text = f"{release.label} needs cuDNN {limit.specifier} for CUDA {limit.cuda_major}"
    if limit.glibc is not None:
        text += f", from conda-forge for glibc {limit.glibc}"
    return Fact(text, release.reference)


def owner(release: Release, owner: Owner) -> Fact:
    """Whose packages install the CUDA of a build."""
    if owner is Owner.PIP:
        text = (
            "carries its CUDA libraries" if release.cuda_libraries is CudaLibraries.BUNDLED else "has pip install CUDA"
        )
    else:
        text = "uses CUDA from conda-forge" if release.source.is_wheel else "uses CUDA from its conda channel"
    return Fact(f"{release.label} {text}", release.reference)


def _code_list(code: DeviceCode) -> str:
    """Code targets as text: ``sm_75, sm_80, compute_90``."""
    names = [target.name("sm") for target in code.sass] + [target.name("compute") for target in code.ptx]
    return ", ".join(names)


def _reference(evidence: tuple[Evidence, ...], kind: EvidenceKind) -> str:
    """The reference of the given kind, else the strongest. A table states drivers, a binary states its code."""
    return next((item.reference for item in evidence if item.kind is kind), evidence[0].reference)


def _reach(release: CudnnRelease, gpu: ComputeCapability, *, served: bool) -> str:
    if served:
        return f"has code for compute capability {gpu}"
    return f"has no code for compute capability {gpu}{_limits(gpu, release.oldest, release.newest)}"


def _limits(gpu: ComputeCapability, oldest: ComputeCapability, newest: ComputeCapability) -> str:
    """On which side of a range ``gpu`` lies, or "" if it lies inside and its family was left out."""
    if gpu < oldest:
        return f": it starts at {oldest}"
    return f": it ends at {newest}" if gpu > newest else ""


def _listed(pythons: tuple[str, ...]) -> str:
    return ", ".join(pythons)
