"""Run resolvelib over the matrix: find the best stack for a problem, or none.

One installer owns the CUDA of an environment. Sources are tried in groups: conda-forge, then wheels. If neither has
every framework, both are tried together, and the rule of one owner limits wheels to those that use the CUDA of
conda-forge. The conda channel pytorch, which ended with 2.5.1, is tried only if the user names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from packaging.version import Version
from resolvelib import BaseReporter, ResolutionImpossible, Resolver
from resolvelib.resolvers import Criterion

from envsolve.matrix.load import Matrix
from envsolve.matrix.tables import CudaTable, FrameworkTable
from envsolve.model.host import Platform
from envsolve.model.lock_format import PYTHON_FORMATS
from envsolve.model.release import Release, Source, Toolkit
from envsolve.model.request import FrameworkRequest, Policy, Request
from envsolve.model.solution import Problem, Solution
from envsolve.resolve.catalogue import Builds, Catalogue, Libraries
from envsolve.resolve.newer import with_newer_elsewhere, with_newer_for_another_python, with_newer_releases
from envsolve.resolve.parts import (
    CUDA,
    CUDNN,
    Candidate,
    Requirement,
    framework_identifier,
)
from envsolve.resolve.preference import reach, unchanged_packages
from envsolve.resolve.provider import Provider
from envsolve.resolve.stack import solution_of

_CONDA = (Source.CONDA_FORGE,)
_WHEELS = (Source.PYPI, Source.PYTORCH)
_MAX_ROUNDS = 20_000
_FEW_REFUSED = 30
"""Refusing a build costs 20 microseconds. Agreeing on frameworks first costs some milliseconds."""


class Solver:
    """Answers requests from one matrix. What it computes from the matrix is reused for the next request.

    ``narrowed`` removes what cannot be installed from a framework's table. Every method raises MatrixError if the
    matrix is invalid.
    """

    def __init__(self, matrix: Matrix, narrowed: Callable[[FrameworkTable], FrameworkTable] | None = None) -> None:
        self._matrix = matrix
        self._narrowed = narrowed
        self._libraries: dict[bool, Libraries] = {}
        self._builds: dict[tuple[str, Platform], Builds] = {}

    @property
    def cuda(self) -> CudaTable:
        """The table of toolkits, driver branches and GPU generations."""
        return self._matrix.cuda

    def solve(self, request: Request, problem: Problem) -> Solution | None:
        """Return the best stack for ``problem``, or None if there is none."""
        found = list(self._by_group(request, problem))
        if not found:
            return None
        first = (
            max(found, key=lambda it: unchanged_packages(it, request.locked))
            if request.prefer is Policy.LOCKED
            else found[0]
        )
        others = [*(it for it in found if it is not first), *self._unranked(request, problem)]
        return self._with_newer(with_newer_elsewhere(first, others), request, problem)

    def newest(self, request: Request, problem: Problem) -> Solution | None:
        """Return the best stack, whatever the order of sources; if equal, that of the first source."""
        found = list(self._by_group(request, problem))
        return _best(request, found, self.catalogue(problem).libraries) if found else None

    def stack_of(self, builds: Sequence[Release], request: Request, problem: Problem) -> Solution | None:
        """Return the best stack of ``builds``, one for each framework, or None if they do not fit together."""
        sources = tuple(dict.fromkeys(it.source for it in builds))
        solution = self._from_group(sources, request, problem, builds)
        return None if solution is None else self._with_newer(solution, request, problem)

    def _with_newer(self, solution: Solution, request: Request, problem: Problem) -> Solution:
        """Add notes on newer releases. One driver is not enough for several frameworks; one Python may be."""
        if len(solution.choices) == 1:
            return with_newer_releases(solution, self.providers(request, problem))
        if request.python is None:
            return solution
        freed = self.solve(request._replace(python=None), problem._replace(python=None))
        if freed is None:
            return solution

        def can_solve(frameworks: tuple[FrameworkRequest, ...]) -> bool:
            return self.can_solve(request._replace(frameworks=frameworks), problem._replace(frameworks=frameworks))

        return with_newer_for_another_python(solution, freed, can_solve)

    def can_solve(self, request: Request, problem: Problem) -> bool:
        """Whether there is any stack for ``problem``. This costs less than finding the best one."""
        request = request._replace(prefer=Policy.NEWEST_FRAMEWORK)
        return any(_resolve(provider) is not None for provider in self.providers(request, problem))

    def requirements(self, solution: Solution) -> dict[str, list[Requirement]]:
        """Return every requirement of the parts of a stack, by the identifier that it limits."""
        sources = tuple(dict.fromkeys(choice.release.source for choice in solution.choices))
        provider = self.provider(sources, solution.request, solution.problem)
        chosen = [Candidate(framework_identifier(it.release.framework), it.release) for it in solution.choices]
        chosen += [] if solution.toolkit is None else [Candidate(CUDA, solution.toolkit)]
        chosen += [] if solution.cudnn is None else [Candidate(CUDNN, solution.cudnn)]
        return provider.requirements(chosen)

    def catalogue(self, problem: Problem) -> Catalogue:
        """Return the parts of the matrix that ``problem`` needs."""
        names = [it.framework for it in problem.frameworks]
        builds = {name: self._builds_of(name, problem.platform) for name in names}
        if problem.cpu not in self._libraries:
            cudnn = () if problem.cpu else self._matrix.cudnn
            self._libraries[problem.cpu] = Libraries(self._matrix.cuda, cudnn)
        return Catalogue(self._libraries[problem.cpu], builds)

    def provider(
        self, group: Sequence[Source], request: Request, problem: Problem, toolkit: Toolkit | None = None
    ) -> Provider:
        """Return the resolvelib provider for ``problem``, with the builds of one group of sources."""
        return Provider(request, problem, self.catalogue(problem), group, toolkit)

    def providers(self, request: Request, problem: Problem) -> list[Provider]:
        """Return a provider for each group of sources that is tried. The group of mixed sources contains all others."""
        mixed = _mixed_groups(request, problem)
        alone = [group for group in source_groups(request) if not any(set(group) <= set(it) for it in mixed)]
        return [self.provider(group, request, problem) for group in (*alone, *mixed)]

    def _builds_of(self, name: str, platform: Platform) -> Builds:
        key = (name, platform)
        if key not in self._builds:
            table = self._matrix.framework(name, platform)
            self._builds[key] = Builds(table if self._narrowed is None else self._narrowed(table))
        return self._builds[key]

    def _by_group(self, request: Request, problem: Problem) -> Iterator[Solution]:
        """The stack of each group that has one. Mixed sources are tried only if no group has one by itself."""
        alone = [self._from_group(group, request, problem) for group in source_groups(request)]
        if any(alone):
            yield from filter(None, alone)
            return
        for group in _mixed_groups(request, problem):
            solution = self._from_group(group, request, problem)
            if solution is not None:
                yield solution

    def _unranked(self, request: Request, problem: Problem) -> list[Solution]:
        """What the first group of the user's sources would give if the order of its sources did not count."""
        group = source_groups(request)[0]
        if len(group) == 1 or not request.sources:
            return []
        solution = self._from_group(group, request._replace(sources=()), problem)
        return [] if solution is None else [solution]

    def _from_group(
        self, group: Sequence[Source], request: Request, problem: Problem, builds: Sequence[Release] = ()
    ) -> Solution | None:
        settled = [Candidate(framework_identifier(it.framework), it) for it in builds]
        for every in self._in_turn(group, request, problem):
            provider = every.keeping(settled)
            chosen = _resolve(provider)
            if chosen is not None:
                requirements = provider.requirements(chosen.values())
                return solution_of(request, problem, self.catalogue(problem), chosen, requirements)
        return None

    def _in_turn(self, group: Sequence[Source], request: Request, problem: Problem) -> Iterator[Provider]:
        """The searches in the order in which the first answer is the best: under ``newest-cuda`` one per toolkit."""
        provider = self.provider(group, request, problem)
        if request.prefer is not Policy.NEWEST_CUDA or problem.cpu:
            yield provider
            return
        for candidate in provider.running(CUDA):
            assert isinstance(candidate.thing, Toolkit)
            yield self.provider(group, request, problem, candidate.thing)


def source_groups(request: Request) -> list[tuple[Source, ...]]:
    """Return the groups of sources to try, in order: the user's, or conda-forge and then wheels."""
    if not request.sources:
        if request.format in PYTHON_FORMATS:
            return [(*_WHEELS, *(source for source in request.also if source.is_wheel and source not in _WHEELS))]
        wheels = [source for source in request.also if source.is_wheel and source not in _WHEELS]
        channels = [(source,) for source in request.also if not source.is_wheel and source not in _CONDA]
        return [_CONDA, (*_WHEELS, *wheels), *channels]
    groups: list[tuple[Source, ...]] = []
    for source in request.sources:
        if groups and source.is_wheel and groups[-1][0].is_wheel:
            groups[-1] = (*groups[-1], source)
        else:
            groups.append((source,))
    return groups


def _mixed_groups(request: Request, problem: Problem) -> list[tuple[Source, ...]]:
    """Conda-forge with wheels, for several frameworks. Other conda channels have a different CUDA layout."""
    if request.format in PYTHON_FORMATS:
        return []
    allowed = request.sources or (*_CONDA, *_WHEELS, *request.also)
    wheels = tuple(source for source in allowed if source.is_wheel)
    if len(problem.frameworks) < 2 or Source.CONDA_FORGE not in allowed or not wheels:  # noqa: PLR2004
        return []
    mixed = dict.fromkeys(source for source in allowed if source.is_wheel or source is Source.CONDA_FORGE)
    return [tuple(mixed)]


def _resolve(provider: Provider) -> Mapping[str, Candidate] | None:
    """The resolver's choice for each identifier.

    A search without dead ends refuses few builds. A search with a dead end may refuse each build with each. So after a
    few refusals the frameworks are agreed on first (:mod:`envsolve.resolve.agreement`), and the resolver decides the
    rest.
    """
    if not provider.roots_hold():
        return None
    several = len(provider.problem.frameworks) > 1
    try:
        chosen = _search(provider)
    except _TooManyRefused:
        return _agreed(provider)
    return _better(provider, chosen) if several and chosen is not None else chosen


def _better(provider: Provider, chosen: Mapping[str, Candidate]) -> Mapping[str, Candidate] | None:
    """The chosen candidates, unless the best build of one framework excluded a newer release of the next."""
    from envsolve.resolve.agreement import is_improvable

    return _agreed(provider) if is_improvable(provider, chosen) else chosen


def _agreed(provider: Provider) -> Mapping[str, Candidate] | None:
    from envsolve.resolve.agreement import best_combination

    agreed = best_combination(provider)
    return None if agreed is None else _search(provider.keeping(agreed))


def _search(provider: Provider) -> Mapping[str, Candidate] | None:
    resolver: Resolver[Requirement, Candidate, str] = Resolver(provider, _Impatient())
    try:
        return resolver.resolve(provider.request_roots, max_rounds=_MAX_ROUNDS).mapping
    except ResolutionImpossible:
        return None


class _TooManyRefused(Exception):  # noqa: N818  # nothing is wrong; the search goes on in another way
    """More builds were refused because of another framework than in a search without dead ends."""


class _Impatient(BaseReporter[Requirement, Candidate, str]):
    """Counts the builds that a search refuses, and stops it after the first few."""

    def __init__(self) -> None:
        self._left = _FEW_REFUSED

    def rejecting_candidate(self, criterion: Criterion[Requirement, Candidate], candidate: Candidate) -> None:
        """Count one more build that conflicts with another framework's."""
        self._left -= 1
        if self._left < 0:
            raise _TooManyRefused


def _best(request: Request, found: Sequence[Solution], libraries: Libraries) -> Solution:
    """The stack that the policy prefers among those of several sources; if equal, the first."""
    keys: dict[Policy, Callable[[Solution], object]] = {
        Policy.NEWEST_FRAMEWORK: lambda _: (),
        Policy.NEWEST_CUDA: lambda it: () if it.toolkit is None else tuple(it.toolkit.version),
        Policy.WIDEST_GPU: lambda it: reach(it, libraries),
        Policy.LOCKED: lambda it: unchanged_packages(it, request.locked),
    }
    return max(found, key=lambda it: (keys[request.prefer](it), _versions(it)))


def _versions(solution: Solution) -> tuple[Version, ...]:
    return tuple(choice.release.version for choice in solution.choices)
