"""The pip section of a conda lock: what no channel has, resolved from package indexes beside what conda installs.

Where a wheel requires another version of something than conda chose, conda gets a requirement for that version: what
the two install goes together or not at all. Loaded only where there is something for pip.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from envsolve.app.asked_packages import Given, build_constraints_in, given
from envsolve.app.beside_conda import PipSide, Wheels, python_among, wheels_beside
from envsolve.app.direct_packages import with_direct
from envsolve.app.lock_frameworks import holding_on
from envsolve.app.lock_indexes import Lines, Places, places, settings_of
from envsolve.app.network import Network
from envsolve.app.targets import Target
from envsolve.conda.session import CondaConflict
from envsolve.conda.specs import conda_versions
from envsolve.errors import UnsolvableError
from envsolve.matrix.load import Matrix
from envsolve.model.conda import CondaPackage
from envsolve.model.note import Note
from envsolve.model.request import Packages, Request
from envsolve.model.solution import Solution
from envsolve.resolve.closure.resolve import Conflict, Progress

_MOST_ROUNDS = 5
"""Times that conda chooses again because of what wheels require."""


class CondaWheels:
    """The package indexes of one command. ``request`` is as typed, with what opens its indexes.

    ``where`` are those that were asked last, None where none was.
    """

    def __init__(self, request: Request, network: Network, matrix: Matrix, environ: Mapping[str, str]) -> None:
        self._request, self._matrix = request, matrix
        self._settings = settings_of(environ)
        self.where: Places | None = None
        builds, constraints = request.packages.allow_builds, build_constraints_in(request.packages.build_constraints)
        self._lines = Lines(network, self._settings, environ, builds=builds, build_constraints=constraints)

    def close(self) -> None:
        """Keep what was learned, and end all connections."""
        self._lines.close()

    @property
    def notes(self) -> tuple[Note, ...]:
        """What to know of settings and cache."""
        return self._lines.notes

    def with_conda(
        self,
        solve: Callable[[Sequence[str]], Sequence[CondaPackage]],
        target: Target,
        solution: Solution | None,
        wanted: Given | None,
        held: Mapping[str, str],
        progress: Progress,
    ) -> tuple[Sequence[CondaPackage], Wheels]:
        """What conda installs, by ``solve`` under constraints, and what pip for ``wanted`` and the wheels of a stack.

        Raises UnsolvableError, OutsideError, and what ``solve`` raises without constraints.
        """
        holds = holding_on((target.problem,))
        wanted = with_direct(wanted or given(Packages()), self._lines, target.request.format, holds, {})
        where = self.where = places(self._request, wanted, self._settings)
        request = target.request._replace(packages=self._request.packages)
        side = PipSide(request, wanted, solution, held)
        constraints: list[str] = []
        packages = solve(())
        for _ in range(_MOST_ROUNDS):
            interpreter = python_among(packages, target.problem, request.asker)
            try:
                return packages, wheels_beside(packages, side, interpreter, self._matrix, where, self._lines, progress)
            except UnsolvableError as error:
                others = list(_others(error.__cause__)) if isinstance(error.__cause__, Conflict) else []
                if not others or set(others) <= set(constraints):
                    raise
                constraints += others
                try:
                    packages = solve(constraints)
                except CondaConflict:
                    raise error from None
        return packages, wheels_beside(packages, side, interpreter, self._matrix, where, self._lines, progress)


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
