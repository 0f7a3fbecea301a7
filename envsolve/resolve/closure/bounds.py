"""What a stack requires of the packages around it, beyond their own metadata.

Metadata leaves the libraries of a GPU build open: pip takes the newest, whatever the GPU and the driver. Here every
such package is limited by the solved stack: its CUDA major, the toolkit, a cuDNN and an NCCL with code for the GPUs. Of
packages that install the same module, only one is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from packaging.version import Version

from envsolve.frameworks import FRAMEWORKS
from envsolve.matrix.tables import ComponentTable, CudaTable
from envsolve.model.build_facts import BuildFacts
from envsolve.model.capability import ComputeCapability
from envsolve.model.names import normalized
from envsolve.model.need import Need, parse_need
from envsolve.model.release import CudnnRelease, Release
from envsolve.model.solution import Problem, Solution
from envsolve.model.versions import CudaVersion
from envsolve.resolve.closure.world import Limit

THE_STACK = "the stack"
"""The origin of requirements of a stack's builds."""
NEVER = "<0.dev0"
"""A specifier that no version meets."""
_MAJOR_IN_NAME = re.compile(r"-cu(?:da)?(\d\d)(?:\d|x)?(?=-|\Z)")
"""Matches nvidia-cudnn-cu12, jax-cuda12-plugin, cupy-cuda12x, cupy-cuda112."""
_FIRST_WITHOUT_SUFFIX = 13
"""From CUDA 13 on, the names of NVIDIA's toolkit packages have no -cuNN."""
_OF_THE_MAJOR = ("cuda-toolkit", "cuda-bindings", "cuda-python")
"""Packages with the same major version as CUDA."""
_COMPILERS = ("nvidia-cuda-nvrtc", "nvidia-nvvm", "nvidia-cuda-nvcc")
"""Packages that make PTX. nvJitLink and nvPTXCompiler make machine code, which every driver of the major runs
(https://docs.nvidia.com/cuda/nvjitlink)."""
_ASSEMBLER = "nvidia-cuda-nvcc-cu"
"""ptxas for CUDA 11 and 12, which makes machine code. Frameworks require a newer one than the libraries they were built
with."""
_FIRST_NCCL_WITHOUT_MAXWELL = "2.28.3"
_PASCAL = ComputeCapability(6, 0)
_NONE = CudaVersion(0, 0)


FactsOf = Callable[[str], tuple[BuildFacts, ...]]
"""Returns what is known about the builds of a package, by its name."""


def constraints_of(release: Release, facts_of: FactsOf) -> Iterator[Need]:
    """Yield limits on packages with which the wheel of ``release`` breaks and which its metadata does not state."""
    yield from map(parse_need, release.constraints)
    for facts in facts_of(release.package):
        if facts.covers(str(release.version)):
            yield from facts.constraints


def cuda_major_of(name: str) -> int | None:
    """Return the CUDA major in a package name, or None if the name has none."""
    named = _MAJOR_IN_NAME.search(name)
    return None if named is None else int(named[1])


def may_be_installed_with(name: str, major: int, facts_of: FactsOf) -> bool:
    """Whether a package with a CUDA major in its name fits a stack of CUDA ``major``, if nothing else is known.

    A package for a newer CUDA may need a newer driver, so it does not fit, nor does another framework's part. Libraries
    of an older CUDA have different names (libcublas.so.12). For those that do not, the matrix has a place.
    """
    named = cuda_major_of(name)
    if any(it.cuda is not None for it in facts_of(name)):
        return True
    if named is None or named == major:
        return True
    is_of_framework = any(it.is_installed_as(name) or it.has_gpu_code(name) for it in FRAMEWORKS.values())
    return named < major and not is_of_framework


def without_code(
    name: str, gpus: Collection[ComputeCapability], cuda: CudaVersion, drivers: Drivers, facts_of: FactsOf
) -> Iterator[tuple[BuildFacts, str]]:
    """Yield the builds of a package without code for one of ``gpus`` in a stack of ``cuda``, each with a sentence."""
    looked_into = [it for it in facts_of(name) if it.code is not None]
    lacking = [(it, it.without_code_for(gpus, cuda, drivers.compile)) for it in looked_into]
    of_all = all(gpu is not None for _, gpu in lacking)
    for facts, gpu in lacking:
        if gpu is not None and of_all and facts.without_code_for([gpu], cuda) is not None:
            yield facts, f"no known {name} wheel has code for compute capability {gpu}"
        elif gpu is not None:
            yield facts, f"{name}{facts.versions} {_lack(facts, gpu, cuda, drivers)}"


def _lack(facts: BuildFacts, gpu: ComputeCapability, cuda: CudaVersion, drivers: Drivers) -> str:
    """Half a sentence about builds that do not run on ``gpu``."""
    if facts.without_code_for([gpu], cuda) is not None:
        return f"has no code for compute capability {gpu}"
    has = f"has only PTX of CUDA {facts.ptx_cuda} for compute capability {gpu}"
    return f"{has}, the driver compiles that of CUDA {drivers.compile} at most"


class Drivers(NamedTuple):
    """What all drivers of a problem support, None if one is unknown.

    ``run`` is the newest CUDA major whose machine code they run. ``compile`` is the newest toolkit whose PTX they
    compile.
    """

    run: int | None = None
    compile: CudaVersion | None = None


def drivers_of(problem: Problem, table: CudaTable) -> Drivers:
    """Return what the drivers of ``problem`` support."""
    known = [(it.driver, it.windows_driver) for it in problem.machines if it.driver is not None]
    if not known or len(known) < len(problem.machines):
        return Drivers()
    run, compiled = [], []
    for driver, windows in known:
        runs = (it.version.major for it in table.toolkits if it.floor(windows=windows) <= driver)
        run.append(max(runs, default=0))
        full = ((it.version, it.full(windows=windows)) for it in table.toolkits)
        compiled.append(max((cuda for cuda, needed in full if needed is not None and needed <= driver), default=_NONE))
    return Drivers(min(run), min(compiled))


def _have_no_code(facts: BuildFacts, known: Iterable[BuildFacts], gpus: Iterable[ComputeCapability]) -> bool:
    """Whether, as far as ``known``, the versions of ``facts`` have no code for one of ``gpus``, whatever the CUDA."""
    public = str(facts.versions).removeprefix("==").partition("+")[0]
    alike = [it for it in known if it.versions == facts.versions or (facts.are_from_file_name and it.covers(public))]
    codes = [it.code for it in alike if it.code is not None]
    return any(all(it.runs_as(gpu) is None for it in codes) for gpu in gpus)


def _excluding(facts: BuildFacts, because: str, labelled: frozenset[str]) -> Limit:
    """A limit that excludes the builds with ``facts``, except ``labelled`` ones, which were built elsewhere.

    Facts that name a label are about that build.
    """
    exempt = frozenset() if "+" in str(facts.versions) else labelled
    return Limit(str(facts.versions), because, is_exclusion=True, exempt=exempt)


class Bounds:
    """The limits that ``solution`` sets on packages by name, computed on demand.

    ``table`` and ``components`` contain toolkits and their parts, which are read only if needed. ``rivals`` maps each
    package of the stack to packages that install the same module. ``facts_of`` returns requirements of builds that
    metadata does not state. ``with_stack`` are packages whose builds come from the source of the stack and are all for
    its CUDA.
    """

    def __init__(
        self,
        solution: Solution,
        table: Callable[[], CudaTable],
        components: Callable[[], ComponentTable],
        cudnn: Iterable[CudnnRelease],
        rivals: Mapping[str, frozenset[str]],
        facts_of: FactsOf,
        with_stack: Collection[str] = (),
    ) -> None:
        self._solution = solution
        self._table = table
        self._components = components
        self._cudnn = tuple(cudnn)
        self._rivals = rivals
        self._facts_of = facts_of
        self._with_stack = with_stack
        self._known: dict[str, tuple[Limit, ...]] = {}

    def of(self, name: str) -> tuple[Limit, ...]:
        """Return the limits of the stack on the package ``name``."""
        if name not in self._known:
            self._known[name] = tuple(self._worked_out(name))
        return self._known[name]

    def _worked_out(self, name: str) -> Iterator[Limit]:
        for package, others in self._rivals.items():
            if name in others:
                yield Limit(
                    NEVER, f"{package} of this stack installs the same module, and the two overwrite each other"
                )
        yield from self._of_releases(name)
        toolkit = self._solution.toolkit
        if toolkit is None:
            return
        yield from self._of_builds(name, toolkit.version)
        major = toolkit.version.major
        named = cuda_major_of(name)
        if not may_be_installed_with(name, major, self._facts_of):
            yield Limit(NEVER, f"it is for CUDA {named}, and this stack has CUDA {major}")
        elif name in _OF_THE_MAJOR:
            yield Limit(f"=={major}.*", f"this stack has CUDA {major}")
        if self._follows_toolkit(name):
            yield self._of_part(name)
        elif named is None and major < _FIRST_WITHOUT_SUFFIX and self._is_part_without_suffix(name):
            yield Limit(
                NEVER, f"without -cu{major} in its name it is for CUDA 13 or newer, this stack has CUDA {major}"
            )
        if name == f"nvidia-cudnn-cu{major}":
            yield from self._of_cudnn()
        if name == f"nvidia-nccl-cu{major}":
            yield from self._of_nccl()

    def _of_releases(self, name: str) -> Iterator[Limit]:
        """What the matrix knows about a wheel and its metadata does not state.

        Rows for conda builds use conda's names.
        """
        wheels = (choice.release for choice in self._solution.choices if choice.release.source.is_wheel)
        for release in wheels:
            for need in constraints_of(release, self._facts_of):
                if need.name == name:
                    yield Limit(need.specifier, f"{release.package} {release.version} breaks without {need}")

    def _of_builds(self, name: str, cuda: CudaVersion) -> Iterator[Limit]:
        """Exclude versions of a package whose builds are for another CUDA, driver or GPU."""
        if name in self._with_stack:
            return
        known = self._facts_of(name)
        labelled = frozenset(str(it.versions).removeprefix("==") for it in known if it.are_from_file_name)
        for facts, because in without_code(name, self._solution.problem.gpus, cuda, self._drivers, self._facts_of):
            limit = _excluding(facts, because, labelled)
            yield limit._replace(is_of_gpu=_have_no_code(facts, known, self._solution.problem.gpus))
        for facts in known:
            if not facts.go_with(cuda):
                because = f"{name}{facts.versions} loads the libraries of {facts.cuda_text}, this stack has CUDA {cuda}"
                yield _excluding(facts, because, labelled)
            if (too_old := self._driver_is_too_old(facts)) is not None:
                yield _excluding(facts, f"{name}{facts.versions} {too_old}", labelled)

    def _driver_is_too_old(self, facts: BuildFacts) -> str | None:
        """Half a sentence about a runtime that is part of a build and too new for the driver or the stack's CUDA."""
        toolkit = self._solution.toolkit
        if facts.linked_cuda is None or toolkit is None:
            return None
        newest = self._drivers.run
        limit = (
            f"this stack is for CUDA {toolkit.version}" if newest is None else f"the driver runs CUDA {newest} at most"
        )
        fits = facts.run_with(newest or toolkit.version.major)
        return None if fits else f"has the runtime of CUDA {facts.linked_cuda} linked in, {limit}"

    def lost(self, name: str, version: str) -> Iterator[str]:
        """Yield what a version of a package lacks because its builds are for another CUDA, driver or GPU."""
        toolkit = self._solution.toolkit
        if toolkit is None or name in self._with_stack:
            return
        for facts in self._facts_of(name):
            if not facts.loss or not facts.covers(version):
                continue
            gpu = facts.without_code_for(self._solution.problem.gpus, toolkit.version, self._drivers.compile)
            if not facts.go_with(toolkit.version):
                yield f"{name} {version} loads the libraries of {facts.cuda_text}: {facts.loss}"
            elif gpu is not None:
                yield f"{name} {version} {_lack(facts, gpu, toolkit.version, self._drivers)}: {facts.loss}"
            elif (too_old := self._driver_is_too_old(facts)) is not None:
                yield f"{name} {version} {too_old}: {facts.loss}"

    def _follows_toolkit(self, name: str) -> bool:
        """Whether a package must not be newer than the stack's toolkit: a compiler that makes PTX on the machine.

        A driver reads PTX only up to its own CUDA, but runs the machine code of its whole major. So the libraries of a
        newer toolkit of that major are fine (https://docs.nvidia.com/deploy/cuda-compatibility, minor-version).
        """
        if not name.startswith(_COMPILERS):
            return False
        compiled = any(it.startswith("compute_") for choice in self._solution.choices for it in choice.runs_as.values())
        return compiled and name in self._toolkit_parts

    @cached_property
    def _drivers(self) -> Drivers:
        return drivers_of(self._solution.problem, self._table())

    @cached_property
    def _toolkit_parts(self) -> Mapping[str, Version]:
        """The parts of the stack's toolkit, each with the newest version in any release of the toolkit."""
        assert self._solution.toolkit is not None
        cuda = self._solution.toolkit.version
        found = [
            (it.package, it.version)
            for release in self._components().releases
            if release.cuda == cuda
            for it in release.components
        ]
        found += [
            (it.package, version) for it in self._components().patches if it.cuda == cuda for version in it.versions
        ]
        newest: dict[str, Version] = {}
        for package, version in found:
            name = normalized(package)
            newest[name] = max(version, newest.get(name, version))
        return {name: version for name, version in newest.items() if not name.startswith(_ASSEMBLER)}

    def _is_part_without_suffix(self, name: str) -> bool:
        return name.startswith("nvidia-") and name in self._parts_without_suffix

    @cached_property
    def _parts_without_suffix(self) -> frozenset[str]:
        """The names of toolkit packages from CUDA 13 on."""
        releases = (it for it in self._components().releases if it.cuda.major >= _FIRST_WITHOUT_SUFFIX)
        return frozenset(normalized(part.package) for release in releases for part in release.components)

    def _of_part(self, name: str) -> Limit:
        """Limit a part to the toolkit's version: a run-time compiler must not be newer than the driver can read."""
        assert self._solution.toolkit is not None
        cuda = self._solution.toolkit.version
        newest = self._toolkit_parts[name]
        *parts, last = newest.release
        after = ".".join(map(str, (*parts, last + 1)))
        return Limit(f"<{after}", f"{newest} is the last of CUDA {cuda}, the toolkit of this stack")

    def _of_cudnn(self) -> Iterator[Limit]:
        bound, cudnn = self._solution.cudnn_bound, self._solution.cudnn
        if bound is None or cudnn is None:
            return
        if bound.dropped is not None:
            yield Limit(f"<{bound.below}", f"cuDNN {bound.below} has no code for compute capability {bound.dropped}")
            return
        known = max(it.version for it in self._cudnn if it.cuda_major == cudnn.cuda_major)
        after = f"{known.major}.{known.minor + 1}"
        yield Limit(f"<{after}", f"the matrix knows the GPUs of cuDNN up to {known.major}.{known.minor}")

    def _of_nccl(self) -> Iterator[Limit]:
        """NCCL for CUDA 12 has code for 5.x up to 2.27.7 (fat binaries of its 31 wheels, libraries.toml)."""
        oldest = min(self._solution.problem.gpus, default=_PASCAL)
        if oldest < _PASCAL:
            because = f"NCCL {_FIRST_NCCL_WITHOUT_MAXWELL} has no code for compute capability {oldest}"
            yield Limit(f"<{_FIRST_NCCL_WITHOUT_MAXWELL}", because)
