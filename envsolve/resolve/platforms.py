"""Solve for several platforms, with the same framework releases on each if possible.

A framework's version is the same on all platforms if some version fits on all, together with the frameworks before it.
Of these versions the best is chosen, by the policy on the first platform. Builds, CUDA and cuDNN differ between
platforms. The Python is made the same afterwards, if one fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from envsolve.model.fact import Fact
from envsolve.model.note import Note
from envsolve.model.release import Release
from envsolve.model.request import FrameworkRequest, Policy, Request
from envsolve.model.solution import Problem, Solution
from envsolve.resolve.parts import framework_identifier
from envsolve.resolve.solver import Solver

Part = tuple[Request, Problem]
"""The request and the problem for one platform."""


def agreed(parts: Sequence[Part], solver: Solver) -> list[Solution]:
    """Return the stacks of all platforms, each of which must have one."""
    pins: dict[str, Version] = {}
    solutions = _solved(parts, pins, None, solver)
    for requested in parts[0][1].frameworks:
        versions = {_version_of(solution, requested.framework) for solution in solutions}
        common = versions.pop() if len(versions) == 1 else _common_version(requested.framework, parts, pins, solver)
        if common is not None:
            pins[requested.framework] = common
            solutions = _solved(parts, pins, None, solver)
    return _with_one_python(parts, pins, solutions, solver)


def differing(solutions: Sequence[Solution]) -> Iterator[Note]:
    """Yield a note for each framework on what differs between the platforms."""
    for number, choice in enumerate(solutions[0].choices):
        versions = [(it.problem.platform, it.choices[number].release.version) for it in solutions]
        if len({version for _, version in versions}) > 1:
            listed = " and ".join(f"{version} on {platform}" for platform, version in versions)
            text = f"{choice.release.framework} is {listed}: no version fits on all of these platforms"
            fields = {platform.value: str(version) for platform, version in versions}
            yield Note("releases-differ", text).about(framework=choice.release.framework, **fields)


def _common_version(
    framework: str, parts: Sequence[Part], pins: Mapping[str, Version], solver: Solver
) -> Version | None:
    """The best version with which every platform has a stack; of the first source first, as for one platform."""
    offered = [list(_running_versions(framework, part, solver)) for part in parts]
    newest_first = parts[0][0].prefer in (Policy.NEWEST_FRAMEWORK, Policy.NEWEST_CUDA)
    anywhere = [[version for group in groups for version in group] for groups in offered]
    tried: list[Sequence[list[Version]]] = [*zip(*offered, strict=False), anywhere]
    for first, *others in tried:
        for version in sorted(set(first), reverse=True) if newest_first else dict.fromkeys(first):
            pinned = {**pins, framework: version}
            if all(version in other for other in others) and _all_fit(parts, pinned, None, solver):
                return version
    return None


def _running_versions(framework: str, part: Part, solver: Solver) -> Iterator[list[Version]]:
    """The versions that run on a platform, for each group of sources."""
    for provider in solver.providers(*part):
        running = (candidate.thing for candidate in provider.running(framework_identifier(framework)))
        yield [thing.version for thing in running if isinstance(thing, Release)]


def _with_one_python(
    parts: Sequence[Part], pins: Mapping[str, Version], solutions: list[Solution], solver: Solver
) -> list[Solution]:
    found = sorted({solution.python for solution in solutions}, reverse=True)
    for python in found if len(found) > 1 else ():
        if _all_fit(parts, pins, python, solver):
            same = _solved(parts, pins, python, solver)
            if _versions(same) == _versions(solutions):
                return [_with_common_python(solution, part) for solution, part in zip(same, parts, strict=True)]
    return solutions


def _with_common_python(solution: Solution, part: Part) -> Solution:
    """The solution with its Python described as the same for all platforms, and not as a requested one."""
    *because, _ = solution.because
    reference = solution.choices[0].release.reference
    fact = Fact(f"Python {solution.python} is one that fits on all of these platforms", reference)
    return solution._replace(problem=solution.problem._replace(python=part[1].python), because=(*because, fact))


def _versions(solutions: Sequence[Solution]) -> list[list[Version]]:
    return [[choice.release.version for choice in solution.choices] for solution in solutions]


def _all_fit(parts: Sequence[Part], pins: Mapping[str, Version], python: Version | None, solver: Solver) -> bool:
    return all(solver.can_solve(request, _pinned(problem, pins, python)) for request, problem in parts)


def _solved(
    parts: Sequence[Part], pins: Mapping[str, Version], python: Version | None, solver: Solver
) -> list[Solution]:
    found = [solver.solve(request, _pinned(problem, pins, python)) for request, problem in parts]
    return [solution for solution in found if solution is not None]


def _pinned(problem: Problem, pins: Mapping[str, Version], python: Version | None) -> Problem:
    frameworks = tuple(
        FrameworkRequest(
            requested.framework, SpecifierSet(f"{requested.specifier},=={pins[requested.framework]}".strip(","))
        )
        if requested.framework in pins
        else requested
        for requested in problem.frameworks
    )
    if python is None:
        return problem._replace(frameworks=frameworks)
    also = "" if problem.python is None else str(problem.python)
    return problem._replace(frameworks=frameworks, python=SpecifierSet(f"{also},=={python}.*".strip(",")))


def _version_of(solution: Solution, framework: str) -> Version:
    return next(it.release.version for it in solution.choices if it.release.framework == framework)
