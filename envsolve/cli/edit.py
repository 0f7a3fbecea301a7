"""``envsolve add`` and ``remove``: add or remove a requirement in the project, its locks and its environment.

``add`` with only ``--prefix`` changes the environment there, whatever tool made it, and no project.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from envsolve.cli.interrupts import interruptible
from envsolve.cli.lock import lock_files, project_option, spelled
from envsolve.cli.options import (
    Command,
    Decorator,
    dry_run_option,
    matrix_of,
    matrix_option,
    network_of,
    option,
    output_options,
    require_not_typed,
    stacked,
)
from envsolve.cli.output import deliver, deliver_json
from envsolve.cli.report import note, note_each
from envsolve.cli.solve_options import HOW_TO_FETCH, options_of_solve
from envsolve.cli.sync import environment_options, sync_project

if TYPE_CHECKING:
    from envsolve.model.note import Note

_AS_IT_IS = {"upgrade": False, "upgraded": (), "force": False, "check": False}
"""Options of ``lock``: locked packages stay if they fit."""

_OF_ENVIRONMENT = ("gpus", "allow_builds", "index_url", "extra_index_urls", "pytorch_index_url")
"""Options of ``add`` for an environment; a project has keys for them."""

_options: Decorator = stacked(
    project_option,
    option("--sync", "syncs", is_flag=True, help="Also bring the environment of the project up to date."),
    environment_options,
    option("--diff", "show_diff", is_flag=True, help="Print package changes; write nothing."),
    dry_run_option,
    option("--json", "print_json", is_flag=True, help="Print what changes as JSON."),
    options_of_solve(HOW_TO_FETCH),
    matrix_option,
    output_options,
)


@click.command(cls=Command, short_help="Add requirements to the project and lock it.")
@click.argument("words", nargs=-1, required=True, metavar="REQUIREMENT...")
@_options
@options_of_solve(_OF_ENVIRONMENT)
def add(**options: Any) -> int:
    """Add requirements to the project and lock it, with as few changes as possible.

    A requirement that is there already gets the new versions. If no lock has room for it, nothing is written.

    With --prefix and without --sync they are installed into that environment, and no project is changed. Installed
    frameworks stay as they are, and other packages unless they are in the way. --gpu, --allow-builds and the index
    options are for this; a project has keys for them.

    \b
    Examples:
      envsolve add pandas 'transformers>=5'
      envsolve add jax --sync
      envsolve add transformers --prefix /opt/venv
    """
    from envsolve.project.editing import with_requirements

    if options["prefix"] and not options["syncs"]:
        return _added_to_environment(options)
    require_not_typed(_OF_ENVIRONMENT, "requires --prefix without --sync: set it in the project")
    return _edited(with_requirements, "added", options)


@click.command(cls=Command, short_help="Remove requirements from the project and lock it.")
@click.argument("words", nargs=-1, required=True, metavar="NAME...")
@_options
def remove(**options: Any) -> int:
    """Remove requirements from the project and lock it; what else needs a package keeps it.

    \b
    Examples:
      envsolve remove pandas
      envsolve remove jax --sync
    """
    from envsolve.project.editing import without_requirements

    return _edited(without_requirements, "removed", options)


def _added_to_environment(options: dict[str, Any]) -> int:
    """Install the requirements into an existing environment, after listing the changes; returns the exit code."""
    from envsolve.app.environment.around import AddRequest, install, planned
    from envsolve.app.environment.creating import Created, Outcome
    from envsolve.cli.create import environment_data, installer_network
    from envsolve.cli.progress import Progress
    from envsolve.create.plan import Kind
    from envsolve.model.request import Packages, Request

    require_not_typed(("project", "lock_file"), "is about a project, and --prefix without --sync is not")
    progress = Progress.of(options, "adding")
    packages = Packages(
        requirements=options["words"],
        allow_builds=options["allow_builds"],
        pytorch_index_url=options["pytorch_index_url"],
    )
    request = Request(
        (),
        gpus=options["gpus"],
        index_url=options["index_url"],
        extra_index_urls=options["extra_index_urls"],
        format="requirements",  # only wheels, and of every kind
        packages=packages,
    )
    matrix, network = matrix_of(options), network_of(options)
    addition_request = AddRequest(options["prefix"], request, network, matrix, progress.show, progress.packages)
    with interruptible():
        with progress:
            addition = planned(addition_request, os.environ)
        note_each(addition.notes, options)
        lines = "".join(f"  {spelled(it)}\n" for it in addition.changes)
        notes: tuple[Note, ...] = ()
        writes = not (options["show_diff"] or options["dry_run"])
        outcome = Outcome.CHANGED if writes else Outcome.WOULD_CHANGE
        if not addition.changes:
            outcome = Outcome.UP_TO_DATE
            if not options["show_diff"]:
                note(f"{options['prefix']} has {' and '.join(options['words'])} already", quiet=options["quiet"])
        elif not writes:
            deliver("" if options["print_json"] else lines, None)
        else:
            if not options["quiet"]:
                click.echo(lines, nl=False, err=True)
            with progress:
                notes = install(
                    addition, installer_network(options), os.environ, progress.show, builds=options["allow_builds"]
                )
            note_each(notes, options)
    if options["print_json"]:
        it = addition.inventory
        kind = Kind.CONDA if it.is_conda else Kind.VENV
        all_notes = (*addition.notes, *notes)
        created = Created(it.prefix, kind, it.executable, outcome, all_notes, addition.changes)
        deliver_json(environment_data(created, None))
    return 0


def _edited(edit: Callable[[Path, str, Sequence[str]], str], verb: str, options: dict[str, Any]) -> int:
    from envsolve.project.reading import project_file, project_of, read_text

    if not options["syncs"]:
        require_not_typed(("prefix", "lock_file"), "requires --sync")
    path, words = project_file(options["project"]), options["words"]
    before = read_text(path)
    project_of(path, before)  # reports an existing mistake with its line
    after = edit(path, before, words)
    mark = codecs.BOM_UTF8.decode() if path.read_bytes().startswith(codecs.BOM_UTF8) else ""
    edited = [(path, mark + after)] if after != before else []
    project = project_of(path, after)
    code, document = lock_files(project, {**options, **_AS_IT_IS, "as_json": options["print_json"]}, edited)
    writes = not (options["show_diff"] or options["dry_run"])
    syncs = options["syncs"] and writes
    if options["print_json"] and not syncs:
        deliver_json(document)
    if not writes:
        return code
    named = f"{' and '.join(words)} {verb}" if edited else f"has {' and '.join(words)} already"
    note(f"{path.name}: {named}", quiet=options["quiet"])
    return sync_project(project, options, document) if syncs else code
