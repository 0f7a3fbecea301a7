"""Finds an environment that fixes a diagnosis. The solver checks every command before it is suggested.

Tried, in order: 1. the framework at its present version (another build, CUDA or source) 2. any version. If the GPU is
unknown, nothing can be solved, and the suggested command detects the machine. A package that requires one build of the
framework is requested instead of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from envsolve.app.request.channel_order import solver_of
from envsolve.app.request.command import command_of
from envsolve.app.solve.solving import framework_requests, stacks_of
from envsolve.diagnose.case import Case
from envsolve.diagnose.cause import Remedy
from envsolve.errors import EnvsolveError, UnsolvableError, UsageError
from envsolve.frameworks import FRAMEWORKS, DependentFramework
from envsolve.matrix import Matrix
from envsolve.model.capability import ComputeCapability
from envsolve.model.host import Platform
from envsolve.model.request import FrameworkRequest, Request, parse_cuda_versions, parse_versions
from envsolve.model.solution import Solution
from envsolve.model.versions import parsed_version

_MOST_HINTS = 2


class Advice(NamedTuple):
    """The solver's advice on a remedy: a sentence and commands for the fix, and further notes."""

    text: str
    commands: tuple[str, ...]
    more: str


def advice_on(remedy: Remedy, case: Case, matrix: Matrix, about: str | None) -> Advice | None:
    """The environment for ``remedy`` on the machine of ``case``, with the framework that the finding is about.

    None if no framework is known.
    """
    dependent = None if remedy.frameworks else case.dependent
    if dependent is not None and about in (None, dependent.on):
        return _with_dependent(dependent, remedy, case)
    named = remedy.frameworks or (() if about is None else (about,))
    try:
        frameworks = framework_requests(named, matrix) if named else ()
    except UsageError:
        frameworks = ()
    if not frameworks:
        return None
    request = _request(frameworks, remedy, case)
    if request is None:
        command = command_of(Request(frameworks=frameworks, gpus=("auto",)))
        return Advice("", (), f"On the machine itself, `{command}` chooses the build that fits its GPU and driver.")
    refused: UnsolvableError | None = None
    for attempt in _attempts(request, case, keep=not remedy.frameworks):
        try:
            _, solutions, _ = stacks_of(attempt, matrix, {}, solver_of(attempt, matrix))
        except UnsolvableError as error:
            refused = error
            continue
        except EnvsolveError:
            return None
        if attempt is not request and _only_compiled_at_start(solutions[0]):
            continue
        return Advice("", (command_of(attempt),), _stack_text(solutions[0], request))
    return None if refused is None else _refused(refused)


def _with_dependent(dependent: DependentFramework, remedy: Remedy, case: Case) -> Advice | None:
    """The environment with a package that requires one build of the framework: that alone may not be replaced.

    Its releases are on the index, so the command is not solved here. None for a GPU that it has no code for.
    """
    least = ComputeCapability.parse(dependent.least)
    if any(it < least for it in case.capabilities):
        return None
    given = case.given.packages.get(dependent.name)
    wanted = (FrameworkRequest(dependent.name, SpecifierSet(f"=={given}" if given else "")),)
    request = _request(wanted, remedy, case) or Request(frameworks=wanted, gpus=("auto",), driver=case.driver)
    more = f"{dependent.title} requires one build of {FRAMEWORKS[dependent.on].title}: the command chooses both."
    return Advice("", (command_of(request),), more)


def _request(frameworks: tuple[FrameworkRequest, ...], remedy: Remedy, case: Case) -> Request | None:
    """The request; None if the GPU is unknown."""
    platform = Platform(remedy.platform) if remedy.platform else case.platform
    if platform is not None and not platform.has_cuda:
        return None
    gpus = tuple(map(str, case.capabilities))
    if not gpus:
        return None
    return Request(
        frameworks=frameworks,
        gpus=gpus,
        driver=case.driver,
        platforms=() if platform is None or platform is _this_platform() else (platform,),
        python=None if remedy.python is None else parse_versions(remedy.python),
        cuda=None if remedy.cuda is None else parse_cuda_versions(remedy.cuda),
    )


def _attempts(request: Request, case: Case, *, keep: bool) -> Iterator[Request]:
    """The request with the present version, then without."""
    only = request.frameworks[0]
    version = parsed_version(case.version_of(only.framework)) if keep and len(request.frameworks) == 1 else None
    if version is not None and not only.specifier:
        minor = ".".join(map(str, version.release[:2]))
        yield request._replace(frameworks=(FrameworkRequest(only.framework, SpecifierSet(f"=={minor}.*")),))
    yield request


def _only_compiled_at_start(solution: Solution) -> bool:
    """Whether a GPU is supported only by PTX, which the driver compiles for minutes; a newer release is better."""
    return any(code.startswith("compute_") for choice in solution.choices for code in choice.runs_as.values())


def _stack_text(solution: Solution, request: Request) -> str:
    """The chosen stack, and the machine it is for."""
    names = " with ".join(choice.release.label for choice in solution.choices)
    cuda = "" if solution.toolkit is None else f", CUDA {solution.toolkit.version}"
    cudnn = "" if solution.cudnn is None else f", cuDNN {solution.cudnn.version}"
    needs = ""
    if request.driver is None and solution.minimum_driver is not None:
        needs = f"; it needs NVIDIA driver {solution.minimum_driver} or newer"
    return f"The solver has checked this environment: {names}{cuda}{cudnn}, Python {solution.python}{needs}."


def _refused(error: UnsolvableError) -> Advice:
    """Why no environment fixes it, with hints that the solver has checked."""
    ways: Sequence[tuple[str, str]] = [(it.text, it.command) for it in error.hints if it.command is not None]
    others = " ".join(f"Alternative: {text}: `{command}`." for text, command in ways[:_MOST_HINTS])
    return Advice(f"No environment fits this hardware: {error.message}.", (), others)


def _this_platform() -> Platform | None:
    from envsolve.app.request.hosts import this_platform

    try:
        return this_platform()
    except UsageError:
        return None
