"""The wheels of a conda lock: packages that no channel has, resolved from package indexes next to conda packages.

The chosen conda packages do not change. If a wheel requires another version of one, the result is a refusal: pip would
overwrite its files, and conda would not know. After a refusal, conda packages are solved again with the requirements of
the wheels. Imported only if pip has something to install.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from packaging.version import Version

from envsolve.app.lock.answer_refusal import refuse_strangers
from envsolve.app.lock.lock_notes import notes_of_metadata
from envsolve.app.lock.lock_refusal import packages_refusal
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
from envsolve.model.conda import CondaPackage
from envsolve.model.note import Note
from envsolve.model.package import Pin, Present
from envsolve.model.request import Packages, Request
from envsolve.model.requester import Requester
from envsolve.model.solution import Problem, Solution
from envsolve.resolve.closure.resolve import Conflict, Found, Progress, end_of_search, found_for

_OTHER_PYTHON = re.compile(r"pypy|graalpy|cp\d+t\Z")
"""In a build string: an interpreter that needs other wheels than CPython, or CPython without the GIL."""
_PURE = "-none-any.whl"


_MOST_ROUNDS = 5
"""The most times that conda packages are solved again because of requirements of wheels."""


class PipSide(NamedTuple):
    """The packages for pip: the requirements in ``wanted``, and the wheels of the stack, None without one.

    ``wanted`` includes the user's constraints. All builds of the stack count, also those from conda: its bounds apply
    to all packages. ``existing`` are the versions in an existing lock, by name.
    """

    request: Request
    wanted: Requirements
    solution: Solution | None
    existing: Mapping[str, str] = {}


class Wheels(NamedTuple):
    """The pins by name, without conda packages, and notes.

    ``frameworks`` are pins of frameworks that are not in the stack: dependencies that may be for any GPU.
    ``companions`` are pins with code for PyTorch's own wheels, while conda installs another build of PyTorch.
    """

    pins: tuple[Pin, ...]
    notes: tuple[Note, ...] = ()
    frameworks: tuple[str, ...] = ()
    companions: frozenset[str] = frozenset()


class CondaWheels:
    """The package indexes of one command. ``request`` is as typed, with logins of its indexes.

    ``where`` are the indexes that were queried last, None if none was.
    """

    def __init__(self, request: Request, network: Network, matrix: Matrix, environ: Mapping[str, str]) -> None:
        self._request, self._matrix = request, matrix
        self._settings = settings_of(environ)
        self.where: Places | None = None
        builds, constraints = request.packages.allow_builds, build_constraints_in(request.packages.build_constraints)
        self._connection = Connection(network, self._settings, environ, builds=builds, build_constraints=constraints)

    def close(self) -> None:
        """Write the cache and close all connections."""
        self._connection.close()

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on settings and the cache."""
        return self._connection.notes

    def with_conda(
        self,
        solve: Callable[[Sequence[str]], Sequence[CondaPackage]],
        target: Target,
        solution: Solution | None,
        wanted: Requirements | None,
        existing: Mapping[str, str],
        progress: Progress,
    ) -> tuple[Sequence[CondaPackage], Wheels]:
        """The conda packages, solved by ``solve`` with constraints, and the wheels for ``wanted`` and the stack.

        Raises UnsolvableError, OutsideError, and the errors of ``solve`` without constraints.
        """
        holds = holding_on((target.problem,))
        wanted = with_direct(
            wanted or read_requirements(Packages()), self._connection, target.request.format, holds, {}
        )
        where = self.where = places(self._request, wanted, self._settings)
        request = target.request._replace(packages=self._request.packages)
        side = PipSide(request, wanted, solution, existing)
        constraints: list[str] = []
        packages = solve(())
        for _ in range(_MOST_ROUNDS):
            interpreter = python_among(packages, target.problem, request.requester)
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
    side: PipSide,
    interpreter: Interpreter,
    matrix: Matrix,
    where: Places,
    connection: Connection,
    progress: Progress | None = None,
) -> Wheels:
    """All wheels for ``side`` next to ``packages``, for the Python among these.

    Raises UnsolvableError if there is no such set of wheels; OutsideError if an index fails; UsageError if two files
    are given for one project.
    """
    request, solution = side.request, side.solution
    wanted = for_interpreter(side.wanted, interpreter)
    present = present_projects(packages)
    _refuse_doubles(solution, present, request.requester)
    limits = limits_around(solution, wanted, matrix, present)
    question = question_around(solution, wanted, interpreter, request.packages, matrix, limits)
    question = question._replace(locked=side.existing, present=present)
    try:
        indexes = indexes_for(solution, wanted, request.packages, where, connection)
        found = found_for(question, indexes, end_of_search(builds=request.packages.allow_builds), progress)
    except Conflict as conflict:
        raise packages_refusal(conflict, request, solution) from conflict
    refuse_strangers(solution, found.pins, request)
    frameworks = tuple(_frameworks(found.pins, solution))
    notes = (*_notes(found, present), *notes_of_metadata(found, request))
    return Wheels(found.pins, notes, frameworks, _companions(found.pins, present))


def python_among(packages: Iterable[CondaPackage], problem: Problem, requester: Requester) -> Interpreter:
    """The Python and the system that wheels must fit.

    Raises UnsolvableError if conda installs no Python, or one that needs other wheels.
    """
    python = next((it for it in packages if it.name == "python"), None)
    if python is None:
        message = "wheels need a Python, and conda installs none"
        raise UnsolvableError(
            "no-python", message, hints=(Hint(f"request one: {requester.setting('python', '3.12')}"),)
        )
    if _OTHER_PYTHON.search(python.build):
        message = f"wheels are resolved for standard CPython only, and conda installs {python.version} {python.build}"
        raise UnsolvableError("python-not-supported", message)
    major, minor, patch = (*Version(python.version).release, 0, 0)[:3]
    return Interpreter((major, minor, patch), problem.platform, glibc_of(problem))


def _refuse_doubles(solution: Solution | None, present: Mapping[str, Present], requester: Requester) -> None:
    """Raise UnsolvableError if conda installs a framework that the stack has as a wheel: files would clash."""
    for release in () if solution is None else (choice.release for choice in solution.choices):
        for name in (release.package, *rivals_of(release.framework)):
            if release.source.is_wheel and name in present:
                wheel = f"{release.package} {release.version}"
                raise UnsolvableError(
                    "packages-conflict",
                    f"conda installs {present[name]}, and pip would overwrite it with {wheel}",
                    hints=(Hint(f"install both from conda: {requester.setting('sources', 'conda-forge')}"),),
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
    """The pins of PyTorch's family with compiled code if PyTorch itself is from conda."""
    of_conda = {it.name for it in FRAMEWORKS.values() if any(wheel in present for wheel in it.wheels)}
    return frozenset(
        it.name for it in pins if OWN_INDEX.get(it.name) in of_conda and not it.files[0].name.endswith(_PURE)
    )


def _others(conflict: Conflict) -> list[str]:
    """The conda packages that would need another version, according to the newest wheels that limit them."""
    present = conflict.provider.world.present
    unmet = [
        (requirement, by)
        for requirement, by in conflict.causes
        if requirement.name in present and not requirement.mask and requirement.specifier
    ]
    newest: dict[str, int] = {}
    for _, by in unmet:
        if by is not None:
            newest[by.name] = max(by.position, newest.get(by.name, 0))
    return [
        f"{present[requirement.name].package} {conda_versions(requirement.specifier)}"
        for requirement, by in unmet
        if not requirement.specifier.startswith(" @") and (by is None or by.position == newest[by.name])
    ]
