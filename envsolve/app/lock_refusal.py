"""Why no set of packages goes with a stack, as the error that ends the command. Imported only when there is none."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.specifiers import SpecifierSet

from envsolve.app.command import command_of
from envsolve.app.refusal import refusal
from envsolve.errors import ConflictStep, Hint, UnsolvableError
from envsolve.index.fitting import Interpreter
from envsolve.model.need import parse_need
from envsolve.model.request import FrameworkRequest, Request
from envsolve.model.solution import Problem, Solution
from envsolve.solve.closure.bounds import THE_STACK
from envsolve.solve.closure.provider import Ask
from envsolve.solve.closure.releases import Unfit
from envsolve.solve.closure.resolve import Conflict
from envsolve.solve.closure.told import contested, missing, reasons_of, sentences, versions
from envsolve.solve.solver import Solver

_MOST_CAUSES = 12
_FEW_NAMES = 3
_MEANT = {"pytorch": "pytorch", "pytorch-cuda": "pytorch", "tf": "tensorflow", "tensorflow-gpu": "tensorflow"}
NOT_ON_INDEX = "release-not-on-index"
"""The code where the matrix knows a build of a framework that the indexes do not have."""


def packages_refusal(
    conflict: Conflict, request: Request, solution: Solution | None, interpreter: Interpreter
) -> UnsolvableError:
    """The error for ``conflict``, met with ``solution`` as the stack."""
    causes = sentences(conflict)
    shown = causes[:_MOST_CAUSES]
    if len(causes) > len(shown):
        shown.append(f"and {len(causes) - len(shown)} more requirements like these")
    stack = "" if solution is None else f" with {' and '.join(it.release.label for it in solution.choices)}"
    target = f"Python {interpreter.full_version} on {interpreter.platform}"
    unknown = _unknown(conflict)
    lacking = [ask for ask in missing(conflict) if ask.origin]
    beside = [name for name in contested(conflict) if name in conflict.provider.world.present]
    reasons = {unfit for name in contested(conflict) for unfit in reasons_of(name, conflict)}
    if unknown:
        code, message = "package-not-found", f"no package index of this request knows {' or '.join(unknown)}"
    elif lacking:
        code, message = _lacking(lacking)
    elif reasons == {Unfit.YANKED}:
        code, message = "yanked", f"what is asked for of {' and '.join(contested(conflict)[:_FEW_NAMES])} was withdrawn"
    elif reasons:
        names = [name for name in contested(conflict) if reasons_of(name, conflict)]
        code = "no-wheel"
        message = f"{' and '.join(names[:_FEW_NAMES])} cannot be installed on {target}{stack}"
    elif beside:
        code = "packages-conflict"
        names = beside[:_FEW_NAMES]
        message = f"what conda installs of {' and '.join(names)} does not meet the requirements for {target}{stack}"
    else:
        names = contested(conflict)[:_FEW_NAMES]
        code = "packages-conflict"
        message = f"the requirements of {' and '.join(names)} do not go together for {target}{stack}"
    hints = (
        *_framework_hints(contested(conflict), request),
        *([Hint("have conda install a version that is asked for")] if beside else []),
        *_hints(reasons, unknown, lacking, request),
    )
    steps = tuple(ConflictStep(cause, "", "") for cause in causes)
    return UnsolvableError(code, message, tuple(shown), hints, conflict=steps)


def stack_refusal(request: Request, problem: Problem, solver: Solver, *, typed: Request) -> UnsolvableError:
    """The error where the stack itself has no solution.

    A way out is a command where it is all on the command line; a framework in a file has to be changed there.
    """
    error = refusal(request, problem, solver)
    if {it.framework for it in request.frameworks} != {it.framework for it in typed.frameworks}:
        error.hints = tuple(hint._replace(command=None) for hint in error.hints)
    return error


def _lacking(asks: list[Ask]) -> tuple[str, str]:
    asked = " and ".join(dict.fromkeys(versions(ask) for ask in asks))
    if all(ask.origin == THE_STACK for ask in asks):
        return NOT_ON_INDEX, f"no package index of this request has {asked}, the best build for this machine"
    return "version-not-found", f"no package index of this request has {asked}"


def _unknown(conflict: Conflict) -> list[str]:
    return [name for name in contested(conflict) if conflict.provider.world.releases(name) is None]


def _framework_hints(names: list[str], request: Request) -> Iterator[Hint]:
    """People call some frameworks by names that are not, or not any more, those of their packages."""
    typed = {need.name: need for need in map(parse_need, request.packages.requirements)}
    for name in (it for it in names if it in _MEANT):
        command = None
        if name in typed:
            rest = tuple(it for it in request.packages.requirements if parse_need(it).name != name)
            meant = FrameworkRequest(_MEANT[name], SpecifierSet(typed[name].specifier))
            asked = (*(it for it in request.frameworks if it.framework != meant.framework), meant)
            command = command_of(
                request._replace(frameworks=asked, packages=request.packages._replace(requirements=rest))
            )
        yield Hint(f"the framework is asked for with --framework {_MEANT[name]}", command)


def _hints(reasons: set[Unfit], unknown: list[str], lacking: list[Ask], request: Request) -> Iterator[Hint]:
    if unknown:
        yield Hint("check the spelling, or name the index that has it with --extra-index-url")
        return
    if lacking:
        yield Hint("ask for other versions, or name the index that has these with --extra-index-url")
        return
    if Unfit.SOURCE_ONLY in reasons and not request.packages.allow_builds:
        packages = request.packages._replace(allow_builds=True)
        yield Hint(
            "build it from source, which runs code of the package", command_of(request._replace(packages=packages))
        )
    if reasons & {Unfit.OTHER_PYTHON, Unfit.OTHER_PLATFORM}:
        yield Hint("another Python may have it (--python), or another version of the package")
    if Unfit.YANKED in reasons:
        yield Hint("a version that was withdrawn is taken where it is pinned: name it with ==")
    if Unfit.TOO_NEW in reasons:
        yield Hint("name a later day with --exclude-newer")
    if not reasons:
        yield Hint("loosen one of the requirements above, or put one of them into an environment of its own")
