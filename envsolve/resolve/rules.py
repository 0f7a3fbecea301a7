"""The rules of the NVIDIA platform, each in one function with its source: what choosing a thing requires of the rest.

* Driver floor: machine code of a toolkit runs on drivers from the version that minor-version compatibility names
  (NVIDIA, CUDA compatibility, minor-version compatibility, table 1).
* PTX: if only PTX serves a GPU, the driver compiles it. That takes a driver that supports the compiling toolkit in
  full; an older one answers cudaErrorUnsupportedPtxVersion, 222 (NVIDIA/nvbandwidth#61).
* Machine code and PTX by capability: :mod:`envsolve.model.capability`.
* A toolkit's libraries contain code for the GPUs that its compiler targets. A build's own PTX says nothing about cuBLAS
  and the others, so a GPU needs the toolkit that first compiled for its family: Blackwell 12.8, Thor 13.0
  (NVIDIA, CUDA toolkit release notes, architectures by toolkit).
* Life of a GPU: supported from the branch whose CUDA first compiled for it up to the last branch that lists it
  (NVIDIA, CUDA toolkit, driver and architecture matrix; supported-GPU tables of open-gpu-kernel-modules).
* cuDNN runs with the minor it was compiled with or a newer one of the same major (NVIDIA cuDNN developer guide), and
  must itself contain code for the GPU: 9.11 and later have none for 5.x to 7.0, so matrix products work there and
  convolutions fail (fat-binary headers of the wheels).
* One installer owns CUDA. With libraries of both conda and pip, the process loads whichever it finds first, and one
  framework runs on the other's cuDNN or NCCL (pytorch/pytorch#186591, tensorflow/hub#884).
* If pip alone installs, a wheel without CUDA libraries loads those of the system. Together with other frameworks, only
  the major of their CUDA limits it, because the names of libraries contain it. Whoever sets up the system makes sure
  that they are found.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from envsolve.model.capability import CodeTarget, ComputeCapability
from envsolve.model.release import (
    CudaLibraries,
    CudnnRelease,
    KnownBad,
    Release,
    Toolkit,
)
from envsolve.model.solution import Machine, Owner, Problem
from envsolve.model.versions import CudaVersion, DriverVersion
from envsolve.resolve import facts
from envsolve.resolve.catalogue import Builds, Catalogue, cudnn_provider
from envsolve.resolve.parts import (
    CUDA,
    CUDNN,
    OWNER,
    PYTHON,
    DriverCeiling,
    DriverFloor,
    GlibcFloor,
    OwnedBy,
    Requirement,
    Served,
    driver_identifier,
    glibc_identifier,
    gpu_identifier,
)

_OWNED = {owner: OwnedBy(owner) for owner in Owner}


class Rules:
    """The requirements of each candidate, for one problem. Facts are put into words only when they are read."""

    def __init__(self, problem: Problem, catalogue: Catalogue, *, by_pip: bool = False) -> None:
        self._problem = problem
        self._by_pip_with_others = by_pip and len(problem.frameworks) > 1
        known = [machine.glibc for machine in problem.machines if machine.glibc is not None]
        self._oldest_glibc = min(known, default=None)
        self._libraries = catalogue.libraries
        self._cuda = catalogue.libraries.cuda
        self._builds = catalogue.builds
        self._gpus = [
            (gpu_identifier(number, gpu), driver_identifier(number), machine, gpu)
            for number, machine in enumerate(problem.machines)
            for gpu, _ in machine.gpus
        ]
        self._glibcs = [glibc_identifier(number) for number, _ in enumerate(problem.machines)]

    def of_release(self, release: Release) -> Iterator[Requirement]:
        """A framework build requires GPUs that it supports, its CUDA and cuDNN, a Python and a C library."""
        builds = self._builds[release.framework]
        if release.cuda is not None:
            yield from self._served_by(release, builds)
            yield from self._libraries_of(release)
        yield Requirement(PYTHON, builds.python_limit(release), partial(facts.pythons, release))
        if release.glibc is not None:
            limit = GlibcFloor(release.glibc)
            for identifier in self._glibcs:
                yield Requirement(identifier, limit, partial(facts.glibc_floor, release, release.glibc))

    def of_toolkit(self, toolkit: Toolkit) -> Iterator[Requirement]:
        """A CUDA toolkit requires a driver at its floor and GPUs that it still compiles for."""
        for number, machine in enumerate(self._problem.machines):
            floor = toolkit.floor(windows=machine.windows_driver)
            yield Requirement(
                driver_identifier(number), DriverFloor(floor), partial(facts.driver_floor, toolkit, floor)
            )
        for identifier, _, _, gpu in self._gpus:
            served = Served(self._libraries.compiles_for(toolkit, gpu))
            yield Requirement(identifier, served, partial(facts.toolkit_reach, toolkit, gpu))

    def of_cudnn(self, release: CudnnRelease) -> Iterator[Requirement]:
        """A cuDNN release requires GPUs that it has code for."""
        for identifier, _, _, gpu in self._gpus:
            served = self._libraries.cudnn_serves(release, gpu, self._problem.platform)
            yield Requirement(identifier, Served(served), partial(facts.cudnn_reach, release, gpu, served=served))

    def of_gpu(self, number: int, machine: Machine, gpu: ComputeCapability) -> Iterator[Requirement]:
        """A GPU requires a driver branch that supports it. Inside WSL2 it must be one that WSL2 passes through."""
        life = self._cuda.life_of(gpu)
        if life is None:
            return
        if machine.windows_driver and not self._problem.platform.is_windows:
            yield Requirement(gpu_identifier(number, gpu), Served(gpu >= facts.OLDEST_IN_WSL2), facts.wsl_reach)
        if life.first_branch is not None:
            first = self._first_release(life.first_branch, machine)
            reason = partial(facts.first_branch, life, first, machine.gpu_name(gpu))
            yield Requirement(driver_identifier(number), DriverFloor(first), reason)
        if life.last_branch is not None:
            limit = DriverCeiling(self._cuda.after(life.last_branch))
            yield Requirement(driver_identifier(number), limit, partial(facts.last_branch, life, machine.gpu_name(gpu)))

    def known_against(self, release: Release) -> tuple[KnownBad, ...]:
        """The known failures of ``release``, for any GPU."""
        return self._builds[release.framework].known_against(release)

    def _served_by(self, release: Release, builds: Builds) -> Iterator[Requirement]:
        against = builds.known_against(release)
        for identifier, driver, machine, gpu in self._gpus:
            bad = next((entry for entry in against if gpu in entry.capabilities), None)
            if bad is not None:
                yield Requirement(identifier, Served(verdict=False), partial(facts.known_to_fail, release, bad))
                continue
            code, ptx = self._libraries.code_for(release.code, gpu)
            if code is None:
                yield self._compiled_by_driver(release, ptx, identifier, driver, machine, gpu)
            elif release.jit:
                yield from self._partly_compiled(release, code, driver, machine, gpu)

    def _compiled_by_driver(
        self,
        release: Release,
        ptx: CodeTarget | None,
        identifier: str,
        driver: str,
        machine: Machine,
        gpu: ComputeCapability,
    ) -> Requirement:
        assert release.cuda is not None
        full = self._full(release.cuda, machine)
        if ptx is None or full is None:
            return Requirement(identifier, Served(verdict=False), partial(facts.no_code, release, gpu))
        return Requirement(driver, DriverFloor(full), partial(facts.served_by_ptx, release, machine, gpu, ptx, full))

    def _partly_compiled(
        self, release: Release, target: CodeTarget, driver: str, machine: Machine, gpu: ComputeCapability
    ) -> Iterator[Requirement]:
        """Some builds have kernels without machine code for a target that their other kernels have."""
        cuda = next((cuda for partly, cuda in release.jit if partly == target), None)
        full = None if cuda is None else self._full(cuda, machine)
        if cuda is not None and full is not None:
            reason = partial(facts.partly_ptx, release, machine, gpu, target, cuda, full)
            yield Requirement(driver, DriverFloor(full), reason)

    def _full(self, cuda: CudaVersion, machine: Machine) -> DriverVersion | None:
        toolkit = self._libraries.toolkit(cuda)
        return None if toolkit is None else toolkit.full(windows=machine.windows_driver)

    def _libraries_of(self, release: Release) -> Iterator[Requirement]:
        assert release.cuda is not None
        assert release.cuda_requires is not None
        if self._by_pip_with_others and release.cuda_libraries is CudaLibraries.NONE:
            limit = self._libraries.of_major(release.cuda.major)
            yield Requirement(CUDA, limit, partial(facts.built_for, release))
            return
        limit = self._libraries.toolkit_limit(release.cuda_requires, release.cuda)
        yield Requirement(CUDA, limit, partial(facts.built_for, release))
        if release.cudnn_requires is not None:
            provider = cudnn_provider(release)
            cudnn = self._libraries.cudnn_limit(
                release.cudnn_requires, release.cuda.major, provider, self._problem.platform, self._oldest_glibc
            )
            yield Requirement(CUDNN, cudnn, partial(facts.cudnn_needed, release, cudnn))
        owner = owner_of(release)
        yield Requirement(OWNER, _OWNED[owner], partial(facts.owner, release, owner))

    def _first_release(self, number: int, machine: Machine) -> DriverVersion:
        branch = next((entry for entry in self._cuda.branches if entry.branch == number), None)
        if branch is None:
            return DriverVersion((number,), str(number))
        return branch.first(windows=machine.windows_driver)


def owner_of(release: Release) -> Owner:
    """Whose packages bring the CUDA of a GPU build. A wheel without CUDA libraries uses those of conda-forge."""
    conda = not release.source.is_wheel or release.cuda_libraries is CudaLibraries.NONE
    return Owner.CONDA if conda else Owner.PIP
