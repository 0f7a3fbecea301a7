"""``envsolve solve --format conda-lock``, ``explicit`` and ``environment --exact``: locks of conda packages."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envsolve.cli.options import network_of
from envsolve.cli.output import deliver, deliver_each
from envsolve.cli.progress import Progress
from envsolve.cli.python_lock import described, require_file_for_each, require_place
from envsolve.cli.replacing import refuse_to_replace
from envsolve.cli.report import note_each, note_facts
from envsolve.errors import UsageError
from envsolve.lockfile.formats import PLATFORM, load_conda_writers, write_conda_lock
from envsolve.model.host import Platform
from envsolve.model.note import Note
from envsolve.model.request import Request

if TYPE_CHECKING:
    from envsolve.app.conda_locking import CondaLocked
    from envsolve.app.conda_part import Kept
    from envsolve.conda.session import Session
    from envsolve.matrix import Matrix

_KINDS = {
    "explicit": ("an explicit file", f"conda-{PLATFORM}.lock"),
    "environment": ("an environment file", f"environment.{PLATFORM}.yml"),
}


def conda_session(options: dict[str, Any]) -> AbstractContextManager[Session]:
    """The session with the solver of conda packages, which starts while the rest is still being loaded."""
    from envsolve.app.conda_sessions import conda_session as opened

    network = network_of(options)
    return opened(network, options["channels"], options["platforms"] or _this_platform(), os.environ)


def _this_platform() -> tuple[Platform, ...]:
    """The platform that is solved for where none is named; none where this machine is of no kind that is known."""
    from envsolve.host.machine import this_platform

    try:
        return (this_platform(),)
    except UsageError:
        return ()


def print_conda_lock(request: Request, matrix: Matrix, options: dict[str, Any], session: Session) -> int:
    """Write the lock to standard output or to the file of -o; the packages of that file stay where they fit."""
    output = options["output"]
    require_place(request, options, _KINDS.get(request.format))
    refuse_to_replace(request, matrix, options)
    held = None if options["as_json"] else _held_by(output, request, anything=options["force"])
    locked = conda_lock(request, matrix, options, session, held)
    notes: tuple[Note | str, ...] = locked.notes
    if options["as_json"]:
        deliver(described(locked.locks, locked.answers, locked.notes), output)
    else:
        notes = (*notes, *_deliver(locked, request.format, output))
    note_each(notes, options)
    note_facts(locked.because, options)
    return 0


def _deliver(locked: CondaLocked, format_name: str, output: str | None) -> tuple[str, ...]:
    """Write the lock; what to tell of what the file held before."""
    kind, apart = _KINDS.get(format_name), output is not None and PLATFORM in output
    files = [(lock,) for lock in locked.locks] if apart else [locked.locks]
    texts = tuple(text for locks in files for text in write_conda_lock(locks, format_name))
    left_out = () if apart or kind is not None else _left_out(output, [Platform(it.platform) for it in locked.locks])
    if kind is not None:
        require_file_for_each([platform for platform, _ in texts], output, kind)
    deliver_each(texts, output)
    return left_out


def conda_lock(
    request: Request,
    matrix: Matrix,
    options: dict[str, Any],
    session: Session,
    held: Callable[[Platform], Kept] | None = None,
) -> CondaLocked:
    """Make the lock with progress on a terminal; ``held`` gives what the one holds that is there, None without one."""
    from envsolve.app.conda_locking import lock_conda
    from envsolve.app.conda_part import CondaLockRequest
    from envsolve.app.unknown_releases import knowing_new_releases

    network = network_of(options)
    progress = Progress(wanted=not options["no_progress"] and not options["quiet"])
    session.meanwhile = load_conda_writers
    asked = CondaLockRequest(request, session, network, progress=progress.show, counted=progress.packages)
    asked = asked if held is None else asked._replace(held=held)
    try:
        return knowing_new_releases(
            lambda known: lock_conda(asked, known, os.environ), request, matrix, network, os.environ
        )
    finally:
        progress.clear()


def _left_out(output: str | None, platforms: Sequence[Platform]) -> tuple[str, ...]:
    """What to say where the lock that is there already holds platforms that the new one does not."""
    if output in (None, "-"):
        return ()
    from envsolve.app.conda_held import platforms_in

    others = [it for it in platforms_in(Path(str(output))) if it not in platforms]
    if not others:
        return ()
    return (f"{output} no longer has {' and '.join(others)}: list every platform with --platform",)


def _held_by(output: str | None, request: Request, *, anything: bool) -> Callable[[Platform], Kept] | None:
    """What the file of -o holds for a platform, as far as its packages are to stay.

    With ``anything`` it may be no lock at all, which then holds nothing.
    """
    if output in (None, "-"):
        return None
    from envsolve.app.conda_part import Kept
    from envsolve.app.held_locks import as_far_as_read, held_by_conda_lock, locks_named

    held = held_by_conda_lock(locks_named(str(output)), request.packages)
    return as_far_as_read(held, Kept()) if anything else held
