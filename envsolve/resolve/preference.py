"""Which of several stacks that all run is the better one. Smaller keys are tried first.

Of several frameworks the versions are decided first, in the order asked, and then the builds of these versions.

A build of a framework, under the policy ``newest-framework``, in order:

1. the sources the user named, in the user's order
2. the newest release
3. machine code for every GPU before PTX that the driver must compile
4. a CUDA that every driver supports in full before one it only runs under minor-version compatibility
5. the newest CUDA
6. the default wheel of the Python index before a variant of PyTorch's own
7. one for more Pythons, then by name

The toolkit of the environment, in order:

1. one that compiles for every GPU (its libraries hold machine code for them)
2. one that every driver supports in full
3. the one a framework was built with
4. the newest

``newest-cuda`` requires each toolkit in turn, the newest first, and goes on as above.

``widest-gpu`` puts in front, for a build: the most compute capabilities that it serves together with the widest toolkit
and cuDNN it admits, then the lowest driver; for a toolkit and a cuDNN: the most capabilities it holds code for, and for
a toolkit then the lowest driver. Where several frameworks are requested, the first one's reach counts before the next.

A Python that is younger than a year on the day of the matrix comes after all others: most packages have no wheels for
it yet, so that releases from before it look as if they were the newest that it can have.

``locked`` puts in front the very package, version and build that is there already, then that package and version, then
that version of the framework; the Python and the toolkit that are there already come first as well.
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
"""Those of one version's builds that may be used at all."""


class Preference:
    """The order of candidates for one problem; ``ranked`` sources come first in their order."""

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
        """The builds of a framework, the best first. Of most only the newest few are ever looked at."""
        if self._policy is Policy.WIDEST_GPU:
            yield from sorted(self._all(builds, wanted), key=self._by_reach)
        elif self._policy is Policy.LOCKED and self._locked:
            yield from sorted(self._all(builds, wanted), key=self._by_change)
        else:
            yield from self._all(builds, wanted)

    def level(self, release: Release) -> object:
        """What counts before the choice among builds: source and version, or all that a build's own order knows."""
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
        """Widest first; the sort is stable, so that equals stay in the order of ``newest-framework``."""
        rank = self._ranked.index(release.source) if self._ranked else 0
        if release.cuda is None or release.cuda_requires is None:
            return (rank, 0, ())
        limit = self._libraries.toolkit_limit(release.cuda_requires, release.cuda)
        toolkits = [it for it in self._libraries.cuda.toolkits if limit.admits(it) and self._suits(it)]
        reaches = [(self._reach(release, toolkit), self._floor(toolkit)) for toolkit in toolkits]
        widest = max((reach for reach, _ in reaches), default=0)
        return (rank, -widest, min((floor for reach, floor in reaches if reach == widest), default=()))

    def _suits(self, toolkit: Toolkit) -> bool:
        """Whether the machines of the request can have ``toolkit``."""
        return all(self._libraries.compiles_for(toolkit, gpu) for gpu in self._gpus) and all(
            machine.driver is None or machine.driver.meets(toolkit.floor(windows=machine.windows_driver))
            for machine in self._machines
        )

    def _reach(self, release: Release, toolkit: Toolkit) -> int:
        """How many compute capabilities a build serves with ``toolkit`` and the widest cuDNN that suits the request."""
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
        """What is held first; the sort is stable, so that equals stay in the order of ``newest-framework``.

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
        """Versions of this framework under whatever package: pytorch and torch are one framework."""
        from envsolve.frameworks import packages_of  # where something is held; a first answer does without its files

        names = {release.package, release.framework, *packages_of(release.framework)}
        return {self._locked[name][0].partition("+")[0] for name in names if name in self._locked}

    def toolkits(self, toolkits: Iterable[Toolkit], limits: Iterable[object]) -> list[Toolkit]:
        """Toolkits that all fit, the best first, given the limits that the chosen frameworks set."""
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
        """What the policy puts in front."""
        if self._policy is Policy.NEWEST_CUDA:
            return _oldest_last(toolkit.version)
        if self._policy is Policy.WIDEST_GPU:
            return (-len(toolkit.compiles_for), self._floor(toolkit))
        return (self._policy is Policy.LOCKED and str(toolkit.version) != self._locked_cuda,)

    def cudnns(self, newest_first: Sequence[CudnnRelease]) -> Sequence[CudnnRelease]:
        """The cuDNNs, the best first: the newest, or under ``widest-gpu`` the newest of the widest."""
        if self._policy is not Policy.WIDEST_GPU:
            return newest_first
        lives = [it.capability for it in self._libraries.cuda.architectures]
        return sorted(newest_first, key=lambda it: -sum(self._cudnn_serves(it, gpu) for gpu in lives))

    def pythons(self, minors: Iterable[Version]) -> list[Version]:
        """The Python minors, the best first: the newest that is a year old, or under ``locked`` the one there is."""
        newest_first = sorted(minors, reverse=True)
        newest_first.sort(key=lambda minor: not is_a_year_old(minor, self._matrix_date))
        if self._policy is Policy.LOCKED:
            newest_first.sort(key=lambda minor: str(minor) != self._locked_python)
        return newest_first

    def supported_in_full(self, cuda: CudaVersion) -> bool:
        """Whether every machine's driver supports ``cuda`` in full; an unknown driver counts as one that does."""
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
    """Whether the first release of a minor of Python is a year old on ``date``, a day as ``2026-11-20``.

    Every October has one, since 3.9 in 2020 (https://peps.python.org/pep-0602/); the day differs, so that November is
    what counts.
    """
    return minor < _FIRST_OF_AN_OCTOBER or date >= f"{2012 + minor.minor}-11-01"


def reach(solution: Solution, libraries: Libraries) -> tuple[int, tuple[int, ...]]:
    """How many compute capabilities a whole stack serves, and the driver it needs, lower counting for more."""
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
    """How many packages of an earlier answer a stack keeps at their version."""
    versions = {package: version for package, version, _ in locked.packages}
    releases = [choice.release for choice in solution.choices]
    return sum(versions.get(it.package) in (str(it.version), str(it.full_version)) for it in releases)


def _oldest_last(cuda: CudaVersion | None) -> tuple[int, int]:
    return (0, 0) if cuda is None else (-cuda.major, -cuda.minor)
