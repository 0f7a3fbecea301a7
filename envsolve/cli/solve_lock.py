"""``envsolve solve`` for a lock, of package indexes or of conda packages, with progress on a terminal."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from envsolve.app.lock.existing_locks import (
    LockFor,
    as_far_as_read,
    locks_named,
    notes_on_upgraded,
    nothing,
    platforms_in,
)
from envsolve.boundary.secrets import without_secrets
from envsolve.cli.options import network_of
from envsolve.cli.output import deliver, deliver_each
from envsolve.cli.progress import Progress
from envsolve.cli.replacing import refuse_to_replace
from envsolve.cli.report import note_each, note_facts
from envsolve.errors import Hint, UsageError
from envsolve.model.host import Platform
from envsolve.model.lock_format import PLATFORM, PYTHON_FORMATS
from envsolve.model.note import Note
from envsolve.model.request import Request

if TYPE_CHECKING:
    from envsolve.app.solve.solving import Solved
    from envsolve.matrix import Matrix

_A_LOCK = "a Python lock", f"requirements.{PLATFORM}.txt"
_KINDS = {
    **dict.fromkeys(PYTHON_FORMATS, _A_LOCK),
    "pylock": ("a Python lock", f"pylock.{PLATFORM}.toml"),
    "explicit": ("an explicit file", f"conda-{PLATFORM}.lock"),
    "environment": ("an environment file", f"environment.{PLATFORM}.yml"),
}
"""The formats with a separate file for each platform: what such a file is, and an example of its name."""


def print_lock(request: Request, matrix: Matrix, options: dict[str, Any]) -> int:
    """Write the lock to standard output or to the file of -o; its existing pins stay if they fit."""
    output = options["output"]
    refuse_what_is_condas(request)
    _require_place(request, options)
    refuse_to_replace(request, matrix, options)
    writes, apart = not options["as_json"], PLATFORM in (output or "")
    there = _there(options) if writes else nothing
    solved = lock_with_progress(request, matrix, options, there, apart=apart, writes=writes)
    before = (there(Platform(it.platform)) for it in solved.locks if options["upgraded"])
    existing = [lock for lock in before if lock is not None]
    notes: list[Note | str] = [*solved.notes, *notes_on_upgraded(options["upgraded"], existing, solved.locks)]
    if options["as_json"]:
        from envsolve.lockfile.json_answer import write_locks

        deliver(write_locks(solved.locks, solved.answers, solved.notes), output)
    else:
        platforms = [it.platform for it in solved.locks]
        if request.format in _KINDS:
            _require_file_for_each(platforms, output, _KINDS[request.format])
        elif output not in (None, "-") and PLATFORM not in output:
            notes += _left_out(output, platforms)
        deliver_each(solved.texts, output)
    note_each(notes, options)
    note_facts(solved.because, options)
    return 0


def lock_with_progress(
    request: Request,
    matrix: Matrix,
    options: dict[str, Any],
    there: LockFor = nothing,
    *,
    apart: bool = False,
    writes: bool = True,
) -> Solved:
    """The lock of ``request``, with progress on a terminal."""
    from envsolve.app.any_lock.request_lock import make_lock
    from envsolve.app.lock.lock_request import LockRequest

    progress = Progress.of(options)
    progress.show("packages")
    locking = LockRequest(request, network_of(options), there, progress.show, progress.packages, None, apart, writes)
    with progress:
        return make_lock(locking, matrix, os.environ)


def _there(options: dict[str, Any]) -> LockFor:
    """The lock in the file of -o; none if there is no file, or if none of it is to stay.

    With --force the file may contain anything, and then counts as no lock.
    """
    output = options["output"]
    if options["upgrade"] or output in (None, "-") or (PLATFORM not in output and not os.path.lexists(output)):
        return nothing

    there = locks_named(output)
    return as_far_as_read(there) if options["force"] else there


def _require_place(request: Request, options: dict[str, Any]) -> None:
    """Raise UsageError if a lock cannot be written as requested."""
    if options["why"] or options["why_not"]:
        raise UsageError(
            "contradictory-options",
            "--why and --why-not explain a stack, not a lock",
            hints=(Hint("omit --format"),),
        )
    output = options["output"]
    if request.format in _KINDS and not options["as_json"]:
        _require_file_for_each(request.platforms, output, _KINDS[request.format])
    if output is not None and any(
        name != "-" and Path(name).resolve() == Path(output).resolve() for name in request.packages.files
    ):
        raise UsageError(
            "contradictory-options",
            f"-o {output} is the requirements file and would be overwritten",
            hints=(Hint("use two files: -r requirements.in -o requirements.txt"),),
        )


def _require_file_for_each(platforms: Sequence[str], output: str | None, kind: tuple[str, str]) -> None:
    """Raise UsageError if one file would have to contain several platforms; ``kind`` is what it is, and an example."""
    if len(platforms) > 1 and (output is None or PLATFORM not in output):
        what, example = kind
        raise UsageError(
            "several-platforms",
            f"{what} is for one platform, but the request is for {' and '.join(platforms)}",
            hints=(Hint(f"write one file for each: -o '{example}'"),),
        )


def refuse_what_is_condas(request: Request) -> None:
    """Raise UsageError if a request for a Python lock names a channel or an environment.yml.

    A typed channel may be meant as pip's ``-c``, a constraint file, and would have no effect. A variable that names
    channels for all commands is ignored. A Python lock has no place for conda requirements in an environment.yml.
    """
    from envsolve.app.request.command import command_of

    if request.format not in PYTHON_FORMATS:
        return
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


def _left_out(output: str, platforms: Sequence[str]) -> Iterator[str]:
    """Notes on platforms of the existing lock that the new one does not have."""
    others = [it for it in platforms_in(Path(output)) if it not in platforms]
    if others:
        yield f"{output} no longer has {' and '.join(others)}: list every platform with --platform"
