"""``envsolve lock``: write every file that the project names, or list what would change."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from envsolve.cli.options import (
    Command,
    FileName,
    dry_run_option,
    matrix_of,
    matrix_option,
    network_of,
    option,
    output_options,
)
from envsolve.cli.output import deliver, deliver_json, is_dry_run, write_all
from envsolve.cli.output_formats import Case, Item, Level, Outcome, output_format, output_format_options, rendered
from envsolve.cli.progress import Progress
from envsolve.cli.report import note
from envsolve.cli.solve_options import HOW_TO_FETCH, REQUEST, options_of_solve
from envsolve.errors import EnvsolveError, Hint
from envsolve.model.note import Note
from envsolve.model.reference import editable

if TYPE_CHECKING:
    from envsolve import documents
    from envsolve.app.project.project_changes import FileChange, Possible
    from envsolve.app.project.project_locking import LockedProject
    from envsolve.app.status.package_changes import Change
    from envsolve.model.fact import Fact
    from envsolve.project import Project

_UPGRADE = "envsolve lock -U"

project_option = option(
    "--project",
    metavar="DIR",
    type=FileName("directory"),
    help="The directory of the project; default: this one, or the nearest above it with [tool.envsolve].",
)


@click.command(cls=Command, short_help="Write the locks of the project.")
@options_of_solve((*REQUEST, "platforms", "allow_builds"))
@project_option
@click.option(
    "--around",
    metavar="DIR",
    type=FileName("directory"),
    help="Leave out what the environment in DIR has, such as the framework of an image, and match it.",
)
@option("--check", is_flag=True, help="Write nothing; exit 1 if a file is missing or out of date.")
@option("--diff", "show_diff", is_flag=True, help="Print package changes; write nothing.")
@dry_run_option
@option("--force", is_flag=True, help="Overwrite files even if envsolve did not write them.")
@option("-U", "--upgrade", is_flag=True, help="Ignore all pinned versions.")
@options_of_solve(("upgraded",))
@output_format_options
@options_of_solve(HOW_TO_FETCH)
@matrix_option
@output_options
def lock(**options: Any) -> int:
    """Write the locks of the project that [tool.envsolve] describes, all of them or none.

    Locked versions stay while they fit: a newer driver changes nothing, another GPU only what has to change.
    Options override the keys of the project for this run: `envsolve lock --driver 580 --diff`.

    \b
    Examples:
      envsolve lock
      envsolve lock --driver 580.65.06 --diff
    """
    from envsolve.app.project.project_overrides import overridden
    from envsolve.project import project_file, read_project

    given = _given(options)
    again = "add -U" if given else f"run `{_UPGRADE}`"
    project = overridden(read_project(project_file(options["project"])), given)
    code, document = lock_files(project, options, again=again)
    if output_format(options) == "json":
        deliver_json(document)
    return code


def lock_files(
    project: Project,
    options: dict[str, Any],
    edited: Sequence[tuple[Path, str]] = (),
    *,
    again: str = f"run `{_UPGRADE}`",
) -> tuple[int, documents.Lock]:
    """Lock ``project`` with the options of ``lock``, and write its files and ``edited``, or none of them.

    ``again`` is how to get newer versions. Returns the exit code, and the document of the changes, which replaces the
    text if JSON is requested.
    """
    from envsolve.app.project.project_changes import change_of, settings_of_uv
    from envsolve.app.project.project_locking import ProjectLock, lock_project
    from envsolve.project.reading import PYPROJECT

    around = options.get("around")
    matrix = matrix_of(options)
    progress = Progress.of(options)
    how = ProjectLock(
        network_of(options),
        options["upgrade"],
        options["upgraded"],
        progress.show,
        progress.packages,
        replaces=options["force"],
        checks=options["check"] and not options["show_diff"],
        around=around and str(Path(around).absolute()),
    )
    with chdir(project.directory):
        progress.show("packages")
        try:
            locked = lock_project(project, how, matrix, os.environ)
        except EnvsolveError as error:
            if error.refused and not edited:
                names = json.dumps([it.name for it in error.refused], ensure_ascii=False)
                error.hints = (*error.hints, Hint(f"or leave out what cannot be locked: exclude = {names}"))
            raise
        finally:
            progress.clear()
        changes = [change_of(it, matrix, os.environ) for it in locked.files]
        files = dict(edited)
        settings = settings_of_uv(project, locked.files, matrix, os.environ, files.get(project.directory / PYPROJECT))
        if settings is not None:
            changes.append(settings.change)
            files |= {} if settings.change.is_current else {project.directory / PYPROJECT: settings.after}
        writes = not options["check"] and not options["show_diff"]
        stale = () if is_dry_run() else (it for it in locked.files if not it.is_current)  # the answer names each lock
        written = [*files.items(), *((Path(it.path), it.text) for it in stale)] if writes else []
        if written:
            write_all(written, in_folders=True)
    answer = _answer(changes, project, options)
    verb = "out of date" if options["check"] else "written" if writes and not is_dry_run() else "would be written"
    facts = _facts(locked) if options["verbose"] else ()
    upgraded = options["upgrade"] or options["upgraded"]  # what is still not newer is pinned by something else
    shown = [it._replace(possible=None) for it in changes] if upgraded else changes
    notes = [*_notes(shown, locked, verb, again), *facts] if not options["quiet"] else []
    deliver(answer, None)
    for it in notes:
        note(it, quiet=False)
    if settings is not None and writes and not settings.change.is_current:
        note(settings.note, quiet=options["quiet"])
    is_current = all(it.is_current for it in changes)
    return 1 if options["check"] and not is_current else 0, _document(changes, locked.notes)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """The options of a request that are given here, by the fields of a project."""
    names = (*REQUEST, "platforms", "allow_builds")
    given = {name: options[name] for name in names if options[name] not in ((), None, False)}
    if folders := given.pop("editables", ()):
        given["requirements"] = (*options["requirements"], *map(editable, folders))
    for name in ("prefer", "audit"):
        if click.get_current_context().get_parameter_source(name) is ParameterSource.DEFAULT:
            del given[name]
    if set(given.get("gpus", ())) == {"none"}:
        given["gpus"] = ("none",)
    return given


def _document(changes: Sequence[FileChange], notes: Sequence[Note]) -> documents.Lock:
    files, note_data = [_data(it) for it in changes], [it.as_json() for it in notes]
    return {"schema_version": 1, "files": files, "notes": note_data}


def _answer(changes: Sequence[FileChange], project: Project, options: dict[str, Any]) -> str:
    """The text on the changes; "" if JSON is requested, which the caller prints."""
    format_name = output_format(options)
    text = "".join(f"{line}\n" for it in _alike(changes) for line in _lines(it))
    if format_name in ("text", "json"):
        return text if format_name == "text" and options["show_diff"] else ""
    cases = tuple(_case(it, project, fails=options["check"]) for it in changes)
    return rendered(Outcome("envsolve lock", cases, text), format_name)


def _case(change: FileChange, project: Project, *, fails: bool) -> Case:
    """A file of the project. A stale file is shown at the changed line, a new one where it is named.

    What is not in the lock yet is shown in the project, and so are changes that are not about a package.
    """
    from envsolve.cli.places import output_place, package_place
    from envsolve.frameworks import packages_of

    path = os.path.relpath(project.directory / change.path)
    name = f"{path} ({change.platform})"
    if change.is_current:
        return Case(name, detail="up to date")
    about = [str(it.fields["name"]) for it in change.reasons if "name" in it.fields]
    names = [*(it.name for it in change.changes or ()), *(name for it in about for name in (*packages_of(it), it))]
    places = [package_place(it, names) for it in (path, os.path.relpath(project.file)) if not change.is_new]
    file, line = next((it for it in places if it[1] is not None), output_place(project))
    words = _change_text(change, "out of date")
    text = "; ".join((f"{name} is {words}", *(it.text for it in change.reasons)))
    level = Level.ERROR if fails else Level.NOTE
    return Case(name, (Item(level, f"lock-{change.status}", text, "Run `envsolve lock`.", file, line),), words)


def _alike(changes: Sequence[FileChange]) -> list[FileChange]:
    """The changes, with equal ones united: files of a project have the same versions."""
    together: dict[FileChange, list[str]] = {}
    for it in changes:
        together.setdefault(it._replace(path=""), []).append(it.path)
    return [it._replace(path=", ".join(paths)) for it, paths in together.items()]


def _data(change: FileChange) -> documents.FileChange:
    return {
        "path": change.path,
        "platform": change.platform.value,
        "status": change.status,
        "changes": None if change.changes is None else [it.as_json() for it in change.changes],
        "reasons": [it.text for it in change.reasons],
        "because": [it.as_json() for it in change.reasons],
        "possible": change.possible and change.possible.as_json(),
    }


def _lines(change: FileChange) -> Iterator[str]:
    """The changes in a file as lines of text."""
    if change.is_current:
        return
    yield f"{change.path} ({change.platform}): {'new' if change.is_new else 'changed'}"
    changes = change.changes or ()
    for it in changes if not change.is_new else ():
        yield f"  {spelled(it)}"
    yield from (f"  because: {reason.text}" for reason in change.reasons)
    if change.is_new:
        yield f"  {len(changes)} packages"


def spelled(change: Change) -> str:
    """A changed package as text."""
    if change.before is None:
        return f"+ {change.name} {change.after}"
    if change.after is None:
        return f"- {change.name} {change.before}"
    if change.before == change.after:
        what = f"other {' and '.join(change.differs)}" if change.differs else "installed again"
        return f"~ {change.name} {change.before} ({what})"
    return f"~ {change.name} {change.before} -> {change.after}"


def _facts(locked: LockedProject) -> tuple[str, ...]:
    """The facts that decided the stack of each file; files with the same stack share a line."""
    paths: dict[Fact, list[str]] = {}
    for file in locked.files:
        for fact in () if file.solution is None else file.solution.because:
            paths.setdefault(fact, []).append(file.path)
    return tuple(f"{', '.join(dict.fromkeys(of))}: {fact.text} [{fact.source}]" for fact, of in paths.items())


def _notes(changes: Sequence[FileChange], locked: LockedProject, verb: str, again: str) -> Iterator[Note | str]:
    """Notes; ``verb`` is what happens to a stale file, ``again`` how to get newer versions."""
    yield from locked.notes
    for it in _alike(changes):
        if it.is_current:
            continue
        yield f"{it.path}: {_change_text(it, verb)}"
        yield from (f"{it.path}: {reason.text}" for reason in it.reasons)
    if all(it.is_current for it in changes):
        yield f"{', '.join(it.path for it in changes)}: up to date"
    possible: dict[Possible, list[str]] = {}
    for it in changes:
        if it.possible is not None:
            possible.setdefault(it.possible, []).append(it.path)
    for found, paths in possible.items():
        yield f"{', '.join(paths)}: {found.text}; {again} to upgrade"


def _change_text(change: FileChange, verb: str) -> str:
    if change.is_new:
        return "missing" if verb == "out of date" else verb
    if change.changes is None:
        return verb
    python = [it for it in change.changes if it.name == "python" and it.before and it.after]
    count = len(change.changes) - len(python)
    packages = f"{count} package{'' if count == 1 else 's'} changed" if count else "same packages"
    return ", ".join((verb, *(f"Python {it.before} -> {it.after}" for it in python), packages))
