"""Which of several working stacks is better. Smaller keys are tried first.

With several frameworks, the versions are decided first, in the order requested, and then the builds of these versions.

A build of a framework is chosen, under the policy ``newest-framework``, by:

1. the sources the user named, in the user's order
2. the newest release
3. machine code for every GPU before PTX that the driver must compile
4. a CUDA that every driver supports in full before one that needs minor-version compatibility
5. the newest CUDA
6. the default wheel of the Python index before a variant of PyTorch's own
7. more Pythons, then the name

The toolkit of the environment is chosen by:

1. whether it compiles for every GPU (its libraries contain machine code for them)
2. whether every driver supports it in full
3. whether a framework was built with it
4. the newest

``newest-cuda`` requires each toolkit in turn, the newest first, and then continues as above.

``widest-gpu`` adds criteria in front. For a build: the most compute capabilities that it supports together with the
widest toolkit and cuDNN it admits, then the lowest driver. For a toolkit and a cuDNN: the most capabilities they have
code for, and for a toolkit then the lowest driver. With several frameworks, the reach of the first counts before that
of the next.

A Python that is younger than a year on the day of the matrix comes last. Most packages have no wheels for it yet, so
releases from before it would look like the newest that it can have.

``locked`` prefers the locked package, version and build, then that package and version, then that version of the
framework. The locked Python and toolkit come first as well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from packaging.version import Version

from envsolve.model.capability import ComputeCapability
from envsolve.model.release import CudnnRelease, Release, Source, Toolkit
from envsolve.model.request import LockedVersions, Policy
from envsolve.model.solution import Problem, Solution
from envsolve.model.versions import CudaVersion
from envsolve.resolve.catalogue import Builds, Libraries, cudnn_provider
from envsolve.resolve.parts import ToolkitIn

_SOURCES = {source: number for number, source in enumerate(Source)}

_FIRST_OF_AN_OCTOBER = Version("3.9")

Wanted = Callable[[Version, Sequence[Release]], Sequence[Release]]
"""A filter: the builds of one version that may be used at all."""


class Preference:
    """The order of candidates for one problem. ``ranked`` sources come first, in their order."""

    def __init__(
        self,
        problem: Problem,
        libraries: Libraries,
        ranked: Sequence[Source],
        policy: Policy,
        locked: LockedVersions,
        matrix_date: str,
    ) -> None:
        self._libraries = libraries
        self._machines = problem.machines
        self._platform = problem.platform
        self._ranked = tuple(ranked)
        self._policy = policy
        self._locked = {package: (version, build) for package, version, build in locked.packages}
        self._locked_python, self._locked_cuda = locked.python, locked.cuda
        self._matrix_date = matrix_date
        self._gpus = problem.gpus
        self._glibc = min((it.glibc for it in problem.machines if it.glibc is not None), default=None)
        self._in_full: dict[CudaVersion, bool] = {}

    def builds(self, builds: Builds, wanted: Wanted) -> Iterator[Release]:
        """The builds of a framework, best first. Usually only the newest few are read."""
        if self._policy is Policy.WIDEST_GPU:
            yield from sorted(self._all(builds, wanted), key=self._by_reach)
        elif self._policy is Policy.LOCKED and self._locked:
            yield from sorted(self._all(builds, wanted), key=self._by_change)
        else:
            yield from self._all(builds, wanted)

    def level(self, release: Release) -> object:
        """What is compared before the choice between builds: source and version.

        Under ``widest-gpu`` and ``locked`` it is their key, and then the version.
        """
        if self._policy is Policy.WIDEST_GPU:
            return (*self._by_reach(release), release.version)
        if self._policy is Policy.LOCKED and self._locked:
            return (*self._by_change(release), release.version)
        return (release.source if self._ranked else None, release.version)

    def _all(self, builds: Builds, wanted: Wanted) -> Iterator[Release]:
        for source in self._ranked or (None,):
            for version, releases in builds.by_version:
                found = wanted(version, releases)
                if source is not None:
                    found = [release for release in found if release.source is source]
                yield from found if len(found) < 2 else sorted(found, key=self._of_one_version)  # noqa: PLR2004

    def _of_one_version(self, release: Release) -> tuple[object, ...]:
        """The key of a build among those of its version."""
        code_for = self._libraries.code_for
        return (
            not all(code_for(release.code, gpu)[0] for gpu in self._gpus),
            release.cuda is not None and not self.supported_in_full(release.cuda),
            _oldest_last(release.cuda),
            _SOURCES[release.source],
            -len(release.pythons),
            release.build,
            release.package,
        )

    def _by_reach(self, release: Release) -> tuple[object, ...]:
        """The key for ``widest-gpu``. The sort is stable, so equal builds stay in the order of ``newest-framework``."""
        rank = self._ranked.index(release.source) if self._ranked else 0
        if release.cuda is None or release.cuda_requires is None:
            return (rank, 0, ())
        limit = self._libraries.toolkit_limit(release.cuda_requires, release.cuda)
        toolkits = [it for it in self._libraries.cuda.toolkits if limit.admits(it) and self._suits(it)]
        reaches = [(self._reach(release, toolkit), self._floor(toolkit)) for toolkit in toolkits]
        widest = max((reach for reach, _ in reaches), default=0)
        return (rank, -widest, min((floor for reach, floor in reaches if reach == widest), default=()))

    def _suits(self, toolkit: Toolkit) -> bool:
        """Whether the machines of the request can use ``toolkit``."""
        return all(self._libraries.compiles_for(toolkit, gpu) for gpu in self._gpus) and all(
            machine.driver is None or machine.driver.meets(toolkit.floor(windows=machine.windows_driver))
            for machine in self._machines
        )

    def _reach(self, release: Release, toolkit: Toolkit) -> int:
        """How many compute capabilities a build supports with ``toolkit`` and the widest cuDNN for the request."""
        lives = [it.capability for it in self._libraries.cuda.architectures]
        served = [gpu for gpu in lives if self._serves(release, toolkit, gpu)]
        if release.cudnn_requires is None:
            return len(served)
        limit = self._libraries.cudnn_limit(
            release.cudnn_requires, toolkit.version.major, cudnn_provider(release), self._platform, self._glibc
        )
        admitted = [it for it in self._libraries.cudnn if limit.admits(it)]
        suitable = [it for it in admitted if all(self._cudnn_serves(it, gpu) for gpu in self._gpus)]
        return max((sum(self._cudnn_serves(it, gpu) for gpu in served) for it in suitable), default=0)

    def _serves(self, release: Release, toolkit: Toolkit, gpu: ComputeCapability) -> bool:
        code, ptx = self._libraries.code_for(release.code, gpu)
        return bool(code or ptx) and self._libraries.compiles_for(toolkit, gpu)

    def _cudnn_serves(self, release: CudnnRelease, gpu: ComputeCapability) -> bool:
        return self._libraries.cudnn_serves(release, gpu, self._platform)

    def _floor(self, toolkit: Toolkit) -> tuple[tuple[int, ...], ...]:
        windows = self._platform.is_windows
        return (toolkit.floor(windows=windows).parts,)

    def _by_change(self, release: Release) -> tuple[object, ...]:
        """The key for ``locked``. The sort is stable, so equal builds stay in the order of ``newest-framework``.

        A build is identified by its build string, or by the version that names it, and by the CUDA it runs with.
        """
        rank = self._ranked.index(release.source) if self._ranked else 0
        version, build = self._locked.get(release.package, ("", ""))
        same = version == str(release.version)
        named = version == str(release.full_version)
        very = (named or same) and fnmatchcase(build, release.build_string) if build else named
        elsewhere = str(release.version) in self._locked_versions(release)
        return (rank, not very, not same, not elsewhere, not self._runs_with_locked_cuda(release))

    def _runs_with_locked_cuda(self, release: Release) -> bool:
        if self._locked_cuda is None or release.cuda_requires is None:
            return True
        limit = self._libraries.toolkit_limit(release.cuda_requires, release.cuda)
        return self._locked_cuda in map(str, limit.admitted)

    def _locked_versions(self, release: Release) -> set[str]:
        """The locked versions of this framework under any package name: pytorch and torch are one framework."""
        from envsolve.frameworks import packages_of  # slow, and only needed with a lock

        names = {release.package, release.framework, *packages_of(release.framework)}
        return {self._locked[name][0].partition("+")[0] for name in names if name in self._locked}

    def toolkits(self, toolkits: Iterable[Toolkit], limits: Iterable[object]) -> list[Toolkit]:
        """Return toolkits that all fit, best first, given the limits that the chosen frameworks set."""
        built = {limit.built for limit in limits if isinstance(limit, ToolkitIn)}
        return sorted(toolkits, key=lambda toolkit: self._of_toolkit(toolkit, built))

    def _of_toolkit(self, toolkit: Toolkit, built: Collection[CudaVersion | None]) -> tuple[object, ...]:
        return (
            *self._of_policy(toolkit),
            not all(self._libraries.compiles_for(toolkit, gpu) for gpu in self._gpus),
            not self.supported_in_full(toolkit.version),
            toolkit.version not in built,
            _oldest_last(toolkit.version),
        )

    def _of_policy(self, toolkit: Toolkit) -> tuple[object, ...]:
        """The criteria that the policy adds in front."""
        if self._policy is Policy.NEWEST_CUDA:
            return _oldest_last(toolkit.version)
        if self._policy is Policy.WIDEST_GPU:
            return (-len(toolkit.compiles_for), self._floor(toolkit))
        return (self._policy is Policy.LOCKED and str(toolkit.version) != self._locked_cuda,)

    def cudnns(self, newest_first: Sequence[CudnnRelease]) -> Sequence[CudnnRelease]:
        """Return the cuDNN releases, best first: the newest, or under ``widest-gpu`` the newest of the widest."""
        if self._policy is not Policy.WIDEST_GPU:
            return newest_first
        lives = [it.capability for it in self._libraries.cuda.architectures]
        return sorted(newest_first, key=lambda it: -sum(self._cudnn_serves(it, gpu) for gpu in lives))

    def pythons(self, minors: Iterable[Version]) -> list[Version]:
        """Return the Python minors, best first: the newest that is a year old, or under ``locked`` the locked one."""
        newest_first = sorted(minors, reverse=True)
        newest_first.sort(key=lambda minor: not is_a_year_old(minor, self._matrix_date))
        if self._policy is Policy.LOCKED:
            newest_first.sort(key=lambda minor: str(minor) != self._locked_python)
        return newest_first

    def supported_in_full(self, cuda: CudaVersion) -> bool:
        """Whether every machine's driver supports ``cuda`` in full. An unknown driver counts as supporting it."""
        known = self._in_full.get(cuda)
        if known is None:
            toolkit = self._libraries.toolkit(cuda)
            known = self._in_full[cuda] = all(
                machine.driver is None
                or (
                    toolkit is not None
                    and (full := toolkit.full(windows=machine.windows_driver)) is not None
                    and machine.driver.meets(full)
                )
                for machine in self._machines
            )
        return known


def is_a_year_old(minor: Version, date: str) -> bool:
    """Whether the first release of a Python minor is a year old on ``date``, a day such as ``2026-11-20``.

    Since 3.9 in 2020 there is one every October (https://peps.python.org/pep-0602/). The day differs, so releases count
    from November on.
    """
    return minor < _FIRST_OF_AN_OCTOBER or date >= f"{2012 + minor.minor}-11-01"


def reach(solution: Solution, libraries: Libraries) -> tuple[int, tuple[int, ...]]:
    """Return how many compute capabilities a stack supports, and a key that is higher for a lower minimum driver."""
    toolkit, cudnn = solution.toolkit, solution.cudnn
    if toolkit is None:
        return 0, ()
    gpus = [
        gpu
        for gpu in (life.capability for life in libraries.cuda.architectures)
        if libraries.compiles_for(toolkit, gpu)
        and (cudnn is None or libraries.cudnn_serves(cudnn, gpu, solution.problem.platform))
        and all(any(libraries.code_for(choice.release.code, gpu)) for choice in solution.choices)
    ]
    floor = toolkit.floor(windows=solution.problem.platform.is_windows)
    return len(gpus), tuple(-part for part in floor.parts)


def unchanged_packages(solution: Solution, locked: LockedVersions) -> int:
    """Return how many locked packages a stack has at their locked version."""
    versions = {package: version for package, version, _ in locked.packages}
    releases = [choice.release for choice in solution.choices]
    return sum(versions.get(it.package) in (str(it.version), str(it.full_version)) for it in releases)


def _oldest_last(cuda: CudaVersion | None) -> tuple[int, int]:
    return (0, 0) if cuda is None else (-cuda.major, -cuda.minor)
