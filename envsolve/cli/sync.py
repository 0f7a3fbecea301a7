"""``envsolve sync``: change the environment of the project to match its lock; only differences are installed."""

from __future__ import annotations

import os
import shlex
from contextlib import chdir, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from envsolve.cli.create import created_from, finish
from envsolve.cli.create_lock import locks_of
from envsolve.cli.interrupts import interruptible
from envsolve.cli.lock import project_option
from envsolve.cli.options import (
    Command,
    FileName,
    dry_run_option,
    matrix_of,
    matrix_option,
    option,
    output_options,
    stacked,
)
from envsolve.cli.report import note
from envsolve.cli.solve_options import HOW_TO_FETCH, REQUEST, options_of_solve
from envsolve.errors import EnvsolveError, Hint, UsageError
from envsolve.model.note import Note

if TYPE_CHECKING:
    from envsolve import documents
    from envsolve.app.environment.creating import Created
    from envsolve.project import Project

_PREFIX = ".venv"

environment_options = stacked(
    click.option(
        "--prefix",
        metavar="DIR",
        type=FileName("directory"),
        help=f"The environment's directory; default: {_PREFIX} in the directory of the project.",
    ),
    click.option(
        "--lock",
        "lock_file",
        metavar="FILE",
        type=FileName("file"),
        help="The lock; default: the first that the project has for this machine.",
    ),
)
"""The environment of a project, and what is in it."""


@click.command(cls=Command, short_help="Update the environment of the project to match its lock.")
@project_option
@environment_options
@option("--no-validate", is_flag=True, help="Do not test the environment by running kernels in it.")
@option("--json", "print_json", is_flag=True, help="Print JSON with the environment, its changes and its validation.")
@dry_run_option
@options_of_solve(HOW_TO_FETCH)
@matrix_option
@output_options
def sync(**options: Any) -> int:
    """Update the environment of the project to match its lock, and test it.

    Only what differs is installed or removed, packages that someone else installed there too. If there is no
    environment yet, or its Python does not fit the lock, it is created.

    \b
    Examples:
      envsolve sync
      envsolve sync --lock conda-lock.yml --prefix env
    """
    from envsolve.project import project_file, read_project

    return sync_project(read_project(project_file(options["project"])), options)


def sync_project(project: Project, options: dict[str, Any], locked: documents.Lock | None = None) -> int:
    """Change the environment of ``project`` to match its lock, and report the changes; returns the exit code.

    ``locked`` is the document of the locks that were written before; in JSON it contains that of the environment.
    """
    note_if_stale(project, options)
    created = synced(project, options)
    no_validate = options.get("no_validate")
    code = finish(
        created,
        {**options, "no_validate": no_validate or created.passed},
        locked,
        repair=partial(synced, project, options),
    )
    if no_validate:
        note_if_failed(created.prefix, created.passed, options)
    return code


def synced(project: Project, options: dict[str, Any], again: frozenset[str] = frozenset()) -> Created:
    """The environment of ``project`` after it was changed to match its lock, with ``again`` reinstalled.

    Raises the errors of creating one.
    """
    with interruptible():
        name = project.file.name
        return created_from({**options, **_of_create(project, options)}, changes=True, again=again, project=name)


def note_if_stale(project: Project, options: dict[str, Any]) -> None:
    """Note that the lock no longer matches the project: the environment follows the lock."""
    from envsolve.app.project.project_status import project_status
    from envsolve.app.status.status import Verdict

    lock = lock_of(project, options).absolute()
    with suppress(EnvsolveError), chdir(project.directory):
        for it in project_status(project, matrix_of(options), os.environ):
            if it.verdict is Verdict.STALE and Path(it.path).absolute() == lock:
                why = it.reasons[-1].text if it.reasons else "the project changed"
                note(Note("stale", f"{it.path} is out of date ({why})", "envsolve lock"), quiet=options["quiet"])


def note_if_failed(prefix: Path, passed: bool | None, options: dict[str, Any]) -> None:
    """Note that the last validation of the environment failed, if this command does not repeat it."""
    if passed is False:
        named = [("--prefix", options["prefix"]), ("--lock", options["lock_file"])]
        command = shlex.join(["envsolve", "sync", *(word for it in named if it[1] for word in it)])
        text = f"{prefix} is not proven: its last validation failed"
        note(Note("validation-failed", text, command), quiet=options["quiet"])


def prefix_of(project: Project, options: dict[str, Any]) -> Path:
    """The directory of the environment."""
    return Path(options["prefix"]).absolute() if options["prefix"] else project.directory / _PREFIX


def lock_of(project: Project, options: dict[str, Any]) -> Path:
    """The lock that the environment is made from.

    Raises UsageError ``no-lock`` if the project has none for this machine, ``several-locks`` if its targets have one
    each.
    """
    if options["lock_file"]:
        return Path(options["lock_file"])
    locks = [Path(it) for it in dict.fromkeys(locks_of(project))]
    there = [it for it in locks if it.is_file()]
    if not there:
        names = " and ".join(it.name for it in locks) or "a lock that an environment is made from"
        message = f"the project has no lock for this machine yet: {names} is missing"
        raise UsageError("no-lock", message, hints=(Hint("write it", "envsolve lock"),))
    if len([part for part in project.parts if part.outputs]) > 1:
        typed = [os.path.relpath(it) for it in there]
        message = f"the targets of the project have locks of their own: {', '.join(typed)}"
        raise UsageError("several-locks", message, hints=(Hint(f"name one: --lock {typed[0]}"),))
    return there[0]


def _of_create(project: Project, options: dict[str, Any]) -> dict[str, Any]:
    """The options of ``create`` that follow from the project."""
    settings = project.parts[0].settings
    return {
        **dict.fromkeys(REQUEST, ()),
        "prefix": str(prefix_of(project, options)),
        "lock_file": str(lock_of(project, options)),
        "python": None,
        "force": False,
        "keep": False,
        "platforms": (),
        "allow_builds": settings.allow_builds,
        "build_constraint_files": tuple(str(project.directory / it) for it in settings.build_constraint_files),
        "channels": settings.channels,
        "index_url": settings.index_url,
        "extra_index_urls": settings.extra_index_urls,
        "pytorch_index_url": settings.pytorch_index_url,
    }
