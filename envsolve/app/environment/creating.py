"""Create an environment from a lock: completely, or not at all.

A record that says ``unfinished`` is written first, the finished one last. After an error or an interrupt, the directory
is cleared; after a kill, the next command for that directory clears it. Downloads are cached by rattler and uv, so that
starting again downloads nothing twice. An interrupted installation is not continued, as nothing says which of its
packages are complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from envsolve.app.environment.making import CreateRequest, Progress, make
from envsolve.app.environment.syncing import can_change, change, would_change
from envsolve.app.status.package_changes import Change
from envsolve.create.builds import refuse_builds, refuse_variables
from envsolve.create.claims import claiming, release
from envsolve.create.interpreter import runs
from envsolve.create.plan import Kind, Plan
from envsolve.create.prefix import Place, claimed, clear, clear_remains, list_own_files, place_of
from envsolve.create.reading import plan_of
from envsolve.create.record import State, read_record, record_of, write_lock, write_record
from envsolve.create.refusals import not_exact
from envsolve.create.replaced import set_aside, settle
from envsolve.errors import Hint, UsageError
from envsolve.host.machine import this_platform
from envsolve.lockfile.lock import Stack
from envsolve.lockfile.options import AROUND
from envsolve.matrix.load import Matrix
from envsolve.model.host import GpuStatus, Platform
from envsolve.model.note import Note

_FEW = 3
_LARGE = 1.0
"""A note announces downloads of at least this many gigabytes."""


class Outcome(StrEnum):
    """What was done."""

    MADE = "made"
    CHANGED = "changed"
    WOULD_CHANGE = "would-change"
    """The user only wanted to see the changes."""
    UP_TO_DATE = "up-to-date"


class Created(NamedTuple):
    """The environment: its directory, its interpreter if it has one, notes, and changes to an existing one.

    ``passed`` says whether its last validation passed; None if there was none since the last change. ``stack`` is the
    stack of its lock.
    """

    prefix: Path
    kind: Kind
    python: Path | None
    outcome: Outcome
    notes: tuple[Note, ...] = ()
    changes: tuple[Change, ...] = ()
    passed: bool | None = None
    stack: Stack | None = None


def create(request: CreateRequest, matrix: Matrix, environ: Mapping[str, str], progress: Progress) -> Created:
    """Create the environment.

    Raises UsageError if the directory or the lock cannot be used; OutsideError if something cannot be fetched, written
    or run; UnsolvableError if the channels lack builds of an exact environment.yml. After an error nothing is left
    behind.
    """
    place_of(request.prefix)
    platform = this_platform()
    plan = _plan(request, platform, matrix, environ)
    windows = platform.is_windows
    place = place_of(request.prefix)
    prefix = place.path
    if request.dry_run:
        return _would_be_created(request, plan, place, environ)
    with claimed(prefix):
        place_of(request.prefix)  # the owner may have changed since
        settle(prefix)
        place = place_of(request.prefix)
        python = plan.kind.interpreter(prefix, windows=windows) if plan.has_python else None
        if place.record is None or not place.record.is_of(plan):
            for it in _beforehand(plan, matrix, environ):
                request.on_note(it)
        if place.record is not None and place.record.state is not State.UNFINISHED:
            if request.changes and python is not None and can_change(place, plan, python, environ):
                found, notes = change(request, plan, place, matrix, environ, progress)
                outcome = Outcome.CHANGED if found else Outcome.UP_TO_DATE
                passed = None if found else place.record.passed
                return Created(
                    prefix, plan.kind, python, outcome, (*plan.notes, *notes), found, passed, plan.lock.stack
                )
            if not request.force and not request.changes and place.record.is_of(plan):
                progress(f"querying {python}")
                _require_whole(place, python, environ)
                return Created(prefix, plan.kind, python, Outcome.UP_TO_DATE, plan.notes, stack=plan.lock.stack)
            _require_force(request, place, plan)
            _set_aside(prefix)
        notes = _make_or_clear(request, plan, prefix, matrix, environ, progress)
    return Created(prefix, plan.kind, python, Outcome.MADE, (*plan.notes, *notes), stack=plan.lock.stack)


def _would_be_created(request: CreateRequest, plan: Plan, place: Place, environ: Mapping[str, str]) -> Created:
    """What :func:`create` would do at ``place``. Raises the same error if that needs --force."""
    prefix, record = place
    python = plan.kind.interpreter(prefix, windows=this_platform().is_windows) if plan.has_python else None
    changes = would_change(plan, prefix)
    if record is not None and record.state is not State.UNFINISHED:
        if request.changes and python is not None and can_change(place, plan, python, environ):
            outcome = Outcome.WOULD_CHANGE if changes else Outcome.UP_TO_DATE
            return Created(prefix, plan.kind, python, outcome, plan.notes, changes)
        if not request.force and not request.changes and record.is_of(plan):
            return Created(prefix, plan.kind, python, Outcome.UP_TO_DATE, plan.notes)
        _require_force(request, place, plan)
    return Created(prefix, plan.kind, None, Outcome.WOULD_CHANGE, plan.notes, changes)


def _beforehand(plan: Plan, matrix: Matrix, environ: Mapping[str, str]) -> Iterator[Note]:
    """Notes on a large download, and on an environment for GPUs on a machine without one."""
    sizes = [pin.files[0].size or 0 for pin in plan.lock.pins if pin.files] + [it.size or 0 for it in plan.lock.conda]
    size = sum(sizes) / 1e9
    much = f"up to {size:.1f} GB are downloaded" if size >= _LARGE else ""
    stack = plan.lock.stack
    if stack is not None and stack.cuda is not None:
        from envsolve.host.detection import detect

        host = detect(thorough=False, environ=environ, pci_table=matrix.gpu_of_pci_id)
        if host.status is GpuStatus.NO_HARDWARE:
            text = "the environment is for NVIDIA GPUs and cannot be proven on this machine, which has none"
            yield Note("gpu-not-here", f"{text}; {much}" if much else text).about(megabytes=round(size * 1000))
            return
    if much:
        yield Note("large-download", much).about(megabytes=round(size * 1000))


def require_usable(prefix: str) -> None:
    """Raise UsageError, before any other work, if no environment can be created at ``prefix``."""
    place_of(prefix)


def _plan(request: CreateRequest, platform: Platform, matrix: Matrix, environ: Mapping[str, str]) -> Plan:
    path = request.lock
    if request.text is None:
        _require_file(path)
    plan = plan_of(path, platform, request.python, request.text)
    if any(not package.url for package in plan.lock.conda):
        from envsolve.app.environment.exact_plan import with_addresses

        plan = with_addresses(path, plan, platform, matrix, request.session, environ)
    if plan.kind is Kind.CONDA and request.python is not None:
        hint = Hint("omit --python, or make a lock for that Python")
        message = "--python is for venvs, and this lock includes its own Python"
        raise UsageError("contradictory-options", message, hints=(hint,))
    if plan.lock.pins and not plan.has_python:
        raise not_exact(path, "it has wheels but no Python to install them for")
    around = plan.lock.made.option(AROUND) if plan.lock.made is not None else ()
    if around:
        raise UsageError(
            "lock-not-exact",
            f"{path} lacks what it was made around: {', '.join(around[:_FEW])}",
            hints=(Hint("install it into that environment: pip install --no-deps -r FILE"),),
        )
    if plan.lock.pins and plan.lock_name != "pylock.toml":
        refuse_variables(path, plan.text)
    if not request.builds:
        refuse_builds(path, plan.lock)
    return plan


def _require_file(lock: Path) -> None:
    """Raise UsageError for a pipe or another special file: a lock is read more than once, and a pipe only once."""
    if lock.exists() and not lock.is_file() and not lock.is_dir():
        hint = Hint("write it to a file first")
        message = f"cannot read {lock}: it is a pipe or a device, not a file"
        raise UsageError("lock-unreadable", message, hints=(hint,))


def _require_force(request: CreateRequest, place: Place, plan: Plan) -> None:
    if request.force or request.changes:
        return
    record = place.record
    assert record is not None
    if record.state is State.CHANGING:
        hints = (Hint("go on with it", "envsolve sync"), Hint("or replace it with --force"))
        message = f"{place.path} is between two locks: envsolve sync did not finish"
        raise UsageError("prefix-in-use", message, hints=hints)
    made_of = "another lock"
    if request.text is None and record.lock_path == str(request.lock.absolute()):
        is_same = record.lock_sha256 == record_of(plan, "", State.FINISHED).lock_sha256
        made_of = f"{request.lock} for another Python" if is_same else f"an earlier version of {request.lock}"
    raise UsageError(
        "prefix-in-use",
        f"{place.path} is an environment made from {made_of}",
        (f"it was made with: {record.request}",),
        (
            Hint("choose another PREFIX to keep both"),
            Hint("or replace it with --force; the old one remains until the new one is complete"),
        ),
    )


def _require_whole(place: Place, python: Path | None, environ: Mapping[str, str]) -> None:
    """Raise UsageError ``environment-broken`` if the Python of a finished environment does not start."""
    if python is None or runs(python, environ):
        return
    hint = Hint("recreate it with --force; the old one remains until the new one is complete")
    message = f"{place.path} was made from this lock, but its Python does not run"
    raise UsageError("environment-broken", message, (f"its Python is {python}",), (hint,))


def _set_aside(prefix: Path) -> None:
    """Move the old environment aside, or leave it in place."""
    try:
        set_aside(prefix)
    except BaseException:
        settle(prefix)
        raise


def _make_or_clear(
    request: CreateRequest, plan: Plan, prefix: Path, matrix: Matrix, environ: Mapping[str, str], progress: Progress
) -> tuple[Note, ...]:
    record = record_of(plan, request.command, State.UNFINISHED, prefix)
    clear_remains(prefix)
    try:
        with claiming(prefix):
            write_record(prefix, record)
            notes = make(request, plan, prefix, matrix, environ, progress)
            write_lock(prefix, plan)
            list_own_files(prefix)
            write_record(prefix, record._replace(state=State.FINISHED))
    except BaseException:
        if not request.keep:
            _put_back(prefix, progress)
        raise
    settle(prefix)
    return notes


def _put_back(prefix: Path, progress: Progress) -> None:
    """Restore the old environment. If that fails, the record says ``unfinished``, and the next command restores it."""
    with suppress(OSError, UsageError):
        record = read_record(prefix)
        if record is not None and record.state is State.FINISHED:
            return  # an interrupt after everything was done
        progress("cleaning up")
        clear(prefix)
        settle(prefix)
        if read_record(prefix) is None:
            release(prefix)


def absolute_prefix(prefix: str) -> str:
    """The absolute path of a prefix, as records have it. Raises UsageError if it cannot be used."""
    return str(place_of(prefix).path)
