"""``envsolve solve --format requirements`` and ``pylock``: locks for pip and uv, with progress on a terminal."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from envsolve.boundary.secrets import without_secrets
from envsolve.cli.options import network_of
from envsolve.cli.output import deliver, deliver_each
from envsolve.cli.progress import Progress
from envsolve.cli.replacing import refuse_to_replace
from envsolve.cli.report import note_each, note_facts
from envsolve.errors import Hint, UsageError
from envsolve.lockfile.formats import PLATFORM
from envsolve.model.host import Platform
from envsolve.model.request import Request

if TYPE_CHECKING:
    from envsolve.app.lock_start import Start
    from envsolve.app.solving import Solved
    from envsolve.lockfile import Answer
    from envsolve.lockfile.lock import Lock
    from envsolve.matrix import Matrix
    from envsolve.model.note import Note

_A_LOCK = "a Python lock", f"requirements.{PLATFORM}.txt"


def print_python_lock(words: Request, options: dict[str, Any]) -> int:
    """Write the lock to standard output or to the file of -o; that file's pins stay where they fit."""
    refuse_what_is_condas(words)
    require_place(words, options, _A_LOCK)
    with _started(words, options) as started:
        from envsolve.cli.solve import with_frameworks

        request, matrix = with_frameworks(words, options)
        refuse_to_replace(request, matrix, options)
        held = (
            None if options["upgrade"] or options["as_json"] else _held_by(options["output"], anything=options["force"])
        )
        solved = python_lock(request, matrix, options, held, started)
    if options["as_json"]:
        deliver(described(solved.locks, solved.answers, solved.notes), options["output"])
    else:
        require_file_for_each([platform for platform, _ in solved.texts], options["output"], _A_LOCK)
        deliver_each(solved.texts, options["output"])
    note_each(solved.notes, options)
    note_facts(solved.because, options)
    return 0


def described(locks: Sequence[Lock], answers: Sequence[Answer], notes: Sequence[Note]) -> str:
    """Locks as ``--json`` prints them."""
    from envsolve.lockfile.json_answer import write_locks

    return write_locks(locks, answers, notes)


@contextmanager
def _started(words: Request, options: dict[str, Any]) -> Iterator[Start]:
    """The lock begun, so that servers answer while the solver and the matrix are loaded."""
    from envsolve.app.lock_start import start

    started = start(words, network_of(options), os.environ)
    try:
        yield started
    finally:
        started.lines.close()


def python_lock(
    request: Request, matrix: Matrix, options: dict[str, Any], held: Any = None, started: Start | None = None
) -> Solved:
    """Make the lock with progress on a terminal; ``held`` gives the pins of the one that is there, None without one."""
    from envsolve.app.locking import LockRequest, lock
    from envsolve.app.unknown_releases import knowing_new_releases

    progress = Progress(wanted=not options["no_progress"] and not options["quiet"])
    asked = LockRequest(request._replace(channels=()), network_of(options), progress=progress.packages)
    asked = asked if held is None else asked._replace(held=held)

    def made(known: Matrix) -> Solved:
        return lock(asked, known, os.environ, started if known is matrix else None)

    try:
        return knowing_new_releases(made, request, matrix, asked.network, os.environ)
    finally:
        progress.clear()


def require_place(request: Request, options: dict[str, Any], kind: tuple[str, str] | None) -> None:
    """Raise UsageError where a lock cannot be written as asked; ``kind`` as below, None for one of all platforms."""
    if options["why"] or options["why_not"]:
        raise UsageError(
            "contradictory-options",
            "--why and --why-not explain a stack, not a lock",
            hints=(Hint("omit --format"),),
        )
    output = options["output"]
    if kind is not None and not options["as_json"]:
        require_file_for_each(request.platforms, output, kind)
    if output is not None and any(
        name != "-" and Path(name).resolve() == Path(output).resolve() for name in request.packages.files
    ):
        raise UsageError(
            "contradictory-options",
            f"-o {output} is the requirements file and would be overwritten",
            hints=(Hint("use two files: -r requirements.in -o requirements.txt"),),
        )


def require_file_for_each(platforms: Sequence[Platform], output: str | None, kind: tuple[str, str]) -> None:
    """Raise UsageError where one file is to hold several platforms; ``kind`` is what it is and how it may be called."""
    if len(platforms) > 1 and (output is None or PLATFORM not in output):
        what, example = kind
        raise UsageError(
            "several-platforms",
            f"{what} is for one platform, but the request is for {' and '.join(platforms)}",
            hints=(Hint(f"write one file for each: -o '{example}'"),),
        )


def refuse_what_is_condas(request: Request) -> None:
    """Raise UsageError where a request for a Python lock names a channel or an environment.yml.

    A channel that is typed may be meant as pip's ``-c``, a constraint file, and would hold nothing here. A variable
    that names channels for all commands is about the others. What an environment.yml asks of conda has no place here.
    """
    from envsolve.app.command import command_of

    if click.get_current_context().get_parameter_source("channels") is ParameterSource.COMMANDLINE:
        named = without_secrets(request.channels[0])
        raise UsageError(
            "contradictory-options",
            f"-c {named} is a conda channel, but a Python lock uses package indexes",
            hints=(Hint(f"for a constraints file, use --constraint {named}"),),
        )
    file = next((name for name in request.packages.files if name.lower().endswith((".yml", ".yaml"))), None)
    if file is not None:
        raise UsageError(
            "contradictory-options",
            f"-r {file} is a conda file, but a Python lock uses package indexes",
            hints=(
                Hint("make a conda lock", command_of(request._replace(format="conda-lock"))),
                Hint("or move the requirements of pip to a requirements file, and lock that"),
            ),
        )


def _held_by(output: str | None, *, anything: bool) -> Any:
    """What the file of -o holds already, if there is one; ``anything`` may be in it, which then holds nothing."""
    if output is None or output == "-" or (PLATFORM not in output and not os.path.lexists(output)):
        return None
    from envsolve.app.held_locks import as_far_as_read, held_by_python_lock, locks_named
    from envsolve.model.request import Held

    held = held_by_python_lock(locks_named(output))
    return as_far_as_read(held, ((), Held())) if anything else held
