"""The wheels beside conda packages: what pip is to install into an environment whose conda side is solved already.

The conda packages stay as they are. Where one of them is what a wheel requires, it is that or a refusal: pip would put
another version over its files, and conda would not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from packaging.version import Version

from envsolve.app.asked_packages import Given, for_target
from envsolve.app.lock_indexes import Lines, Places
from envsolve.app.lock_notes import notes_of_metadata
from envsolve.app.stack_wheels import (
    Limits,
    bounds_of,
    indexes_for,
    needs_of,
    notes_of,
    places_of,
    required_by_builds,
    strangers,
)
from envsolve.app.targets import glibc_of
from envsolve.conda.names import present_projects
from envsolve.errors import Hint, UnsolvableError
from envsolve.frameworks import FRAMEWORK_OF_WHEEL, FRAMEWORKS, OWN_INDEX, rivals_of
from envsolve.index.fitting import Interpreter
from envsolve.matrix.load import Matrix
from envsolve.model.asker import Asker
from envsolve.model.conda import CondaPackage
from envsolve.model.need import Markers
from envsolve.model.note import Note
from envsolve.model.package import Pin, Present
from envsolve.model.request import Request
from envsolve.model.solution import Problem, Solution
from envsolve.resolve.closure.releases import Sources, Wanted
from envsolve.resolve.closure.resolve import Conflict, Found, Progress, Question, end_of_search, found_for

_OTHER_PYTHON = re.compile(r"pypy|graalpy|cp\d+t\Z")
"""In the name of a build: an interpreter that takes other wheels than CPython does, or CPython without its lock."""
_PURE = "-none-any.whl"


class PipSide(NamedTuple):
    """What pip is to install: the requirements of ``wanted``, and the wheels of the stack, None without one.

    ``wanted`` has the user's constraints, too. Of the stack every build counts, those of conda as well: its bounds hold
    for all packages. ``held`` are the versions of an existing lock, by name.
    """

    request: Request
    wanted: Given
    solution: Solution | None
    held: Mapping[str, str] = {}


class Wheels(NamedTuple):
    """The pins by name, without what conda installs, and what to note of them.

    ``frameworks`` are those among the pins that the stack does not know: they came in as dependencies, as builds for
    whatever GPU. ``companions`` are pins with code for PyTorch's own wheels, where conda installs another build of it.
    """

    pins: tuple[Pin, ...]
    notes: tuple[Note, ...] = ()
    frameworks: tuple[str, ...] = ()
    companions: frozenset[str] = frozenset()


def wheels_beside(
    packages: Sequence[CondaPackage],
    asked: PipSide,
    interpreter: Interpreter,
    matrix: Matrix,
    where: Places,
    lines: Lines,
    progress: Progress | None = None,
) -> Wheels:
    """Everything that pip installs for ``asked`` beside ``packages``, for the Python among them.

    Raises UnsolvableError where there is no such set of wheels, OutsideError where an index fails, UsageError where two
    files are named for one project.
    """
    request, solution = asked.request, asked.solution
    wanted = for_target(asked.wanted, Markers(interpreter.marker_values()))
    stack = () if solution is None else tuple(needs_of(solution))
    present = present_projects(packages)
    _refuse_doubles(solution, present, request.asker)
    places = () if solution is None or solution.toolkit is None else places_of(matrix)
    sources = Sources.ANY if request.packages.allow_builds else Sources.NONE
    question = Question(
        asked=(*stack, *wanted.needs),
        wanted=Wanted(
            interpreter,
            request.packages.exclude_newer,
            sources,
            wanted.hashes,
            as_if_built=request.packages.allow_builds,
            prereleases=request.packages.pre,
        ),
        limits=Limits(None if solution is None else bounds_of(solution, matrix, present), wanted),
        held=asked.held,
        present=present,
        judge=required_by_builds(matrix, interpreter.platform, places, _wheels_of(solution)),
        virtual=places,
    )
    try:
        indexes = indexes_for(solution, wanted, request.packages, where, lines)
        found = found_for(question, indexes, end_of_search(builds=request.packages.allow_builds), progress)
    except Conflict as conflict:
        from envsolve.app.lock_refusal import packages_refusal

        raise packages_refusal(conflict, request, solution, interpreter) from conflict
    for release, stranger in strangers(solution, found.pins, request.packages):
        from envsolve.app.lock_refusal import stranger_refusal

        raise stranger_refusal(release, stranger, request)
    frameworks = tuple(_frameworks(found.pins, solution))
    notes = (*_notes(found, present), *notes_of_metadata(found, request))
    return Wheels(found.pins, notes, frameworks, _companions(found.pins, present))


def python_among(packages: Iterable[CondaPackage], problem: Problem, asker: Asker) -> Interpreter:
    """The Python and the system that wheels have to suit.

    Raises UnsolvableError where conda installs no Python, or one that takes other wheels.
    """
    python = next((it for it in packages if it.name == "python"), None)
    if python is None:
        message = "wheels need a Python, and conda installs none"
        raise UnsolvableError("no-python", message, hints=(Hint(f"request one: {asker.saying('python', '3.12')}"),))
    if _OTHER_PYTHON.search(python.build):
        message = f"wheels are resolved for standard CPython only, and conda installs {python.version} {python.build}"
        raise UnsolvableError("python-not-supported", message)
    major, minor, patch = (*Version(python.version).release, 0, 0)[:3]
    return Interpreter((major, minor, patch), problem.platform, glibc_of(problem))


def _wheels_of(solution: Solution | None) -> dict[str, str]:
    """The packages of the frameworks that pip installs, with the framework of each."""
    releases = (it.release for it in (solution.choices if solution else ()))
    return {it.package: it.framework for it in releases if it.source.is_wheel}


def _refuse_doubles(solution: Solution | None, present: Mapping[str, Present], asker: Asker) -> None:
    """Raise UnsolvableError where conda installs a framework whose wheel the stack has: it would be over its files."""
    for release in () if solution is None else (choice.release for choice in solution.choices):
        for name in (release.package, *rivals_of(release.framework)):
            if release.source.is_wheel and name in present:
                wheel = f"{release.package} {release.version}"
                raise UnsolvableError(
                    "packages-conflict",
                    f"conda installs {present[name]}, and pip would overwrite it with {wheel}",
                    hints=(Hint(f"install both from conda: {asker.saying('sources', 'conda-forge')}"),),
                )


def _notes(found: Found, present: Mapping[str, Present]) -> Iterator[Note]:
    for name, extra in found.bare:
        text = f"conda installs {present[name]} without extras: the lock lacks the dependencies of {name}[{extra}]"
        yield Note("extra-not-locked", text)
    for pin in found.pins:
        yield from notes_of(pin)


def _frameworks(pins: Iterable[Pin], solution: Solution | None) -> Iterator[str]:
    known = set() if solution is None else {choice.release.framework for choice in solution.choices}
    found = (FRAMEWORK_OF_WHEEL[pin.name] for pin in pins if pin.name in FRAMEWORK_OF_WHEEL)
    yield from dict.fromkeys(it for it in found if it not in known)


def _companions(pins: Iterable[Pin], present: Mapping[str, Present]) -> frozenset[str]:
    """What of PyTorch's family has compiled code among ``pins``, where PyTorch itself is conda's."""
    of_conda = {it.name for it in FRAMEWORKS.values() if any(wheel in present for wheel in it.wheels)}
    return frozenset(
        it.name for it in pins if OWN_INDEX.get(it.name) in of_conda and not it.files[0].name.endswith(_PURE)
    )
