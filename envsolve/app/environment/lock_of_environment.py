"""The lock from which envsolve created an environment, the differences, and the command that repairs them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

from envsolve.app.environment.syncing import damaged, installed, is_same
from envsolve.boundary.display import listed
from envsolve.boundary.files import FileError
from envsolve.create.plan import Plan
from envsolve.create.reading import plan_of
from envsolve.create.record import LOCKS, Record, State, read_record
from envsolve.errors import UsageError
from envsolve.host.machine import this_platform
from envsolve.model.note import Note
from envsolve.project import find_project, read_project

_FEW = 5
_PREFIX = ".venv"
"""The environment of a project, unless `sync --prefix` names another."""


def differs_from_lock(prefix: Path, *, runs: bool = True) -> tuple[Note, ...]:
    """A note on missing, changed or damaged packages in an environment that envsolve created, with a repair command.

    ``runs`` says whether its Python runs. No note for other environments, or without differences.
    """
    try:
        record = read_record(prefix)
        if record is None or not record.names(prefix) or record.state is State.UNFINISHED:
            return ()
        plan = plan_of(prefix / LOCKS / record.lock_name, this_platform())
        found = [*([] if runs else ["its Python does not run"]), *_differences(plan, prefix)]
        if not found:
            return ()
        return (
            Note(
                "differs-from-lock",
                f"{prefix} is not what its lock has: {listed(found, _FEW)}",
                _command(prefix, record),
            ),
        )
    except (UsageError, FileError, OSError):  # other findings report a broken record, lock or project
        return ()


def sync_command(prefix: Path) -> str | None:
    """The `envsolve sync` command for an environment; None if it does not belong to a project."""
    return _of_record(prefix, _sync)


def lock_command(prefix: Path) -> str | None:
    """The command that installs its lock again, `sync` or `create`; None if envsolve did not create the environment."""
    return _of_record(prefix, _command)


def _of_record(prefix: Path, command: Callable[[Path, Record], str | None]) -> str | None:
    try:
        record = read_record(prefix)
        return None if record is None or not record.names(prefix) else command(prefix, record)
    except (UsageError, OSError):
        return None


def _command(prefix: Path, record: Record) -> str:
    return _sync(prefix, record) or f"{record.request} --force"


def _differences(plan: Plan, prefix: Path) -> Iterator[str]:
    """A line for each package that differs from the lock."""
    there = installed(prefix)
    locked: dict[str, list[str]] = {}
    for pin in plan.lock.pins:
        locked.setdefault(pin.name, []).append("" if pin.marker and pin.name not in there else pin.version)
    for package in plan.lock.conda:
        locked[package.name] = [f"{package.version} {package.build}"]
    same = set(locked)
    for name, versions in sorted(locked.items()):
        if "" not in versions and name not in there:
            yield f"{name} is missing"
        elif name in there and not any(is_same(there[name], it) for it in versions):
            same.discard(name)
            yield f"{name} {there[name]} instead of {' or '.join(versions)}"
    for name in sorted(damaged(prefix) & same):
        yield f"files of {name} are missing or changed"


def _sync(prefix: Path, record: Record) -> str | None:
    lock = Path(record.lock_path or "")
    file = find_project(prefix.parent)
    if file is None or not lock.is_file():
        return None
    project = read_project(file)
    words = ["envsolve", "sync"]
    if find_project(Path.cwd()) != file:
        words += ["--project", str(file.parent)]
    if prefix != file.parent / _PREFIX:
        words += ["--prefix", os.path.relpath(prefix)]
    if [file.parent / output.file for part in project.parts for output in part.outputs] != [lock]:
        words += ["--lock", os.path.relpath(lock)]
    return shlex.join(words)
