"""``envsolve solve --format requirements`` and ``pylock``: locks for pip and uv, with progress on a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from envsolve.cli.output import PLATFORM, deliver_each
from envsolve.cli.report import note
from envsolve.errors import Hint, UsageError
from envsolve.model.host import Platform
from envsolve.model.request import Held, Request, without_credentials

if TYPE_CHECKING:
    from envsolve.app.solving import Solved
    from envsolve.app.unchanged import Grounds
    from envsolve.lock.held_pins import HeldPin
    from envsolve.matrix import Matrix

_WIDTH = 78


def print_python_lock(request: Request, matrix: Matrix, options: dict[str, Any]) -> int:
    """Write the lock to standard output or to the file of -o; that file's pins stay where they fit."""
    from envsolve.app.lock_indexes import Network
    from envsolve.app.locking import LockRequest, lock

    if options["why"] or options["why_not"]:
        raise UsageError(
            "contradictory-options",
            "--why and --why-not ask about a stack, not about a lock",
            hints=(Hint("ask without --format"),),
        )
    _refuse_channels(request)
    request = request._replace(channels=())
    _require_file_for_each(request.platforms, options["output"])
    _require_other_file(request.packages.files, options["output"])
    network = Network(options["offline"], options["refresh"], options["cache_dir"], options["no_cache"])
    progress = _Progress(wanted=not options["no_progress"] and not options["quiet"])
    held = _held_by(options["output"])
    keeps_pins = options["output"] not in (None, "-") and Path(options["output"]).exists()
    try:
        solved, grounds = lock(LockRequest(request, network, held, progress.show), matrix, os.environ)
    finally:
        progress.clear()
    _require_file_for_each([platform for platform, _ in solved.texts], options["output"])
    deliver_each(solved.texts, options["output"])
    for text in solved.notes:
        note(text, quiet=options["quiet"])
    for fact in solved.because if options["verbose"] else ():
        note(f"{fact.text} [{fact.source}]", quiet=options["quiet"])
    if grounds is not None and len(solved.texts) == 1 and not options["upgraded"] and not options["verbose"]:
        _remember(solved, grounds, options, keeps_pins=keeps_pins)
    return 0


def _remember(solved: Solved, grounds: Grounds, options: dict[str, Any], *, keeps_pins: bool) -> None:
    """Keep the answer for the next time the same command is typed."""
    from envsolve.app.unchanged import Answer, remember

    output = None if options["output"] in (None, "-") else str(options["output"])
    notes = () if options["quiet"] else solved.notes
    if output is None or PLATFORM not in output:
        words = click.get_current_context().find_root().obj
        remember(words, Answer(solved.texts[0][1], output, notes, keeps_pins), grounds)


def _require_file_for_each(platforms: Sequence[Platform], output: str | None) -> None:
    if len(platforms) > 1 and (output is None or PLATFORM not in output):
        raise UsageError(
            "several-platforms",
            f"a Python lock is for one platform, and the answer is for {' and '.join(platforms)}",
            hints=(Hint(f"name a file for each: -o 'requirements.{PLATFORM}.txt'"),),
        )


def _require_other_file(read: Sequence[str], output: str | None) -> None:
    """Raise UsageError where -o names a file of -r: what somebody wrote by hand would be gone."""
    if output is not None and any(name != "-" and Path(name).resolve() == Path(output).resolve() for name in read):
        raise UsageError(
            "contradictory-options",
            f"-o {output} is the file of the requirements, and the lock would take its place",
            hints=(Hint("keep the requirements in a file of their own: -r requirements.in -o requirements.txt"),),
        )


def _refuse_channels(request: Request) -> None:
    """Raise UsageError where a channel is typed: pip's ``-c`` is a constraint file, and would hold nothing here.

    A variable that names channels for all commands is about the others.
    """
    if click.get_current_context().get_parameter_source("channels") is ParameterSource.COMMANDLINE:
        named = request.channels[0]
        raise UsageError(
            "contradictory-options",
            f"-c {without_credentials(named)} names a conda channel, and a Python lock is made from package indexes",
            hints=(Hint(f"a file of constraints is named with --constraint {without_credentials(named)}"),),
        )


def _held_by(output: str | None) -> Any:
    def held(platform: Platform) -> tuple[tuple[HeldPin, ...], Held]:
        if output in (None, "-"):
            return (), Held()
        from envsolve.lock.held_pins import read_pins, read_recorded

        path = Path(str(output).replace(PLATFORM, platform))
        pins = read_pins(path)
        if not pins:
            return (), Held()
        facts = read_recorded(path) or {}
        packages = tuple((pin.name, pin.version, "") for pin in pins)
        python, cuda = str(facts.get("python", "")), facts.get("cuda")
        minor = ".".join(python.split(".")[:2]) if python else None
        return pins, Held(packages, minor, None if cuda is None else str(cuda))

    return held


class _Progress:
    """One line on a terminal that says what is being resolved; nothing where nobody watches."""

    def __init__(self, *, wanted: bool) -> None:
        self._shown = False
        self._wanted = wanted and sys.stderr is not None and sys.stderr.isatty()

    def show(self, count: int, name: str) -> None:
        """Say that ``name`` is the last of ``count`` packages."""
        if self._wanted:
            self._shown = True
            click.echo(f"\r{f'resolving: {count} packages, {name}'[:_WIDTH]:<{_WIDTH}}", err=True, nl=False)

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            click.echo(f"\r{'':<{_WIDTH}}\r", err=True, nl=False)
