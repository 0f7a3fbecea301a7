"""How the files of a project change: which packages change, why, and which newer stack would be possible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from envsolve.app.project.project_locking import LockedFile
from envsolve.app.project.project_status import status_in_project
from envsolve.app.project.uv_settings import PartLock, uv_settings
from envsolve.app.request.targets import targets_of
from envsolve.app.status.package_changes import Change, package_changes
from envsolve.app.status.status import NO_LONGER_INFERRED
from envsolve.lockfile.lock import Lock
from envsolve.matrix.load import Matrix
from envsolve.model.host import Platform
from envsolve.model.note import Note
from envsolve.model.prose import sentence_list
from envsolve.model.release import Release
from envsolve.model.request import LockedVersions
from envsolve.model.solution import Solution
from envsolve.project import Project
from envsolve.project.reading import PYPROJECT
from envsolve.resolve.solver import Solver

if TYPE_CHECKING:
    from envsolve import documents


class Possible(NamedTuple):
    """A newer stack that runs on the same machines, the locked one, and the driver that allows it.

    ``text`` is the sentence for users.
    """

    stack: str
    locked: str
    allowed_by: str | None
    text: str

    def as_json(self) -> documents.Possible:
        """The stack, for JSON."""
        return {"stack": self.stack, "held": self.locked, "allowed_by": self.allowed_by, "text": self.text}


class FileChange(NamedTuple):
    """A file of the project: whether it must be written, its changes, and why its old stack does not fit.

    ``changes`` are None if they were not determined. ``possible`` is a newer stack that would run without the pins.
    """

    path: str
    platform: Platform
    is_new: bool
    is_current: bool
    changes: tuple[Change, ...] | None
    reasons: tuple[Note, ...]
    possible: Possible | None

    @property
    def status(self) -> Literal["current", "new", "stale"]:
        """``current``, ``new`` or ``stale``."""
        return "current" if self.is_current else "new" if self.is_new else "stale"


class UvChange(NamedTuple):
    """The change to the pyproject.toml of a project that uv locks, too: its text, and the command to run afterwards."""

    change: FileChange
    after: str
    note: Note


def settings_of_uv(
    project: Project, files: Sequence[LockedFile], matrix: Matrix, environ: Mapping[str, str], edited: str | None
) -> UvChange | None:
    """The change to [tool.uv] after ``files`` are written; None if the project does not use it.

    ``edited`` is the text of the pyproject.toml if it must be written in any case. Raises the same errors as
    :func:`uv_settings`.
    """
    locks = ((it, it.existing if it.lock is None else it.lock) for it in files)
    there = [PartLock(it.wanted, it.platform, lock) for it, lock in locks if lock is not None]
    found = uv_settings(project, there, matrix, environ, edited)
    if found is None:
        return None
    changes = () if found.is_current else None
    change = FileChange(PYPROJECT, found.platform, False, found.is_current, changes, (), None)
    text = "the next `uv lock` chooses the versions of the locks"
    if found.is_removed:
        text = "the lines of envsolve are removed: the next `uv lock` no longer follows the locks"
    note = Note("uv-settings", text, found.command)
    return UvChange(change, found.after, note)


def change_of(file: LockedFile, matrix: Matrix, environ: Mapping[str, str]) -> FileChange:
    """The change to ``file``, which is not written yet. The current directory is that of the project."""
    is_new = file.before is None
    changes: tuple[Change, ...] | None = ()
    reasons: tuple[Note, ...] = ()
    if not file.is_current:
        changes = None if file.lock is None else _changes(file, file.lock)
        reasons = () if is_new else tuple(_reasons(file, matrix, environ))
    possible = None if is_new else _possible(file, matrix)  # a first lock has no pins
    return FileChange(file.path, file.platform, is_new, file.is_current, changes, reasons, possible)


def _changes(file: LockedFile, lock: Lock) -> tuple[Change, ...]:
    """The packages that change in a file, and its Python if that is not a package."""
    existing = file.existing or Lock(())
    found = package_changes(existing, lock, file.platform)
    is_pinned = "python" in {**existing.versions, **lock.versions}
    if not is_pinned and existing.python and existing.python != lock.python:
        found = (*found, Change("python", existing.python, lock.python or None))
    return tuple(sorted(found, key=lambda it: it.name))


def _reasons(file: LockedFile, matrix: Matrix, environ: Mapping[str, str]) -> Iterator[Note]:
    """Why the file is stale, in the words of ``envsolve status``."""
    for target in targets_of(file.wanted.request, matrix, environ):
        if target.problem.platform is file.platform:
            found = status_in_project(file.wanted, target, matrix, environ)
            yield from () if found.verdict.is_good else found.reasons
            yield from (it for it in found.notes if it.code == NO_LONGER_INFERRED)


def _possible(file: LockedFile, matrix: Matrix) -> Possible | None:
    """The newer stack that would run on the machines of ``file`` without its pins; None if there is none."""
    locked = file.solution
    if locked is None:
        return None
    free = locked.request._replace(prefer=file.wanted.request.prefer, locked=LockedVersions())
    best = Solver(matrix).solve(free, locked.problem)
    if best is None or not _is_newer(best, locked):
        return None
    drivers = {str(machine.driver) for machine in best.problem.machines if machine.driver is not None}
    stack, old_stack = _difference_text(best, locked), _difference_text(locked, best)
    if not (_toolkit(best) > _toolkit(locked) and best.toolkit is not None and drivers):
        return Possible(stack, old_stack, None, f"{stack} would run here, but {old_stack} is locked")
    several = len(drivers) > 1
    named = f"driver{'s' * several} {' and '.join(sorted(drivers))}"
    allowed = f"{named} allow{'s' * (not several)} CUDA {best.toolkit.version}"
    would = f": {stack} would run here" if _differing(best, locked) else ""
    return Possible(stack, old_stack, allowed, f"{allowed}{would}, but {old_stack} is locked")


def _is_newer(best: Solution, locked: Solution) -> bool:
    old_versions = {it.release.framework: it.release.version for it in locked.choices}
    newer = [
        it for it in best.choices if it.release.version > old_versions.get(it.release.framework, it.release.version)
    ]
    return bool(newer) or _toolkit(best) > _toolkit(locked)


def _toolkit(solution: Solution) -> tuple[int, ...]:
    return () if solution.toolkit is None else tuple(solution.toolkit.version)


def _differing(solution: Solution, other: Solution) -> list[Release]:
    of_other = {it.release.framework: it.release.version for it in other.choices}
    return [it.release for it in solution.choices if of_other.get(it.release.framework) != it.release.version]


def _difference_text(solution: Solution, other: Solution) -> str:
    """The frameworks of ``solution`` that have another version in ``other``, and the CUDA if it differs."""
    named = sentence_list(f"{it.framework} {it.version}" for it in _differing(solution, other))
    if solution.toolkit is None or _toolkit(solution) == _toolkit(other):
        return named
    cuda = f"CUDA {solution.toolkit.version}"
    return f"{named} with {cuda}" if named else cuda
