"""Whether the files of a project meet its requirements and run on its machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from packaging.specifiers import SpecifierSet

from envsolve.app.packages.conda_requirements import requirements_of, with_stack
from envsolve.app.packages.lock_frameworks import with_frameworks
from envsolve.app.packages.lock_indexes import places, settings_of
from envsolve.app.project.project_requests import FileRequest, file_requests
from envsolve.app.project.uv_settings import PartLock, uv_settings
from envsolve.app.request.targets import Target, targets_of
from envsolve.app.solve.solving import request_without_secrets
from envsolve.app.status.lock_satisfies import differences
from envsolve.app.status.locked_stack import LockedStack
from envsolve.app.status.status import FileStatus, Verdict, file_status, require_settled, unreadable
from envsolve.errors import UnsolvableError, UsageError
from envsolve.matrix.load import Matrix
from envsolve.model.lock_format import PYTHON_FORMATS
from envsolve.model.note import Note
from envsolve.model.request import Packages, Request
from envsolve.project import Project
from envsolve.project.reading import PYPROJECT
from envsolve.resolve.solver import Solver


def project_status(project: Project, matrix: Matrix, environ: Mapping[str, str]) -> list[FileStatus]:
    """The status of every file of the project. The current directory is that of the project.

    Raises UsageError if a file or machine that the project names cannot be read, UnsolvableError if a GPU is not
    identified.
    """
    found: list[FileStatus] = []
    locks: list[PartLock] = []
    for file in file_requests(project, matrix, environ, Packages()):
        for target in targets_of(file.request, matrix, environ):
            known = status_in_project(file, target, matrix, environ)
            stack = known.stack
            if stack is not None:
                newer: tuple[str, ...] = ()
                with suppress(UnsolvableError):  # locking reports that
                    newer = tuple(_newer(stack, _with_requirements(file.request, target, stack, environ), matrix))
                known = known._replace(newer=newer, notes=(*known.notes, *target.notes))
                locks.append(PartLock(file, target.problem.platform, stack.lock))
            found.append(known)
    return [*found, *_uv_status(project, locks, matrix, environ)]


def _uv_status(
    project: Project, locks: Sequence[PartLock], matrix: Matrix, environ: Mapping[str, str]
) -> Iterator[FileStatus]:
    """Whether [tool.uv] agrees with ``locks``, if the project uses it."""
    settings = uv_settings(project, locks, matrix, environ)
    if settings is not None:
        verdict = Verdict.FITS if settings.is_current else Verdict.STALE
        reasons = () if settings.is_current else (Note("uv-settings", "[tool.uv] has other versions than the locks"),)
        yield FileStatus(PYPROJECT, settings.platform, verdict, reasons=reasons)


def status_in_project(file: FileRequest, target: Target, matrix: Matrix, environ: Mapping[str, str]) -> FileStatus:
    """The status of ``file`` for the platform of ``target``, from the file alone.

    Raises UsageError if a file that the project names cannot be read.
    """
    platform = target.problem.platform
    path = file.path(platform)
    if not Path(path).is_file():
        return FileStatus(
            path, platform, Verdict.MISSING, reasons=(Note(Verdict.MISSING.value, "it is not written yet"),)
        )
    try:
        require_settled(Path(path))
        known = file_status(path, target, matrix, environ)
    except UsageError as error:
        return unreadable(path, target, error)
    if known.stack is None:
        return known
    bare, _ = request_without_secrets(file.as_recorded)
    differing = tuple(it.note for it in differences(known.stack.lock, bare, target))
    is_stale = differing and known.verdict in (Verdict.FITS, Verdict.UNKNOWN, Verdict.NO_FRAMEWORK)
    verdict = Verdict.STALE if is_stale else known.verdict
    return known._replace(verdict=verdict, reasons=(*known.reasons, *differing))


def _with_requirements(request: Request, target: Target, stack: LockedStack, environ: Mapping[str, str]) -> Target:
    """``target`` with the frameworks that are requirements of the project, for the Python of the file."""
    requirements = requirements_of(request, target.problem.platform, stack.lock.python)
    if request.format not in PYTHON_FORMATS:
        return with_stack(target, requirements, (*request.channels, *requirements.channels))
    if requirements.python is None:
        return target
    return with_frameworks(target, requirements.python, places(request, requirements.python, settings_of(environ)))


def _newer(stack: LockedStack, target: Target, matrix: Matrix) -> Iterator[str]:
    """Newer releases of the frameworks in the file that the project allows and its machines run."""
    rows = [row for rows in stack.releases.values() for row in rows]
    wanted = target.problem.frameworks
    if not rows or not wanted or {it.framework for it in wanted} - set(stack.releases):
        return
    python = target.problem.python or (None if stack.python is None else SpecifierSet(f"=={stack.python}.*"))
    narrowed = target.with_bounds(python=python)
    best = Solver(matrix).solve(narrowed.request, narrowed.problem)
    for choice in best.choices if best is not None else ():
        versions = [row.version for row in stack.releases.get(choice.release.framework, ())]
        if versions and all(choice.release.version > version for version in versions):
            yield f"{choice.release.label} also runs there: envsolve lock -P {choice.release.framework}"
