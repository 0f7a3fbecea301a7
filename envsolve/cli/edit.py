"""``envsolve add`` and ``remove``: a requirement more or less in the project, its locks and its environment."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from envsolve.cli.lock import lock_files, project_file, project_option
from envsolve.cli.options import Command, Decorator, matrix_option, option, output_options, stacked
from envsolve.cli.report import note
from envsolve.cli.solve_options import HOW_TO_FETCH, options_of_solve
from envsolve.cli.sync import environment_options, sync_project

_AS_IT_IS = {"upgrade": False, "upgraded": (), "force": False, "check": False, "as_json": False}
"""Options of ``lock``: what is locked stays as far as it fits."""

_options: Decorator = stacked(
    project_option,
    option("--sync", "syncs", is_flag=True, help="Also bring the environment of the project up to date."),
    environment_options,
    option("--diff", "show_diff", is_flag=True, help="Print package changes; write nothing."),
    options_of_solve(HOW_TO_FETCH),
    matrix_option,
    output_options,
)


@click.command(cls=Command, short_help="Add requirements to the project and lock it.")
@click.argument("words", nargs=-1, required=True, metavar="REQUIREMENT...")
@_options
def add(**options: Any) -> int:
    """Add requirements to the project and lock it, with as few changes as possible.

    A requirement that is there already gets the new versions. If no lock has room for it, nothing is written.

    \b
    Examples:
      envsolve add pandas 'transformers>=5'
      envsolve add jax --sync
    """
    from envsolve.project.editing import with_requirements

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


def _edited(edit: Callable[[Path, str, Sequence[str]], str], verb: str, options: dict[str, Any]) -> int:
    from envsolve.project.reading import project_of, read_text

    path, words = project_file(options["project"]), options["words"]
    before = read_text(path)
    after = edit(path, before, words)
    mark = codecs.BOM_UTF8.decode() if path.read_bytes().startswith(codecs.BOM_UTF8) else ""
    edited = [(path, mark + after)] if after != before else []
    project = project_of(path, after)
    code = lock_files(project, {**options, **_AS_IT_IS}, edited)
    if options["show_diff"]:
        return code
    named = f"{' and '.join(words)} {verb}" if edited else f"has {' and '.join(words)} already"
    note(f"{path.name}: {named}", quiet=options["quiet"])
    return sync_project(project, options) if options["syncs"] else code
