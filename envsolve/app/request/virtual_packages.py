"""The virtual packages of conda: assumptions about the machine of a conda lock.

They describe the target, whatever machine makes the lock: its detected or given GPUs, driver and C library, and
otherwise the minimum that machines of the platform have. conda's variables that override virtual packages
(https://docs.conda.io/projects/conda/en/stable/user-guide/tasks/manage-virtual.html) count as given by the user.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from envsolve.app.request.targets import glibc_of
from envsolve.errors import UsageError
from envsolve.matrix.tables import CudaTable
from envsolve.model.conda import VirtualPackage
from envsolve.model.host import Host, Platform
from envsolve.model.solution import Problem, Solution
from envsolve.model.versions import CudaVersion

_LINUX = "5.10"
"""The kernel that conda-lock assumes (conda_lock/default-virtual-packages.yaml)."""
_MACOS = "13.0"
"""The oldest macOS that conda-forge builds PyTorch and JAX for in 2026."""
_ARCHITECTURE = {
    Platform.LINUX_64: "x86_64",
    Platform.LINUX_AARCH64: "aarch64",
    Platform.WIN_64: "x86_64",
    Platform.OSX_64: "x86_64",
    Platform.OSX_ARM64: "m1",
}
_OVERRIDES = {
    "CONDA_OVERRIDE_GLIBC": "__glibc",
    "CONDA_OVERRIDE_LINUX": "__linux",
    "CONDA_OVERRIDE_OSX": "__osx",
    "CONDA_OVERRIDE_ARCHSPEC": "__archspec",
}
"""Variables for CUDA and the compute capability are read when the machine is detected."""


def virtual_packages(
    problem: Problem, solution: Solution | None, hosts: Sequence[Host], cuda: CudaTable, environ: Mapping[str, str]
) -> tuple[VirtualPackage, ...]:
    """The virtual packages of the machines of ``problem``, sorted by name. Raises UsageError for a bad override."""
    found = {it.name: it for it in _assumed(problem)}
    if not problem.cpu:
        found |= {it.name: it for it in _of_gpus(problem, solution, hosts, cuda)}
    for variable, name in _OVERRIDES.items():
        if name in found and environ.get(variable):
            found[name] = _overridden(variable, name, environ[variable])
    return tuple(sorted(found.values()))


def _assumed(problem: Problem) -> Iterator[VirtualPackage]:
    platform = problem.platform
    yield VirtualPackage("__archspec", "1", _ARCHITECTURE[platform])
    if platform.is_windows:
        yield VirtualPackage("__win", "0")
        return
    yield VirtualPackage("__unix", "0")
    if platform in (Platform.OSX_64, Platform.OSX_ARM64):
        yield VirtualPackage("__osx", _MACOS)
        return
    yield VirtualPackage("__linux", _LINUX)
    yield VirtualPackage("__glibc", str(glibc_of(problem)))


def _of_gpus(
    problem: Problem, solution: Solution | None, hosts: Sequence[Host], cuda: CudaTable
) -> Iterator[VirtualPackage]:
    """``__cuda`` is the newest CUDA that every driver supports, ``__cuda_arch`` the oldest GPU (CEP 46)."""
    version = _cuda_of(solution, hosts, cuda)
    if version is not None:
        yield VirtualPackage("__cuda", str(version))
    if problem.gpus:
        yield VirtualPackage("__cuda_arch", str(problem.gpus[0]))


def _cuda_of(solution: Solution | None, hosts: Sequence[Host], cuda: CudaTable) -> CudaVersion | None:
    """The CUDA of the drivers; without drivers, that of the oldest driver that the stack runs on."""
    stated = [host.driver_cuda for host in hosts if host.driver_cuda is not None]
    if stated and len(stated) == len(hosts):
        return min(stated)
    if solution is None or solution.toolkit is None:
        return cuda.toolkits[0].version
    branch = None if solution.minimum_driver is None else cuda.branch_of(solution.minimum_driver)
    return solution.toolkit.version if branch is None else branch.cuda


def _overridden(variable: str, name: str, value: str) -> VirtualPackage:
    if not value.replace(".", "").replace("_", "").replace("-", "").isalnum():
        raise UsageError("variable-invalid", f"{variable} is {value!r}, which is not a version")
    return VirtualPackage(name, "1", value) if name == "__archspec" else VirtualPackage(name, value)
