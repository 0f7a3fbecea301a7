"""Parts of facts: what conditions and sentences may name of a value beside its attributes, ``{gpu_capability.sm}``."""

from __future__ import annotations

from packaging.version import Version

from envsolve.diagnose.case import Case
from envsolve.diagnose.facts.shared import gpu_code
from envsolve.findings.catalogue import shipped
from envsolve.model.capability import ComputeCapability
from envsolve.model.versions import CudaVersion, DriverVersion, parsed_cuda, parsed_version

_KEPLER = ComputeCapability(3, 0)
_FERMI_ENDS = CudaVersion(8, 0)
"""The last toolkit for compute capability 2.x. CUDA 9.0, where the matrix begins, dropped it (release notes)."""

# ---------------------------------------------------------------------------------------------- of a version


def as_cuda(_case: Case, version: str) -> CudaVersion | None:
    """A version as one of CUDA."""
    return parsed_cuda(version)


def cuda_of_ptx(_case: Case, version: str) -> CudaVersion | None:
    """The CUDA that came with a version of PTX."""
    return gpu_code.cuda_of_ptx(version)


def branch(case: Case, driver: DriverVersion | str) -> int:
    """The branch of a driver: 580 of 580.65.06 and of 581.29, which is for Windows."""
    found = case.knowledge.matrix.cuda.branch_of(DriverVersion.parse(str(driver)))
    return int(str(driver).partition(".")[0]) if found is None else found.branch


def public(_case: Case, version: str | Version) -> Version | None:
    """A version without its local part, to compare with ``release``."""
    parsed = parsed_version(str(version))
    return None if parsed is None else Version(parsed.public)


def minor_release(_case: Case, version: str) -> str | None:
    """The minor release of a version, 2.15."""
    parsed = parsed_version(version)
    return None if parsed is None else ".".join(map(str, parsed.release[:2]))


def major_release(_case: Case, version: str) -> int | None:
    """The major release of a version: 9."""
    parsed = parsed_version(version)
    return None if parsed is None else parsed.major


def source(_case: Case, package: str) -> str:
    """What pip installs a package from: its repository where it is not on PyPI, quoted for a shell."""
    repository = shipped().table("repository").get(package)
    return package if repository is None else f"'git+{repository}'"


def next_major(_case: Case, version: str) -> int | None:
    """The major release after that of a version, which often does not fit: 10."""
    parsed = parsed_version(version)
    return None if parsed is None else parsed.major + 1


# ---------------------------------------------------------------------------------------------- of a compute capability


def sm(_case: Case, capability: ComputeCapability) -> str:
    """A compute capability as compilers write it: sm_86."""
    return f"sm_{capability.major}{capability.minor}"


def number(_case: Case, capability: ComputeCapability) -> str:
    """As CMake writes it: 86."""
    return f"{capability.major}{capability.minor}"


def architecture(case: Case, capability: ComputeCapability) -> str | None:
    """The generation of such a GPU: Ampere."""
    return case.knowledge.architecture(capability)


def named(case: Case, capability: ComputeCapability) -> str:
    """With both: 8.6 (sm_86, Ampere)."""
    return f"{capability} ({', '.join(filter(None, (sm(case, capability), architecture(case, capability))))})"


def first_cuda(case: Case, capability: ComputeCapability) -> CudaVersion | None:
    """The first CUDA that compiles for it."""
    span = case.knowledge.cuda_for(capability)
    return None if span is None else span[0]


def last_cuda(case: Case, capability: ComputeCapability) -> CudaVersion | None:
    """The last CUDA that compiles for it, if there is one."""
    span = case.knowledge.cuda_for(capability)
    return span[1] if span is not None else _FERMI_ENDS if capability < _KEPLER else None


def first_cuda_without(case: Case, capability: ComputeCapability) -> CudaVersion | None:
    """The CUDA that dropped it."""
    last = last_cuda(case, capability)
    later = (it.version for it in case.knowledge.matrix.cuda.toolkits if last is not None and it.version > last)
    return min(later, default=None)


def first_branch(case: Case, capability: ComputeCapability) -> int | None:
    """The first branch of the driver for it."""
    life = case.knowledge.matrix.cuda.life_of(capability)
    return None if life is None else life.first_branch


def last_branch(case: Case, capability: ComputeCapability) -> int | None:
    """The last branch of the driver for it, if there is one."""
    return case.knowledge.last_branch(capability)


# ---------------------------------------------------------------------------------------------- of a version of CUDA


def full_driver(case: Case, cuda: CudaVersion) -> DriverVersion | None:
    """The oldest driver that supports a CUDA in full."""
    return case.knowledge.full_driver(cuda, windows=case.windows or case.wsl)


def least_driver(case: Case, cuda: CudaVersion) -> DriverVersion | None:
    """The oldest driver on which builds for a CUDA run."""
    return case.knowledge.driver_floor(cuda, windows=case.windows or case.wsl)
