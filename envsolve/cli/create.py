"""``envsolve create``: make an environment from a request or a lock, and validate it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from envsolve.boundary.display import escaped
from envsolve.cli import known_values
from envsolve.cli.create_lock import named_lock, solved_lock
from envsolve.cli.interrupts import interruptible
from envsolve.cli.lock import spelled
from envsolve.cli.options import (
    Command,
    FileName,
    dry_run_option,
    matrix_directory,
    matrix_of,
    matrix_option,
    network_of,
    option,
    output_options,
)
from envsolve.cli.output import deliver, deliver_json, write_whole
from envsolve.cli.progress import Progress
from envsolve.cli.report import Palette, note, note_each
from envsolve.cli.solve_options import HOW_TO_FETCH, REQUEST, options_of_solve
from envsolve.errors import UsageError
from envsolve.host.machine import this_platform
from envsolve.model.lock_format import CONDA_FORMATS, PROJECT_LOCKS, VENV_FORMATS

if TYPE_CHECKING:
    from envsolve import documents
    from envsolve.app.environment.creating import Created
    from envsolve.app.status.results import Validation
    from envsolve.create.tools import InstallerNetwork
    from envsolve.model.note import Note

_HOW = ("allow_builds", *HOW_TO_FETCH)
_NOT_HERE: Mapping[str, Any] = {"platforms": (), "upgrade": False, "upgraded": (), "exact": False}
"""Options of a request that are only for a lock."""


@click.command(cls=Command, short_help="Create an environment and test it.")
@click.argument("prefix", type=FileName("directory"))
@options_of_solve(REQUEST)
@option(
    "--format",
    "format_name",
    metavar="NAME",
    shell_complete=known_values.formats,
    help=(
        f"The lock to make it from: {', '.join(VENV_FORMATS)} (a venv), {', '.join(CONDA_FORMATS)} (conda packages). "
        "Default: conda packages if the solved stack has any, else a venv."
    ),
)
@option(
    "--lock",
    "lock_file",
    metavar="FILE",
    type=FileName("file"),
    help=(
        "Make it from a lock: conda-lock.yml, explicit, exact environment.yml, pixi.lock, pylock.toml, requirements, "
        f"{', '.join(PROJECT_LOCKS)}."
    ),
)
@option("--force", is_flag=True, help="Replace an environment that envsolve made, but no other directory.")
@option("--keep", is_flag=True, help="Keep the unfinished environment if this fails.")
@option(
    "--modulefile",
    metavar="FILE",
    type=FileName("file"),
    help="Also write a module file for it (Tcl), which Environment Modules and Lmod read.",
)
@option("--no-validate", is_flag=True, help="Do not test the new environment by running kernels in it.")
@option("--json", "print_json", is_flag=True, help="Print JSON with the environment and the result of its validation.")
@dry_run_option
@options_of_solve(_HOW)
@matrix_option
@output_options
def create(**options: Any) -> int:
    """Create an environment in the directory PREFIX that runs on the GPU and the driver you have, and test it.

    A failure leaves nothing behind. A directory with files that envsolve did not make is refused. An environment of
    the same lock is up to date; one of another lock is replaced only with --force.

    \b
    Examples:
      envsolve create .venv --lock pylock.toml
      envsolve create ./env --framework pytorch pandas
    """
    from envsolve.app.environment.creating import require_usable
    from envsolve.app.environment.modulefile import require_own

    require_usable(options["prefix"])
    module = None if options["modulefile"] is None else Path(options["modulefile"])
    if module is not None:
        require_own(module)
    with interruptible():
        created = created_from(options)
    code = finish(created, options)
    if module is not None and code == 0:
        _write_module(module, created, options)
    return code


def _write_module(file: Path, created: Created, options: Mapping[str, Any]) -> None:
    """Write the module file of an environment that passed validation. Raises UsageError if it has no Python."""
    from envsolve.app.environment.modulefile import Description, modulefile

    if created.python is None:
        raise UsageError("no-python", f"{created.prefix} has no Python, which a module file needs")
    write_whole(file, modulefile(Description(created.prefix, created.python, created.stack), file, os.environ))
    note(f"{file}: written", quiet=options["quiet"])


def finish(
    created: Created,
    options: Mapping[str, Any],
    locked: documents.Lock | None = None,
    repair: Callable[[frozenset[str]], Created] | None = None,
) -> int:
    """Report the result and validate the environment; returns the exit code.

    ``locked`` is the document of the locks that were written before; in JSON it contains that of the environment.
    ``repair`` reinstalls packages that fail and whose files were changed; this is tried once.
    """
    from envsolve.app.environment.creating import Outcome
    from envsolve.app.environment.imports import EDITED

    _report(created, options)
    if not options["print_json"]:
        deliver(f"{created.prefix}\n", None)
    validation = None
    python = created.python
    if python is not None and not (options["no_validate"] or options["dry_run"]):
        validation = _validated(python, options)
        edited = frozenset(it.about for it in validation.report.findings if it.id == EDITED and it.about)
        if repair is not None and edited:
            repaired = repair(edited)
            _report(repaired, options)
            created = repaired._replace(
                outcome=repaired.outcome if created.outcome is Outcome.UP_TO_DATE else created.outcome,
                notes=(*created.notes, *repaired.notes),
                changes=(*created.changes, *repaired.changes),
            )
            validation = _validated(python, options)
    if options["print_json"]:
        answer = environment_data(created, validation)
        deliver_json(answer if locked is None else {**locked, "environment": answer})
    return 0 if validation is None or validation.report.is_unbroken else 1


def _report(created: Created, options: Mapping[str, Any]) -> None:
    """Print notes on the result."""
    from envsolve.app.environment.creating import Outcome

    note_each(created.notes, options)
    if created.outcome is Outcome.UP_TO_DATE:
        note(f"{created.prefix} is up to date: it was made from this lock", quiet=options["quiet"])
    elif created.outcome is Outcome.WOULD_CHANGE:
        is_there = any(it.before is not None for it in created.changes)
        note(f"{created.prefix} would be {'changed' if is_there else 'new'}", quiet=options["quiet"])
    elif created.outcome is Outcome.MADE:
        note(_how_to_use(created), quiet=options["quiet"])
    if created.changes and not options["quiet"]:
        click.echo("".join(f"  {spelled(it)}\n" for it in created.changes), nl=False, err=True)


def _validated(python: Path, options: Mapping[str, Any]) -> Validation:
    """Validate the environment of the interpreter ``python``, on the GPU if this machine has one.

    The report goes to stderr, since stdout has the path of the environment.
    """
    from envsolve.app.environment.validating import ValidateRequest, validation_of
    from envsolve.cli.validation_text import as_text

    progress = Progress.of(options, "validating")
    request = ValidateRequest(progress, python=str(python), device="here", matrix_directory=matrix_directory(options))
    with interruptible():
        validation = validation_of(request, os.environ)
    if not options["quiet"] or not validation.report.is_unbroken:
        click.echo(escaped(as_text(validation)), nl=False, err=True, color=Palette.wanted())
    note_each(validation.report.notes, options)
    return validation


def environment_data(created: Created, validation: Validation | None) -> documents.Environment:
    """The JSON for an environment."""
    return {
        "schema_version": 1,
        "prefix": str(created.prefix),
        "kind": created.kind.value,
        "python": None if created.python is None else str(created.python),
        "outcome": created.outcome.value,
        "changes": [it.as_json() for it in created.changes],
        "notes": [it.as_json() for it in created.notes],
        "validation": None if validation is None else validation.as_json(),
    }


def created_from(
    options: dict[str, Any], *, changes: bool = False, again: frozenset[str] = frozenset(), project: str = ""
) -> Created:
    """Create the environment from the lock that is named, or from the lock for the request.

    With ``changes`` an existing one is changed in place to match the lock, and the packages ``again`` are reinstalled.
    ``project`` is the file that requests the lock.
    """
    from envsolve.app.environment.creating import create as create_environment
    from envsolve.app.environment.making import CreateRequest
    from envsolve.app.packages.conda_sessions import conda_session
    from envsolve.app.packages.requirements import build_constraints_in

    words = {**options, **_NOT_HERE}
    matrix = matrix_of(options)
    install = named_lock(options) if options["lock_file"] else solved_lock(words)
    progress = Progress.of(options, "creating")

    def show_note(it: Note) -> None:
        progress.clear()
        note(it, quiet=options["quiet"])

    request = CreateRequest(
        prefix=options["prefix"],
        lock=install.lock,
        text=install.text,
        command=install.command,
        network=installer_network(options),
        session=partial(conda_session, network_of(words), words["channels"], (this_platform(),), os.environ),
        python=options["python"] if options["lock_file"] else None,
        channel_logins=install.channel_logins,
        force=options["force"],
        changes=changes,
        again=again,
        keep=options["keep"],
        builds=options["allow_builds"],
        build_constraints=build_constraints_in(options["build_constraint_files"]),
        on_note=show_note,
        project=project,
        dry_run=options["dry_run"],
    )
    with progress:
        return create_environment(request, matrix, os.environ, progress.show)


def installer_network(options: dict[str, Any]) -> InstallerNetwork:
    """The network settings of installers: the configured indexes, and the logins in options."""
    from envsolve.app.packages.lock_indexes import settings_of
    from envsolve.create.tools import InstallerNetwork

    directory, settings = options["cache_dir"], settings_of(os.environ)
    extra = tuple(options["extra_index_urls"])
    if options["index_url"] is not None:
        settings = settings._replace(index_url=options["index_url"], extra_index_urls=extra)
    else:
        settings = settings._replace(extra_index_urls=tuple(dict.fromkeys((*extra, *settings.extra_index_urls))))
    urls = (*extra, options["pytorch_index_url"])
    return InstallerNetwork(
        settings=settings,
        logins=tuple(url for url in urls if url is not None),
        cache_directory=None if directory is None else Path(directory).absolute(),
        no_cache=options["no_cache"],
        offline=options["offline"],
    )


def _how_to_use(created: Created) -> str:
    """The command that activates the environment."""
    from envsolve.create.plan import Kind

    if created.kind is Kind.CONDA:
        prefix = shlex.quote(str(created.prefix))
        return f"to activate it: conda activate {prefix}, or micromamba, mamba or pixi shell-hook"
    if os.name == "nt":
        return f"to activate it: {created.prefix}\\Scripts\\activate"
    return f"to activate it: source {shlex.quote(str(created.prefix / 'bin' / 'activate'))}"
