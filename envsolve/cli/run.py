"""``envsolve run``: run a command in the environment of the project, as if that was activated."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from envsolve.cli.lock import project_option
from envsolve.cli.options import Command, matrix_option, option, output_options
from envsolve.cli.report import note
from envsolve.cli.solve_options import HOW_TO_FETCH, options_of_solve
from envsolve.cli.sync import environment_options, lock_of, note_if_failed, note_if_stale, prefix_of, synced
from envsolve.errors import Hint, OutsideError, UsageError

if TYPE_CHECKING:
    from envsolve.project import Project


@click.command(
    cls=Command,
    short_help="Run a command in the environment of the project.",
    context_settings={"allow_interspersed_args": False},
)
@click.argument("command", nargs=-1, required=True, metavar="[--] COMMAND [ARGUMENT]...", type=click.UNPROCESSED)
@project_option
@environment_options
@option("--no-sync", is_flag=True, help="Run it in the environment as it is, whatever the lock says.")
@options_of_solve(HOW_TO_FETCH)
@matrix_option
@output_options
def run(**options: Any) -> int:
    """Run a command in the environment of the project.

    The environment is made or brought to the lock first if it was made from another one. The command gets what
    activating the environment sets; its exit code is that of envsolve.

    \b
    Examples:
      envsolve run -- python train.py --epochs 3
      envsolve run --prefix env -- python -c 'import torch; print(torch.cuda.is_available())'
    """
    from envsolve.project import project_file, read_project

    project = read_project(project_file(options["project"]))
    prefix = prefix_of(project, options)
    if not options["no_sync"]:
        note_if_stale(project, options)
        _bring_to_lock(project, prefix, options)
    if not prefix.is_dir():
        raise UsageError(
            "no-environment", f"there is no environment at {prefix}", hints=(Hint("make it", "envsolve sync"),)
        )
    return _run(options["command"], _activated(prefix))


def _bring_to_lock(project: Project, prefix: Path, options: dict[str, Any]) -> None:
    """Create the environment, or change it, if it does not match the lock."""
    from envsolve.cli.lock import spelled
    from envsolve.create.reading import plan_of
    from envsolve.create.record import read_record
    from envsolve.host.machine import this_platform

    record, platform = read_record(prefix), this_platform()
    plan = plan_of(lock_of(project, options), platform)
    python = plan.kind.interpreter(prefix, windows=platform.is_windows)
    if record is not None and record.is_of(plan) and (python.exists() or not plan.has_python):
        note_if_failed(prefix, record.passed, options)
        return
    created = synced(project, {**options, "dry_run": False})
    changed = ", ".join(map(spelled, created.changes))
    note(f"{created.prefix} was {created.outcome.value}{f': {changed}' if changed else ''}", quiet=options["quiet"])


def _activated(prefix: Path) -> dict[str, str]:
    """The variables for a program in the environment."""
    from envsolve.validation.activation import activated
    from envsolve.validation.child import Children
    from envsolve.validation.environment import interpreter, take_inventory

    with Children() as children:
        inventory = take_inventory(interpreter(str(prefix), None, os.environ), os.environ, children)
    found = activated(os.environ, inventory)
    for it in found.findings:
        note(it.cause, quiet=False)
    found.environ.pop("PYTHONHOME", None)
    return found.environ


def _run(command: tuple[str, ...], environ: dict[str, str]) -> int:
    """Replace this process by the command; on Windows, where that is impossible, wait for it.

    Raises OutsideError ``program-not-found`` if there is none of its name.
    """
    from envsolve.boundary.programs import find_program

    program = command[0] if os.path.dirname(command[0]) else find_program(command[0], environ)  # noqa: PTH120
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        if program is None:
            raise FileNotFoundError(2, "there is no such program in the environment or on the PATH")
        if os.name == "nt":
            return subprocess.run([program, *command[1:]], env=environ, check=False).returncode
        os.execve(program, command, environ)  # noqa: S606 - that is what the command is for
    except OSError as error:
        message = f"{command[0]} cannot be run: {error.strerror or error}"
        hint = Hint("check its permissions")
        if isinstance(error, FileNotFoundError):
            hint = Hint("add the package that has it", "envsolve add PACKAGE --sync")
        raise OutsideError("program-not-found", message, hints=(hint,)) from error
