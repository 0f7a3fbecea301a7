"""A second opinion on the solver's answers: the rules of one GPU and one driver, applied to every build.

Nothing here comes from ``envsolve.resolve``, and nothing searches: a rule is a function, and an answer is the best of
the builds that pass every rule. No rule depends on another's outcome (a toolkit is admitted or not whatever the cuDNN),
so what the build and the GPU decide alone is found once, and only the driver is left for each question of a grid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

from packaging.version import Version

from envsolve.matrix import Matrix
from envsolve.matrix.tables import CudaTable
from envsolve.model.capability import CodeTarget, ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.release import CudaLibraries, CudnnRelease, KnownBad, Release, Source, Toolkit
from envsolve.model.versions import CudaVersion

Driver = tuple[int, ...]
"""The parts of a driver's version that are known: (580, 65, 6)."""
Drivers = dict[CudaVersion, Driver]
Rank = tuple[bool, bool, CudaVersion, int, int]

JETSON_ONLY = {(3, 2), (5, 3), (6, 2), (7, 2), (8, 7), (8, 8), (10, 1)}
SOURCES = list(Source)
YOUNG_PYTHONS = {"3.15"}
"""Released on 2026-10-01 (https://peps.python.org/api/release-cycle.json), which no matrix before 2027-10 makes old."""


class Stack(NamedTuple):
    """The answer, in the form that is compared."""

    version: str
    source: str
    build: str
    package: str
    toolkit: str
    cudnn: str | None
    python: str


class Cause(StrEnum):
    """Why a cell has no answer: the first of these rules, in this order, that excludes the last build."""

    NO_BUILD = "no build known there"
    LIFE = "the driver does not drive the GPU"
    KNOWN_BAD = "every build is known to fail on the GPU"
    CODE = "no build holds code for the GPU"
    TOOLKIT = "no toolkit for the GPU"
    CUDNN = "no cuDNN for the GPU"
    FLOOR = "driver below every floor"
    CEILING = "every floor is above the GPU's last driver"


class Life(NamedTuple):
    """The drivers of a GPU: from ``first`` on, with a first number below ``ceiling``; None for no limit."""

    first: Driver | None
    ceiling: int | None


class Fit(NamedTuple):
    """A build that a GPU does not exclude, and all remaining requirements on the driver."""

    build: Release
    machine_code: bool
    floor: Driver | None
    toolkits: list[CudaVersion]
    cudnns: list[Version] | None

    @property
    def cudnn(self) -> str | None:
        """The newest cuDNN; None if the build uses none."""
        return str(max(self.cudnns)) if self.cudnns else None


class Once(NamedTuple):
    """What an environment has once, as far as its builds leave it open; None if no build cares."""

    owners: frozenset[str] | None = None
    toolkits: frozenset[CudaVersion] | None = None
    cudnns: frozenset[Version] | None = None
    pythons: frozenset[str] | None = None

    def and_of(self, other: Once) -> Once:
        """The intersection of this and ``other``."""
        return Once(*map(_common, self, other))

    @property
    def is_possible(self) -> bool:
        """Whether every part has something left."""
        return all(left is None or left for left in self)


def _common(one: frozenset[Any] | None, other: frozenset[Any] | None) -> frozenset[Any] | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def meets(driver: Driver, floor: Driver) -> bool:
    """Whether ``driver`` is at least ``floor``; a missing part counts as equal."""
    for own, least in zip(driver, floor, strict=False):
        if own != least:
            return own > least
    return True


def allowed(driver: Driver | None, ceiling: int | None, floor: Driver | None) -> bool:
    """Whether ``driver``, or for an unknown one any driver below ``ceiling``, meets ``floor``."""
    if floor is None:
        return True
    if driver is None:
        return ceiling is None or floor[0] < ceiling
    return meets(driver, floor)


def serves_as_sass(target: CodeTarget, gpu: ComputeCapability) -> bool:
    """Whether machine code for ``target`` runs on ``gpu``."""
    capability, suffix = target
    if capability == gpu:
        return True
    if suffix == "a" or tuple(capability) in JETSON_ONLY or tuple(gpu) in JETSON_ONLY:
        return False
    return capability.major == gpu.major and gpu.minor > capability.minor


def serves_as_ptx(target: CodeTarget, gpu: ComputeCapability) -> bool:
    """Whether PTX for ``target`` can be compiled for ``gpu``."""
    capability, suffix = target
    if capability == gpu:
        return True
    if suffix == "a" or (suffix == "f" and capability.major != gpu.major):
        return False
    return (gpu.major, gpu.minor) > (capability.major, capability.minor)


@cache
def newest_sass(targets: tuple[CodeTarget, ...], gpu: ComputeCapability) -> CodeTarget | None:
    """The newest machine code that runs on ``gpu``. Builds share a few dozen lists of targets."""
    return max((target for target in targets if serves_as_sass(target, gpu)), default=None)


def floors_of(cuda: CudaTable, *, windows: bool) -> Drivers:
    """The oldest driver for each toolkit."""
    return {it.version: (it.windows_floor if windows else it.linux_floor).parts for it in cuda.toolkits}


def full_drivers(cuda: CudaTable, *, windows: bool) -> Drivers:
    """The driver that fully supports each toolkit, if NVIDIA states one."""
    named = {it.version: it.windows_full if windows else it.linux_full for it in cuda.toolkits}
    return {version: driver.parts for version, driver in named.items() if driver is not None}


def life_of(cuda: CudaTable, gpu: ComputeCapability, *, windows: bool) -> Life:
    """The drivers that support ``gpu``; no limits for Jetson modules."""
    (row,) = [row for row in cuda.architectures if row.capability == gpu]
    first: Driver | None = None
    if row.first_branch is not None:
        first = (row.first_branch,)
        for branch in cuda.branches:
            release = branch.first_windows if windows else branch.first_linux
            if branch.branch == row.first_branch and release is not None:
                first = release.parts
    if row.last_branch is None:
        return Life(first, None)
    later = [branch.branch for branch in cuda.branches if branch.branch > row.last_branch]
    return Life(first, min(later) if later else row.last_branch + 1)


def lives(driver: Driver | None, life: Life) -> bool:
    """Whether ``driver`` supports a GPU with these drivers; an unknown one may."""
    if driver is None:
        return True
    return (life.first is None or meets(driver, life.first)) and (life.ceiling is None or driver[0] < life.ceiling)


def is_known_bad(build: Release, entries: Iterable[KnownBad], gpu: ComputeCapability | None) -> bool:
    """Whether ``build`` fails everywhere (``gpu`` None) or on ``gpu`` in particular."""
    for entry in entries:
        concerned = gpu in entry.capabilities if gpu is not None else not entry.capabilities
        if (
            concerned
            and (not entry.sources or build.source in entry.sources)
            and (not entry.builds or build.build in entry.builds)
            and (not entry.platforms or build.platform in entry.platforms)
            and entry.versions.contains(str(build.version), prereleases=True)
        ):
            return True
    return False


def code_for(build: Release, gpu: ComputeCapability, full: Drivers) -> tuple[bool, Driver | None] | None:
    """Whether machine code runs on ``gpu``, and the driver it needs; None if no code of ``build`` does."""
    sass = newest_sass(build.code.sass, gpu)
    if sass is not None:
        parts_as_ptx = dict(build.jit)
        return True, full.get(parts_as_ptx[sass]) if sass in parts_as_ptx else None
    if not any(serves_as_ptx(target, gpu) for target in build.code.ptx):
        return None
    driver = full.get(build.cuda) if build.cuda else None
    return None if driver is None else (False, driver)


def requires_toolkit(build: Release, toolkit: Toolkit) -> bool:
    """Whether the dependencies of ``build`` allow ``toolkit``."""
    return build.cuda_requires is not None and build.cuda_requires.contains(str(toolkit.version))


@cache
def _targets(capabilities: tuple[ComputeCapability, ...]) -> tuple[CodeTarget, ...]:
    return tuple(map(CodeTarget, capabilities))


def toolkit_serves(toolkit: Toolkit, gpu: ComputeCapability) -> bool:
    """Whether ``toolkit`` compiles machine code that runs on ``gpu``."""
    return newest_sass(_targets(toolkit.compiles_for), gpu) is not None


def requires_cudnn(build: Release, cudnn: CudnnRelease) -> bool:
    """Whether ``build`` allows ``cudnn`` and whoever must provide it does."""
    if build.cuda is None or build.cudnn_requires is None:
        return False
    if cudnn.cuda_major != build.cuda.major or not build.cudnn_requires.contains(str(cudnn.version)):
        return False
    if build.cuda_libraries is CudaLibraries.BUNDLED or build.source is Source.PYTORCH_CHANNEL:
        return True
    if build.cuda_libraries is CudaLibraries.NONE or build.source is Source.CONDA_FORGE:
        return build.platform in cudnn.conda_platforms
    return cudnn.on_pypi


def cudnn_serves(cudnn: CudnnRelease, gpu: ComputeCapability, platform: Platform) -> bool:
    """Whether ``cudnn`` has kernels for ``gpu``."""
    known_family = gpu.major <= cudnn.newest.major
    code = cudnn.code
    if platform is Platform.LINUX_AARCH64 and cudnn.code_aarch64 is not None:
        code = cudnn.code_aarch64
    if code is None:
        return known_family and gpu >= cudnn.oldest
    if newest_sass(code.sass, gpu) is not None:
        return True
    return known_family and any(serves_as_ptx(target, gpu) for target in code.ptx)


def newest_python(build: Release) -> str:
    """The newest Python that ``build`` was shipped for, except one younger than a year."""
    settled = [it for it in build.pythons if it not in YOUNG_PYTHONS]
    return max(settled or build.pythons, key=lambda text: tuple(int(part) for part in text.split(".")))


def in_full(cuda: CudaVersion | None, driver: Driver | None, full: Drivers) -> bool:
    """Whether ``driver`` fully supports ``cuda``; an unknown driver does, and other toolkits are unknown."""
    if driver is None:
        return True
    least = full.get(cuda) if cuda else None
    return least is not None and meets(driver, least)


def rank_of(build: Release, driver: Driver | None, full: Drivers, *, machine_code: bool) -> Rank:
    """The order of builds of a version, except for the names that break ties."""
    assert build.cuda is not None
    supported = in_full(build.cuda, driver, full)
    return machine_code, supported, build.cuda, -SOURCES.index(build.source), len(build.pythons)


def best_toolkit(toolkits: Iterable[CudaVersion], build: Release, driver: Driver | None, full: Drivers) -> CudaVersion:
    """One that the driver fully supports, then the one that ``build`` was compiled with, then the newest."""
    return max(toolkits, key=lambda it: (in_full(it, driver, full), it == build.cuda, it))


def owner_of(build: Release) -> str:
    """Who installs the CUDA of ``build``: conda for conda packages and for wheels that bring none."""
    from_pip = build.source in (Source.PYPI, Source.PYTORCH, Source.JAX_RELEASES)
    return "pip" if from_pip and build.cuda_libraries is not CudaLibraries.NONE else "conda"


Ranks = tuple[tuple[tuple[int, Version], ...], tuple[tuple[Rank, int], ...]]
"""How good a build is: the rank of its source, its version, its place within its version, then its name."""


def best_together(
    shelves: Sequence[Mapping[Source, Shelf]],
    ranks: Mapping[Source, int],
    gpu: ComputeCapability,
    driver: Driver | None,
) -> tuple[Release, ...] | None:
    """The best builds that one environment can hold, None for none: by their versions, the first framework's before the
    next's, and only then by the builds of these versions.

    ``shelves`` are those of each framework; of sources one with a higher rank comes first. Each build is put beside
    every combination of the frameworks before it; of combinations that leave the same open only the best can become a
    part of the answer.
    """
    together: dict[Once, tuple[Ranks, tuple[Release, ...]]] = {Once(): (((), ()), ())}
    for offered in shelves:
        named = [it for source in ranks if source in offered for it in offered[source].runs(gpu, driver)]
        named.sort(key=lambda it: (it[1].build, it[1].package), reverse=True)
        joined: dict[Once, tuple[Ranks, tuple[Release, ...]]] = {}
        for left, ((versions, details), builds) in together.items():
            for number, (rank, build, admitted) in enumerate(named):
                once = left.and_of(admitted)
                better = ((*versions, (ranks[build.source], build.version)), (*details, (rank, number)))
                if once.is_possible and (once not in joined or joined[once][0] < better):
                    joined[once] = better, (*builds, build)
        together = joined
    return max(together.values(), key=lambda it: it[0])[1] if together else None


class Shelf:
    """The GPU builds of one framework from one source on one platform, each with what it allows for any GPU.

    With ``loosely`` a build that brings no CUDA takes any toolkit of its major, any cuDNN and any owner: it stands for
    several frameworks that pip installs alone, where the system provides what such a build loads.
    """

    def __init__(
        self, matrix: Matrix, framework: str, platform: Platform, source: Source, *, loosely: bool = False
    ) -> None:
        table = matrix.framework(framework, platform)
        self.cuda = matrix.cuda
        self.windows = platform is Platform.WIN_64
        self.full = full_drivers(matrix.cuda, windows=self.windows)
        self.floors = floors_of(matrix.cuda, windows=self.windows)
        self.known_bad = table.known_bad
        self.loosely = loosely
        self.builds: list[tuple[Release, list[Toolkit], list[CudnnRelease]]] = []
        for build in sorted(table.releases, key=lambda it: (it.build, it.package)):
            if build.source is source and build.cuda is not None and not is_known_bad(build, table.known_bad, None):
                toolkits = [toolkit for toolkit in matrix.cuda.toolkits if self._takes(build, toolkit)]
                cudnns = [cudnn for cudnn in matrix.cudnn if requires_cudnn(build, cudnn)]
                self.builds.append((build, toolkits, cudnns))
        self.builds.sort(key=lambda it: it[0].version, reverse=True)
        self._fits: dict[ComputeCapability, list[Fit] | Cause] = {}

    def _is_loose(self, build: Release) -> bool:
        return self.loosely and build.cuda_libraries is CudaLibraries.NONE

    def _takes(self, build: Release, toolkit: Toolkit) -> bool:
        if build.cuda is not None and self._is_loose(build):
            return toolkit.version.major == build.cuda.major
        return requires_toolkit(build, toolkit)

    def answers(self, gpu: ComputeCapability, drivers: Iterable[Driver | None]) -> Iterator[Stack | Cause]:
        """For each driver the best stack for ``gpu``, or the first rule that excludes all."""
        life = life_of(self.cuda, gpu, windows=self.windows)
        fits = self.fits(gpu)
        for driver in drivers:
            if not self.builds:
                yield Cause.NO_BUILD
            elif not lives(driver, life):
                yield Cause.LIFE
            else:
                yield fits if isinstance(fits, Cause) else self.best(fits, driver, life.ceiling)

    def fits(self, gpu: ComputeCapability) -> list[Fit] | Cause:
        """The builds for ``gpu``, newest version first, or the rule that excludes all."""
        if gpu not in self._fits:
            self._fits[gpu] = self._fitting(gpu)
        return self._fits[gpu]

    def _fitting(self, gpu: ComputeCapability) -> list[Fit] | Cause:
        """Rule by rule, to know which excludes all."""
        left = [it for it in self.builds if not is_known_bad(it[0], self.known_bad, gpu)]
        if not left:
            return Cause.KNOWN_BAD
        coded = [(it, code) for it in left if (code := code_for(it[0], gpu, self.full)) is not None]
        if not coded:
            return Cause.CODE
        serving = {it.version for it in self.cuda.toolkits if toolkit_serves(it, gpu)}
        equipped = [
            (it, code, toolkits)
            for it, code in coded
            if (toolkits := [toolkit.version for toolkit in it[1] if toolkit.version in serving])
        ]
        if not equipped:
            return Cause.TOOLKIT
        found = []
        for (build, _, cudnns), (machine_code, floor), toolkits in equipped:
            served = [cudnn.version for cudnn in cudnns if cudnn_serves(cudnn, gpu, build.platform)]
            needs_none = build.cudnn_requires is None or self._is_loose(build)
            if served or needs_none:
                cudnn = None if needs_none else served
                found.append(Fit(build, machine_code, floor, toolkits, cudnn))
        return found or Cause.CUDNN

    def runs(self, gpu: ComputeCapability, driver: Driver | None) -> Iterator[tuple[Rank, Release, Once]]:
        """Every build that runs on ``gpu`` with ``driver``: its rank and what it leaves open."""
        life = life_of(self.cuda, gpu, windows=self.windows)
        fits = self.fits(gpu)
        if isinstance(fits, Cause) or not lives(driver, life):
            return
        for fit in fits:
            met = frozenset(it for it in fit.toolkits if allowed(driver, life.ceiling, self.floors[it]))
            if met and allowed(driver, life.ceiling, fit.floor):
                cudnns = None if fit.cudnns is None else frozenset(fit.cudnns)
                rank = rank_of(fit.build, driver, self.full, machine_code=fit.machine_code)
                owner = None if self._is_loose(fit.build) else frozenset({owner_of(fit.build)})
                yield rank, fit.build, Once(owner, met, cudnns, frozenset(fit.build.pythons))

    def best(self, fits: Iterable[Fit], driver: Driver | None, ceiling: int | None) -> Stack | Cause:
        """The best of the builds for ``driver``, with the best of their toolkits."""
        met = {toolkit for toolkit, floor in self.floors.items() if allowed(driver, ceiling, floor)}
        chosen: tuple[Rank, Fit, list[CudaVersion]] | None = None
        for fit in fits:
            if chosen is not None and fit.build.version < chosen[1].build.version:
                break
            toolkits = [toolkit for toolkit in fit.toolkits if toolkit in met]
            if toolkits and allowed(driver, ceiling, fit.floor):
                rank = rank_of(fit.build, driver, self.full, machine_code=fit.machine_code)
                if chosen is None or rank > chosen[0]:  # of equals the first stays, by the names of build and package
                    chosen = rank, fit, toolkits
        if chosen is None:
            return Cause.CEILING if driver is None else Cause.FLOOR
        _, fit, toolkits = chosen
        build = fit.build
        names = (str(build.version), build.source.value, build.build, build.package)
        toolkit = best_toolkit(toolkits, build, driver, self.full)
        return Stack(*names, str(toolkit), fit.cudnn, newest_python(build))
