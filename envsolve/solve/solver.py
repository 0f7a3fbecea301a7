"""Running resolvelib over the matrix and turning its result into a Solution.

Sources are tried in groups: a stack comes from conda-forge or from wheels, never from a mixture, so that one installer
owns CUDA. The conda channel pytorch, which ended with 2.5.1, is tried only where the user names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from packaging.version import Version
from resolvelib import BaseReporter, ResolutionImpossible, ResolutionTooDeep, Resolver

from envsolve.errors import Hint, UnsolvableError
from envsolve.matrix.load import Matrix
from envsolve.model.fact import Fact
from envsolve.model.release import CudnnRelease, Release, Source, Toolkit
from envsolve.model.request import Request
from envsolve.model.solution import Choice, CudnnBound, Problem, Solution
from envsolve.solve.parts import CUDA, CUDNN, PYTHON, Candidate, DriverFloor, Requirement, framework_identifier
from envsolve.solve.provider import Provider, Tables

_CONDA = (Source.CONDA_FORGE,)
_WHEELS = (Source.PYPI, Source.PYTORCH)
_MAX_ROUNDS = 20_000
NATIVE_SOURCE_FIRST = frozenset({"environment"})
"""Formats with a native source: conda-forge for an environment.yml. The others take the newest release anywhere."""


def solve(request: Request, problem: Problem, matrix: Matrix) -> Solution | None:
    """The best stack for ``problem``, or None where there is none. Raises MatrixError where the matrix is unsound."""
    tables = load_tables(problem, matrix)
    found = [
        solution
        for group in source_groups(request)
        if (solution := _solve_from(group, request, problem, tables)) is not None
    ]
    if not found:
        return None
    if not request.sources and request.format not in NATIVE_SOURCE_FIRST:
        return max(found, key=_versions)
    return _with_newer_elsewhere(found[0], [*found[1:], *_unranked(request, problem, tables)])


def _unranked(request: Request, problem: Problem, tables: Tables) -> list[Solution]:
    """What the first group of the user's sources would give if their order did not count."""
    group = source_groups(request)[0]
    if len(group) == 1 or not request.sources:
        return []
    solution = _solve_from(group, request._replace(sources=()), problem, tables)
    return [] if solution is None else [solution]


def load_tables(problem: Problem, matrix: Matrix) -> Tables:
    """The tables of the matrix that ``problem`` needs."""
    frameworks = {asked.framework: matrix.framework(asked.framework, problem.platform) for asked in problem.frameworks}
    return Tables(matrix.cuda, () if problem.cpu else matrix.cudnn, frameworks)


def source_groups(request: Request) -> list[tuple[Source, ...]]:
    """The groups of sources to try, in order: the user's, or conda-forge and then wheels."""
    if not request.sources:
        return [_CONDA, _WHEELS]
    groups: list[tuple[Source, ...]] = []
    for source in request.sources:
        if groups and source.is_wheel and groups[-1][0].is_wheel:
            groups[-1] = (*groups[-1], source)
        else:
            groups.append((source,))
    return groups


def provider_for(group: Sequence[Source], request: Request, problem: Problem, tables: Tables) -> Provider:
    """The provider that solves ``problem`` from one group of sources."""
    return Provider(problem, tables, group, ranked=bool(request.sources))


def _solve_from(group: Sequence[Source], request: Request, problem: Problem, tables: Tables) -> Solution | None:
    provider = provider_for(group, request, problem, tables)
    resolver: Resolver[Requirement, Candidate, str] = Resolver(provider, BaseReporter())
    try:
        result = resolver.resolve(provider.roots, max_rounds=_MAX_ROUNDS)
    except ResolutionImpossible:
        return None
    except ResolutionTooDeep as error:
        hint = Hint("ask for fewer frameworks or narrower versions")
        raise UnsolvableError("too-hard", "no answer was found in a sensible number of steps", hints=(hint,)) from error
    requirements = {identifier: list(criterion.iter_requirement()) for identifier, criterion in result.criteria.items()}
    return _solution(request, problem, tables, result.mapping, requirements)


def _solution(
    request: Request,
    problem: Problem,
    tables: Tables,
    chosen: Mapping[str, Candidate],
    requirements: Mapping[str, Sequence[Requirement]],
) -> Solution:
    releases = [chosen[framework_identifier(asked.framework)].thing for asked in problem.frameworks]
    choices = tuple(_choice(release, problem) for release in releases if isinstance(release, Release))
    python = chosen[PYTHON].thing
    toolkit = chosen[CUDA].thing if CUDA in chosen else None
    cudnn = chosen[CUDNN].thing if CUDNN in chosen else None
    assert isinstance(python, Version)
    assert toolkit is None or isinstance(toolkit, Toolkit)
    assert cudnn is None or isinstance(cudnn, CudnnRelease)
    floors = [
        (asked.limit.floor, asked.because)
        for limits in requirements.values()
        for asked in limits
        if isinstance(asked.limit, DriverFloor)
    ]
    minimum = max(floors, key=lambda floor: floor[0].parts, default=None)
    return Solution(
        request=request,
        problem=problem,
        python=python,
        toolkit=toolkit,
        cudnn=cudnn,
        cudnn_bound=_cudnn_bound(cudnn, tables, problem),
        minimum_driver=minimum[0] if minimum else None,
        choices=choices,
        because=tuple(_because(choices, python, toolkit, cudnn, minimum[1] if minimum else None, requirements)),
        notes=tuple(_notes(choices, problem)),
    )


def _cudnn_bound(cudnn: CudnnRelease | None, tables: Tables, problem: Problem) -> CudnnBound | None:
    if cudnn is None:
        return None
    newer = [
        release
        for release in tables.cudnn
        if release.cuda_major == cudnn.cuda_major
        and release.version.major == cudnn.version.major
        and release.version > cudnn.version
    ]
    for release in sorted(newer, key=lambda release: release.version):
        dropped = next((gpu for gpu in problem.gpus if not release.serves(gpu, problem.platform)), None)
        if dropped is not None:
            minor = f"{release.version.major}.{release.version.minor}"
            same_minor = release.version.release[:2] == cudnn.version.release[:2]
            return CudnnBound(str(release.version) if same_minor else minor, dropped)
    return CudnnBound(str(cudnn.version.major + 1), None)


def _choice(release: Release, problem: Problem) -> Choice:
    served = {gpu: runs_as for gpu in problem.gpus if release.cuda and (runs_as := release.code.runs_as(gpu))}
    return Choice(release=release, runs_as=served)


def _because(
    choices: Sequence[Choice],
    python: Version,
    toolkit: Toolkit | None,
    cudnn: CudnnRelease | None,
    driver: Fact | None,
    requirements: Mapping[str, Sequence[Requirement]],
) -> Iterator[Fact]:
    for choice in choices:
        for gpu, runs_as in choice.runs_as.items():
            text = f"{choice.release.label} holds {runs_as}, which runs on compute capability {gpu}"
            yield Fact(text, choice.release.reference)
    for limit in requirements.get(CUDA, ()):
        yield limit.because
    if driver is not None:
        yield driver
    for limit in requirements.get(CUDNN, ()):
        yield limit.because
    if cudnn is not None and toolkit is not None:
        text = f"cuDNN {cudnn.version} holds code for every GPU of the request"
        yield Fact(text, "; ".join(item.reference for item in cudnn.evidence))
    text = f"Python {python} is the newest that {_named(choices)} {'was' if len(choices) == 1 else 'were'} built for"
    asked = [limit for limit in requirements[PYTHON] if limit.because.source == "the request"]
    yield asked[0].because if asked else Fact(text, choices[0].release.reference)


def _notes(choices: Sequence[Choice], problem: Problem) -> Iterator[str]:
    for choice in choices:
        compiled = [gpu for gpu, runs_as in choice.runs_as.items() if runs_as.startswith("compute_")]
        for gpu in compiled:
            yield (
                f"{choice.release.label} serves compute capability {gpu} through PTX: the driver compiles its kernels "
                "at the first start, which takes minutes"
            )
    if len(choices) > 1 and any(choice.release.source.is_wheel for choice in choices):
        yield (
            "the wheels agree on CUDA, cuDNN and Python; their other shared dependencies, NCCL above all, are settled "
            "by pip, which may refuse: conda-forge builds do not have this problem"
        )
    if not problem.cpu and not problem.gpus:
        yield "no GPU is known: the builds fit the driver alone; name the GPU with --gpu to have its kernels checked"


def _with_newer_elsewhere(solution: Solution, others: Sequence[Solution]) -> Solution:
    """Say so where another source has a newer release that also fits."""
    notes = []
    for other in others:
        for here, there in zip(solution.choices, other.choices, strict=True):
            if there.release.version > here.release.version:
                notes.append(
                    f"{there.release.label} is newer than {here.release.label} and also fits: "
                    f"--source {there.release.source} takes it"
                )
    return solution._replace(newer_elsewhere=tuple(notes)) if notes else solution


def _versions(solution: Solution) -> tuple[Version, ...]:
    return tuple(choice.release.version for choice in solution.choices)


def _named(choices: Sequence[Choice]) -> str:
    return " and ".join(f"{choice.release.framework} {choice.release.version}" for choice in choices)
