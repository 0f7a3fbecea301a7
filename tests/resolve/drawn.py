"""Random questions for the solver, drawn from the shipped matrix: hosts, requests, and a locked answer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import permutations
from typing import Any, NamedTuple

from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from envsolve.matrix import Matrix, find_matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.release import Source
from envsolve.model.request import FrameworkRequest, LockedVersions, Packages, Policy, Request, parse_framework
from envsolve.model.solution import Machine, Problem, Solution
from envsolve.model.versions import DriverVersion, LibcVersion

MATRIX = Matrix(find_matrix())
PLATFORMS = (Platform.LINUX_64, Platform.LINUX_AARCH64, Platform.WIN_64)
CAPABILITIES = sorted(row.capability for row in MATRIX.cuda.architectures)
SEPARATE = [gpu for gpu in CAPABILITIES if not gpu.is_tegra]
GLIBCS = [LibcVersion(2, minor) for minor in (12, 17, 27, 28, 31, 34, 39)]
FRAMEWORKS = (*MATRIX.framework_names, *("cupy", "jax", "pytorch", "tensorflow") * 2)
FORMATS = ("environment", "requirements")
POLICIES = tuple(Policy)
DEFAULT_SOURCES = (Source.CONDA_FORGE, Source.PYPI, Source.PYTORCH)
ONE_SOURCE = tuple((source,) for source in Source)
SOURCES: tuple[tuple[Source, ...], ...] = (
    *((),) * 40,
    *ONE_SOURCE,
    *permutations(DEFAULT_SOURCES, 2),
    *permutations(DEFAULT_SOURCES, 3),
    (Source.PYTORCH_CHANNEL, Source.CONDA_FORGE),
    (Source.PYPI, Source.JAX_RELEASES),
    (Source.JAX_RELEASES, Source.PYTORCH_CHANNEL, Source.PYTORCH),
)
ANY = SpecifierSet()


class Question(NamedTuple):
    """The input of the solver."""

    request: Request
    problem: Problem

    def changed(self, **changes: Any) -> Question:
        """The same question with other options, in both the request and the problem."""
        of_problem = {name: value for name, value in changes.items() if name in Problem._fields}
        of_request = {name: value for name, value in changes.items() if name in Request._fields}
        return Question(self.request._replace(**of_request), self.problem._replace(**of_problem))


def driver_numbers(*, windows: bool) -> list[DriverVersion]:
    """Every driver that the matrix names for one system: floors, full support, first releases, and bare branches."""
    cuda = MATRIX.cuda
    found = {toolkit.floor(windows=windows) for toolkit in cuda.toolkits}
    found |= {full for toolkit in cuda.toolkits if (full := toolkit.full(windows=windows)) is not None}
    found |= {branch.first(windows=windows) for branch in cuda.branches}
    found |= {DriverVersion.parse(str(branch.branch)) for branch in cuda.branches[::5]}
    return sorted(found, key=lambda driver: driver.parts)


DRIVERS = {windows: driver_numbers(windows=windows) for windows in (False, True)}


@cache
def version_ranges(framework: str) -> list[SpecifierSet]:
    """Ranges that the versions of a framework, and the local versions of PyTorch's wheels, divide it into."""
    builds = [release for platform in PLATFORMS for release in MATRIX.framework(framework, platform).releases]
    texts = [
        operator.format(version=version, minor=f"{version.major}.{version.minor}")
        for version in sorted({release.version for release in builds})
        for operator in ("=={version}", "=={minor}.*", ">={version}", "<{version}", "!={version}")
    ]
    local = sorted({f"=={release.full_version}" for release in builds if release.full_version.local})
    return [SpecifierSet(text) for text in (*texts, *local[::7])]


PYTHONS = [
    *(SpecifierSet(f"==3.{minor}.*") for minor in range(6, 15)),
    *(SpecifierSet(f"{operator}3.{minor}") for minor in range(8, 14) for operator in ("<", ">=")),
]
CUDAS = [
    *(SpecifierSet(f"=={toolkit.version}") for toolkit in MATRIX.cuda.toolkits),
    *(SpecifierSet(f"=={major}.*") for major in (9, 10, 11, 12, 13)),
    *(SpecifierSet(text) for text in ("<12", ">=12", "<12.9", ">=11.2,<13")),
]


# A strategy is made once: to make one of hundreds of values takes longer than to draw from it.
_KNOWN_GPUS = st.sampled_from([*map(st.sampled_from, (SEPARATE[-8:], SEPARATE[-12:-4], SEPARATE, CAPABILITIES))])
_DRIVERS = {windows: st.sampled_from((*(None,) * 40, *known, *known[-25:] * 3)) for windows, known in DRIVERS.items()}
_GLIBCS = st.sampled_from((*(None,) * 12, *GLIBCS))
_PLATFORMS = st.sampled_from((*PLATFORMS, *(Platform.LINUX_64,) * 3))
_IN_WSL = st.sampled_from((False,) * 5 + (True,))
_PYTHONS = st.sampled_from((None,) * 100 + tuple(PYTHONS))
_CUDAS = st.sampled_from((None,) * 200 + tuple(CUDAS))
MOMENTS = [f"{year}-{month:02}-01T00:00:00Z" for year in range(2019, 2027) for month in (1, 4, 7, 10)]
_MOMENTS = st.sampled_from((None,) * 200 + tuple(MOMENTS))
_NAMES = st.sampled_from(FRAMEWORKS)


@st.composite
def gpu_kinds(draw: st.DrawFn, most: int = 3) -> list[ComputeCapability]:
    """Kinds of GPUs of one machine: mostly of recent generations, which stacks have in common."""
    known = draw(_KNOWN_GPUS)
    return sorted(draw(st.lists(known, min_size=1, max_size=most, unique=True)))


@st.composite
def machines(draw: st.DrawFn, platform: Platform, *, windows: bool, most_gpus: int = 3) -> Machine:
    """A machine of a platform; its driver, if it is known, has a number of Windows or of Linux."""
    gpus = tuple((kind, "") for kind in draw(gpu_kinds(most_gpus)))
    driver = draw(_DRIVERS[windows])
    glibc = None if platform.is_windows else draw(_GLIBCS)
    return Machine(driver, gpus, glibc, windows_driver=windows)


@st.composite
def questions(
    draw: st.DrawFn,
    *,
    frameworks: tuple[int, int] = (1, 3),
    most_machines: int = 3,
    most_gpus: int = 3,
    sources: Sequence[tuple[Source, ...]] = SOURCES,
    formats: Sequence[str] = FORMATS,
    policies: Sequence[Policy] = (Policy.NEWEST_FRAMEWORK,),
    open_ended: bool = False,
) -> Question:
    """A question; an ``open_ended`` one names no versions of anything."""
    platform = draw(_PLATFORMS)
    windows = platform.is_windows or (platform is Platform.LINUX_64 and draw(_IN_WSL))
    several = draw(st.sampled_from((1, 1, most_machines)))
    there = draw(st.lists(machines(platform, windows=windows, most_gpus=most_gpus), min_size=1, max_size=several))
    least, most = frameworks
    names = draw(st.lists(_NAMES, min_size=least, max_size=most, unique=True))
    requested = tuple(FrameworkRequest(name, ANY if open_ended else draw(_ranges(name))) for name in names)
    python = None if open_ended else draw(_PYTHONS)
    cuda = None if open_ended else draw(_CUDAS)
    problem = Problem(requested, platform, tuple(there), cpu=False, python=python, cuda=cuda)
    request = Request(
        requested,
        python=python,
        cuda=cuda,
        platforms=(platform,),
        sources=draw(st.sampled_from(sources)),
        format=draw(st.sampled_from(formats)),
        prefer=draw(st.sampled_from(policies)),
        packages=Packages(exclude_newer=None if open_ended else draw(_MOMENTS)),
    )
    return Question(request, problem)


@cache
def _ranges(framework: str) -> st.SearchStrategy[SpecifierSet]:
    """No range in most draws."""
    known = version_ranges(framework)
    return st.sampled_from((ANY,) * 3 * len(known) + tuple(known))


def question_of(framework: str, *, gpu: str, sources: tuple[Source, ...], glibc: str | None = None) -> Question:
    """A question about one GPU on Linux with an unknown driver."""
    frameworks = (FrameworkRequest(*parse_framework(framework)),)
    kind = ComputeCapability.parse(gpu)
    machine = Machine(None, ((kind, ""),), None if glibc is None else LibcVersion.parse(glibc))
    problem = Problem(frameworks, Platform.LINUX_64, (machine,), cpu=False, python=None, cuda=None)
    return Question(Request(frameworks, sources=sources, platforms=(Platform.LINUX_64,)), problem)


def locked_versions_of(solution: Solution) -> LockedVersions:
    """The packages of an environment made from an answer; a glob for a build string becomes one that it matches."""
    packages = tuple(
        (release.package, str(release.full_version), release.build_string.replace("*", "0"))
        for release in (choice.release for choice in solution.choices)
    )
    return LockedVersions(packages, str(solution.python), str(solution.toolkit.version) if solution.toolkit else None)
