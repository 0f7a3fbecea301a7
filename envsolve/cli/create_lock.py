"""The lock that ``envsolve create`` makes an environment from: the one that is named, or one for a request."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from envsolve.cli.options import require_not_typed
from envsolve.cli.report import note_each
from envsolve.cli.solve import request_from
from envsolve.cli.solve_options import REQUEST
from envsolve.errors import Hint, UsageError
from envsolve.model.lock_format import CREATE_FORMATS, PLATFORM, PROJECT_LOCKS, format_for_file

if TYPE_CHECKING:
    from envsolve.project import Project

_WITH_A_LOCK = ("python", "channels", "index_url", "extra_index_urls", "build_constraint_files")
"""Options of a request that also apply to a lock: places of packages, logins, how to build, and the Python."""


class ToInstall(NamedTuple):
    """The file of a lock, its text if it was solved, and the command that makes the environment again.

    ``channel_logins`` are addresses of channels, without and with their login.
    """

    lock: Path
    command: str
    channel_logins: tuple[tuple[str, str], ...]
    text: str | None = None


def named_lock(options: dict[str, Any]) -> ToInstall:
    """The lock of --lock. Raises UsageError if a request is given as well."""
    undecided = set(REQUEST).difference(_WITH_A_LOCK)
    hints = (Hint("omit --lock to solve the request"), Hint("or omit the other options"))
    require_not_typed((*undecided, "format_name"), "cannot be used with --lock: the lock already decides it", hints)
    from envsolve.app.environment.creating import absolute_prefix

    prefix, path = absolute_prefix(options["prefix"]), Path(options["lock_file"]).absolute()
    words = ["envsolve", "create", prefix, "--lock", str(path)]
    words += [] if options["python"] is None else ["--python", str(options["python"])]
    words += ["--allow-builds"] if options["allow_builds"] else []
    for name in options["build_constraint_files"]:
        words += ["--build-constraint", str(Path(name).absolute())]
    return ToInstall(Path(options["lock_file"]), shlex.join(words), _channel_logins(options))


def solved_lock(options: dict[str, Any]) -> ToInstall:
    """The lock for the request."""
    from envsolve.app.any_lock.lock_kind import usual_format
    from envsolve.app.environment.creating import absolute_prefix
    from envsolve.app.request.command import command_of
    from envsolve.app.solve.solving import request_without_secrets
    from envsolve.cli.solve_lock import lock_with_progress, refuse_what_is_condas
    from envsolve.create.reading import FILES
    from envsolve.host.machine import this_platform

    try:
        request, matrix = request_from(options, _format() or "")
    except UsageError as error:
        if error.code == "no-framework":
            error.hints = tuple(_instead_of_a_request(options["prefix"]))
        raise
    requester = request.requester._replace(command=("create", absolute_prefix(options["prefix"])))
    request = request._replace(platforms=(this_platform(),), requester=requester)
    if not request.format:
        request = request._replace(format=usual_format(request, matrix, os.environ))
    refuse_what_is_condas(request)
    solved = lock_with_progress(request, matrix, options)
    note_each(solved.notes, options)
    bare, _ = request_without_secrets(request)
    return ToInstall(Path(FILES[request.format]), command_of(bare), _channel_logins(options), solved.texts[0][1])


def _instead_of_a_request(prefix: str) -> Iterator[Hint]:
    """What to type if nothing is requested: the locks of the project here, or a framework."""
    from envsolve.frameworks import FRAMEWORKS
    from envsolve.project import find_project, read_project

    here = Path.cwd()
    locks: list[str] = []
    with suppress(UsageError):  # `envsolve lock` reports mistakes in the project
        file = find_project(here)
        locks = [] if file is None else list(dict.fromkeys(locks_of(read_project(file))))
    if not locks:
        locks = [str(here / name) for name in PROJECT_LOCKS if (here / name).is_file()]
    for lock in locks:
        name = os.path.relpath(lock, here)
        if Path(lock).is_file():
            yield Hint(
                "make it from the lock of this project", shlex.join(["envsolve", "create", prefix, "--lock", name])
            )
    if locks and not any(Path(lock).is_file() for lock in locks):
        yield Hint("write the lock of this project, then use it with --lock", "envsolve lock")
    yield Hint("name a framework", shlex.join(["envsolve", "create", prefix, "--framework", next(iter(FRAMEWORKS))]))


def locks_of(project: Project) -> Iterator[str]:
    """The files of the project that can make an environment for this platform."""
    from envsolve.host.machine import this_platform

    platform = this_platform()
    for part in project.parts:
        if all(machine.platforms and platform not in machine.platforms for machine in part.machines):
            continue
        for output in part.outputs:
            if (output.format or format_for_file(PurePath(output.file))) in CREATE_FORMATS:
                yield str(project.directory / output.file.replace(PLATFORM, platform))


def _format() -> str | None:
    """The format from the command line or its variable; a format that only other commands have is ignored."""
    context = click.get_current_context()
    named = context.params["format_name"]
    if named is None or named in CREATE_FORMATS:
        return None if named is None else str(named)
    if context.get_parameter_source("format_name") is not ParameterSource.COMMANDLINE:
        return None
    message = f"an environment is made from a lock, and {named!r} is not a lock format"
    raise UsageError("unknown-format", message, (f"known: {', '.join(CREATE_FORMATS)}",))


def _channel_logins(options: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The addresses of channels with a login or a token: from options, from files of -r, and from conda's settings."""
    from envsolve.app.packages.conda_sessions import channel_logins

    return channel_logins(options["channels"], options["requirement_files"], os.environ)
