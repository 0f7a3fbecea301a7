"""The wheels of a conda lock: what no channel has, resolved from package indexes beside what conda installs.

The conda packages that are chosen stay as they are. Where one of them is what a wheel requires, it is that or a
refusal: pip would put another version over its files, and conda would not know. After a refusal conda chooses again
under the requirements of the wheels. Loaded only where there is something for pip.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from packaging.version import Version

from envsolve.app.lock.lock_notes import notes_of_metadata
from envsolve.app.lock.lock_refusal import packages_refusal, refuse_strangers
from envsolve.app.packages.direct_packages import with_direct
from envsolve.app.packages.lock_frameworks import holding_on
from envsolve.app.packages.lock_indexes import Connection, Places, places, settings_of
from envsolve.app.packages.requirements import Requirements, build_constraints_in, for_interpreter, read_requirements
from envsolve.app.packages.stack_wheels import indexes_for, limits_around, notes_of, question_around
from envsolve.app.request.network import Network
from envsolve.app.request.targets import Target, glibc_of
from envsolve.conda.names import present_projects
from envsolve.conda.session import CondaConflict
from envsolve.conda.specs import conda_versions
from envsolve.errors import Hint, UnsolvableError
from envsolve.frameworks import FRAMEWORK_OF_WHEEL, FRAMEWORKS, OWN_INDEX, rivals_of
from envsolve.index.fitting import Interpreter
from envsolve.matrix.load import Matrix
from envsolve.model.asker import Asker
from envsolve.model.conda import CondaPackage
from envsolve.model.note import Note
from envsolve.model.package import Pin, Present
from envsolve.model.request import Packages, Request
from envsolve.model.solution import Problem, Solution
from envsolve.resolve.closure.resolve import Conflict, Found, Progress, end_of_search, found_for

_OTHER_PYTHON = re.compile(r"pypy|graalpy|cp\d+t\Z")
"""In the name of a build: an interpreter that takes other wheels than CPython does, or CPython without its lock."""
_PURE = "-none-any.whl"


_MOST_ROUNDS = 5
"""Times that conda chooses again because of what wheels require."""


class PipSide(NamedTuple):
    """What pip is to install: the requirements of ``wanted``, and the wheels of the stack, None without one.

    ``wanted`` has the user's constraints, too. Of the stack every build counts, those of conda as well: its bounds hold
    for all packages. ``held`` are the versions of an existing lock, by name.
    """

    request: Request
    wanted: Requirements
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


class CondaWheels:
    """The package indexes of one command. ``request`` is as typed, with what opens its indexes.

    ``where`` are those that were asked last, None if none was.
    """

    def __init__(self, request: Request, network: Network, matrix: Matrix, environ: Mapping[str, str]) -> None:
        self._request, self._matrix = request, matrix
        self._settings = settings_of(environ)
        self.where: Places | None = None
        builds, constraints = request.packages.allow_builds, build_constraints_in(request.packages.build_constraints)
        self._connection = Connection(network, self._settings, environ, builds=builds, build_constraints=constraints)

    def close(self) -> None:
        """Keep what was learned, and end all connections."""
        self._connection.close()

    @property
    def notes(self) -> tuple[Note, ...]:
        """What to know of settings and cache."""
        return self._connection.notes

    def with_conda(
        self,
        solve: Callable[[Sequence[str]], Sequence[CondaPackage]],
        target: Target,
        solution: Solution | None,
        wanted: Requirements | None,
        held: Mapping[str, str],
        progress: Progress,
    ) -> tuple[Sequence[CondaPackage], Wheels]:
        """What conda installs, by ``solve`` under constraints, and what pip for ``wanted`` and the wheels of a stack.

        Raises UnsolvableError, OutsideError, and what ``solve`` raises without constraints.
        """
        holds = holding_on((target.problem,))
        wanted = with_direct(
            wanted or read_requirements(Packages()), self._connection, target.request.format, holds, {}
        )
        where = self.where = places(self._request, wanted, self._settings)
        request = target.request._replace(packages=self._request.packages)
        side = PipSide(request, wanted, solution, held)
        constraints: list[str] = []
        packages = solve(())
        for _ in range(_MOST_ROUNDS):
            interpreter = python_among(packages, target.problem, request.asker)
            try:
                return packages, wheels_beside(
                    packages, side, interpreter, self._matrix, where, self._connection, progress
                )
            except UnsolvableError as error:
                others = list(_others(error.__cause__)) if isinstance(error.__cause__, Conflict) else []
                if not others or set(others) <= set(constraints):
                    raise
                constraints += others
                try:
                    packages = solve(constraints)
                except CondaConflict:
                    raise error from None
        return packages, wheels_beside(packages, side, interpreter, self._matrix, where, self._connection, progress)


def wheels_beside(
    packages: Sequence[CondaPackage],
    asked: PipSide,
    interpreter: Interpreter,
    matrix: Matrix,
    where: Places,
    connection: Connection,
    progress: Progress | None = None,
) -> Wheels:
    """Everything that pip installs for ``asked`` beside ``packages``, for the Python among them.

    Raises UnsolvableError if there is no such set of wheels, OutsideError where an index fails, UsageError where two
    files are named for one project.
    """
    request, solution = asked.request, asked.solution
    wanted = for_interpreter(asked.wanted, interpreter)
    present = present_projects(packages)
    _refuse_doubles(solution, present, request.asker)
    limits = limits_around(solution, wanted, matrix, present)
    question = question_around(solution, wanted, interpreter, request.packages, matrix, limits)
    question = question._replace(held=asked.held, present=present)
    try:
        indexes = indexes_for(solution, wanted, request.packages, where, connection)
        found = found_for(question, indexes, end_of_search(builds=request.packages.allow_builds), progress)
    except Conflict as conflict:
        raise packages_refusal(conflict, request, solution, interpreter) from conflict
    refuse_strangers(solution, found.pins, request)
    frameworks = tuple(_frameworks(found.pins, solution))
    notes = (*_notes(found, present), *notes_of_metadata(found, request))
    return Wheels(found.pins, notes, frameworks, _companions(found.pins, present))


def python_among(packages: Iterable[CondaPackage], problem: Problem, asker: Asker) -> Interpreter:
    """The Python and the system that wheels have to suit.

    Raises UnsolvableError if conda installs no Python, or one that takes other wheels.
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


def _refuse_doubles(solution: Solution | None, present: Mapping[str, Present], asker: Asker) -> None:
    """Raise UnsolvableError if conda installs a framework whose wheel the stack has: it would be over its files."""
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


def _others(conflict: Conflict) -> list[str]:
    """What of conda would have to be another version, for the newest of the wheels that say so."""
    present = conflict.provider.world.present
    unmet = [(ask, by) for ask, by in conflict.causes if ask.name in present and not ask.mask and ask.specifier]
    newest: dict[str, int] = {}
    for _, by in unmet:
        if by is not None:
            newest[by.name] = max(by.position, newest.get(by.name, 0))
    return [
        f"{present[ask.name].package} {conda_versions(ask.specifier)}"
        for ask, by in unmet
        if not ask.specifier.startswith(" @") and (by is None or by.position == newest[by.name])
    ]
