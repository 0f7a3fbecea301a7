"""Whether the files of a project are what it asks for now, and run on the machines that it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from packaging.specifiers import SpecifierSet

from envsolve.app.asked_since import asked_since
from envsolve.app.command import recorded_command
from envsolve.app.command_changes import command_changes
from envsolve.app.held_stack import HeldStack, held_stack
from envsolve.app.project_locking import capability_in
from envsolve.app.project_requests import Asked, asked_by
from envsolve.app.solving import request_without_secrets
from envsolve.app.status import FileStatus, Verdict, file_status, require_settled, unreadable
from envsolve.app.targets import Target, targets_of
from envsolve.errors import UsageError
from envsolve.lockfile.recorded_command import words_asked_by
from envsolve.matrix.load import Matrix
from envsolve.model.request import Packages
from envsolve.project import Project
from envsolve.resolve.solver import Solver


def project_status(project: Project, matrix: Matrix, environ: Mapping[str, str]) -> list[FileStatus]:
    """The status of every file of the project; the current directory is that of the project.

    Raises UsageError where what the project names, or a machine, cannot be made out, UnsolvableError for a GPU that is
    not identified.
    """
    found: list[FileStatus] = []
    for asked in asked_by(project, matrix, environ, Packages()):
        targets = targets_of(asked.request, matrix, environ)
        found += [_status(asked, target, matrix) for target in targets]
    return found


def _status(asked: Asked, target: Target, matrix: Matrix) -> FileStatus:
    platform = target.problem.platform
    path = asked.path(platform)
    if not Path(path).is_file():
        return FileStatus(path, platform, Verdict.MISSING, reasons=("it is not written yet",))
    try:
        require_settled(Path(path))
        known = file_status(path, target, matrix)
        held = held_stack(Path(path), platform, matrix)
    except UsageError as error:
        return unreadable(path, target, error)
    if held is None:
        return known
    known = known._replace(newer=tuple(_newer(held, target, matrix)))
    known = known._replace(notes=(*known.notes, *target.notes))
    differs = tuple(_differs(asked, held, target, matrix))
    if differs and known.verdict in (Verdict.FITS, Verdict.UNKNOWN, Verdict.NO_FRAMEWORK):
        return known._replace(verdict=Verdict.STALE, reasons=(*known.reasons, *differs))
    return known._replace(reasons=(*known.reasons, *differs))


def _differs(asked: Asked, held: HeldStack, target: Target, matrix: Matrix) -> Iterator[str]:
    """What the project asks for now that the file was not made for."""
    if held.recorded is None:
        yield "it was not made by envsolve, or does not say for what"
        return
    bare, _ = request_without_secrets(asked.as_recorded)
    wanted, made = recorded_command(bare), str(held.recorded.get("command", ""))
    capability = capability_in(matrix)
    same = words_asked_by(wanted, capability) == words_asked_by(made, capability)
    if not same:
        yield command_changes(made, wanted) or f"it was made with `{made}`, and now that is `{wanted}`"
    yield from asked_since(bare, held, target.problem.platform, same_command=same)
    listed = held.recorded.get("compute_capabilities")
    before = sorted(map(str, listed)) if isinstance(listed, list) else None
    now = sorted({str(gpu) for gpu in target.problem.gpus})
    if same and before is not None and before != now:
        yield f"it was made for {_machine(before)}, and now that is {_machine(now, again=bool(before))}"


def _machine(capabilities: list[str], *, again: bool = False) -> str:
    """``again`` says that the sentence has named a compute capability already."""
    named = "" if again else "compute capability "
    return f"{named}{', '.join(capabilities)}" if capabilities else "the CPU"


def _newer(held: HeldStack, target: Target, matrix: Matrix) -> Iterator[str]:
    """Newer releases of the frameworks in the file that the project would take and its machines run."""
    rows = [row for rows in held.releases.values() for row in rows]
    wanted = target.problem.frameworks
    if not rows or not wanted or {it.framework for it in wanted} - set(held.releases):
        return
    python = target.problem.python or (None if held.python is None else SpecifierSet(f"=={held.python}.*"))
    best = Solver(matrix).solve(target.request._replace(python=python), target.problem._replace(python=python))
    for choice in best.choices if best is not None else ():
        versions = [row.version for row in held.releases.get(choice.release.framework, ())]
        if versions and all(choice.release.version > version for version in versions):
            yield f"{choice.release.label} is newer and runs there too: envsolve lock -P {choice.release.framework}"
