"""The directory that becomes an environment: which directories may, who works on it, and its state after a failure.

An environment contains its own path, so it is made in its final place. After a failure everything that was made is
removed: a directory that existed and was empty exists and is empty afterwards.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from envsolve.boundary.busy import LOCK, locked
from envsolve.create import claims
from envsolve.create.claims import is_claimed, list_files
from envsolve.create.record import LOCKS, RECORD, Record, State, read_record
from envsolve.errors import EnvsolveError, Hint, OutsideError, UsageError

OLD = ".envsolve-old"
"""Where an environment is moved while it is replaced (envsolve.create.replaced)."""
_OURS = (LOCK, f"{RECORD}.new")
"""What a command leaves that is killed before its record is written."""
_BESIDE = (RECORD, *_OURS, OLD, LOCKS)
"""What is in the directory besides the files of the environment."""
_FOREIGN = "foreign.list"
"""The list of someone else's files in an environment that is changing, beside its lock."""
_FAILS = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


class Place(NamedTuple):
    """A directory that may become an environment. ``record`` is that of the environment in it; None without one."""

    path: Path
    record: Record | None


def place_of(name: str) -> Place:
    """The place that a user names, as an absolute path; a link means its target.

    Raises UsageError if it is a directory that envsolve must not touch (``prefix-protected``), something other than an
    environment of envsolve (``prefix-not-ours``), or not usable as a directory (``prefix-not-usable``).
    """
    path = Path(os.path.abspath(name))  # noqa: PTH100  # links above it stay as they are named
    _require_text(path)
    try:
        if path.is_symlink() and not path.exists():
            raise UsageError("prefix-not-usable", f"{path} is a link to nothing", hints=(_ANOTHER,))
        path = _real(path) if path.is_symlink() else path
        _refuse_protected(path)
        _require_directory(path)
        record = read_record(path)
        if record is not None and not record.names(path):
            raise _moved(path, record)
        if record is None and not lies_aside(path):
            _refuse_foreign(path)
        elif record is None or record.state is State.UNFINISHED:
            require_claim(path)
    except OSError as error:
        raise _failed(path, error) from error
    return Place(path, record)


_ANOTHER = Hint("choose a PREFIX that does not exist yet, or an empty directory")


def _require_text(path: Path) -> None:
    """Raise UsageError for bytes that are not UTF-8: neither a record nor a lock could contain the path."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        message = f"the name {str(path)!a} is not UTF-8"
        raise UsageError("prefix-not-usable", message, hints=(_ANOTHER,)) from None


def _moved(path: Path, record: Record) -> UsageError:
    """The error for a copy: paths in it lead to the original place, and its owner is unknown."""
    return UsageError(
        "prefix-not-ours",
        f"{path} was copied or moved: it was made in {record.prefix or 'an unknown place'}",
        ("an environment contains its own path, so a copy does not work",),
        (Hint("recreate it here: remove the directory and run the command again"), _ANOTHER),
    )


def lies_aside(path: Path) -> bool:
    """Whether an environment of this place was set aside in it by a command that was replacing it."""
    old = path / OLD
    if old.is_symlink() or not old.is_dir():
        return False
    try:
        record = read_record(old)
    except UsageError:
        return False
    return record is not None and record.state is State.FINISHED and record.names(path)


def _refuse_protected(path: Path) -> None:
    """Raise UsageError for the home directory, the root and the running interpreter."""
    named = {"your home directory": _home(), "the root of the file system": Path(path.anchor)}
    named |= {"the environment that envsolve runs in": Path(sys.prefix), "its Python": Path(sys.base_prefix)}
    real = _real(path)
    found = next((what for what, it in named.items() if it is not None and _real(it) == real), None)
    if found is not None:
        raise UsageError("prefix-protected", f"{path} is {found}", hints=(_ANOTHER,))
    around = next((it for it in real.parents if _is_environment(it, real)), None)
    if around is not None:
        raise UsageError("prefix-protected", f"{path} is inside the environment {around}", hints=(_ANOTHER,))


def _is_environment(folder: Path, path: Path) -> bool:
    """Whether it is the running environment, or one of envsolve's, and ``path`` would be inside.

    Environments in ``envs`` of conda's own prefix are neighbours, and a system's Python is no environment.
    """
    if folder == _real(Path(sys.prefix)):
        of_conda = (folder / "conda-meta").is_dir() and path.relative_to(folder).parts[0] != "envs"
        return of_conda or sys.prefix != sys.base_prefix
    try:
        record = read_record(folder)
    except UsageError:
        return False
    return record is not None and record.names(folder)


def _real(path: Path) -> Path:
    """The path without links; circular ones stay, and never raise as Path.resolve does in old versions."""
    return Path(os.path.realpath(path))


def require_claim(path: Path) -> None:
    """Raise UsageError ``prefix-not-ours`` unless this user's envsolve made what is in the directory.

    This is checked before anything in it is removed or moved, since a record can be forged.
    """
    if not is_claimed(path):
        cause = (f"its {RECORD} claims it, but envsolve has no record of it",)
        hint = Hint("remove the directory yourself if you do not need it")
        raise UsageError("prefix-not-ours", f"{path} was not made by your envsolve", cause, (hint, _ANOTHER))


def list_own_files(path: Path, foreign: Collection[Path] = ()) -> None:
    """Record which files of the finished environment are envsolve's: all except ``foreign``. Raises OSError."""
    list_files(path, _BESIDE, foreign)
    (path / LOCKS / _FOREIGN).unlink(missing_ok=True)


def foreign_files(path: Path) -> Iterator[Path]:
    """The files of the finished environment that envsolve did not write, or that were changed since."""
    return claims.foreign_files(path, _BESIDE)


def note_foreign_files(path: Path) -> frozenset[Path]:
    """The foreign files of an environment that is about to change, recorded for a command that continues the change.

    A command that continues gets the recorded files, and those that were added since. Raises OSError.
    """
    noted = path / LOCKS / _FOREIGN
    if noted.is_file():
        found = frozenset(Path(os.fsdecode(it)) for it in noted.read_bytes().split(b"\0") if it)
        return found.union(claims.younger_files(path, _BESIDE))
    found = frozenset(foreign_files(path))
    noted.write_bytes(b"\0".join(map(os.fsencode, found)))
    return found


def require_only_own_files(path: Path) -> None:
    """Raise UsageError ``prefix-not-ours`` if the finished environment contains a file that envsolve did not write."""
    require_claim(path)
    foreign = next(foreign_files(path), None)
    if foreign is not None:
        cause = ("replacing the environment would delete this file, possibly the only copy",)
        hints = (Hint(f"move {path / foreign} away, and run it again"), Hint("or remove the directory yourself"))
        message = f"{path} contains {foreign}, which envsolve did not write or which was changed since"
        raise UsageError("prefix-not-ours", message, cause, hints)


def _require_directory(path: Path) -> None:
    """Raise UsageError if nothing can be created at ``path``, before any other work."""
    there = next(it for it in (path, *path.parents) if os.path.lexists(it))
    if not there.is_dir():
        raise UsageError("prefix-not-usable", f"{there} is not a directory", hints=(_ANOTHER,))
    if not os.access(there, os.W_OK | os.X_OK):
        raise UsageError("prefix-not-usable", f"{there} is a directory that you may not write to", hints=(_ANOTHER,))


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:
        return None


def _refuse_foreign(path: Path) -> None:
    found = list(os.scandir(path)) if path.is_dir() else []
    entries = [it.name for it in found if it.name not in _OURS or not it.is_file(follow_symlinks=False)]
    if entries:
        cause = (f"it contains {min(entries)} and has no {RECORD}",)
        raise UsageError("prefix-not-ours", f"{path} is not an environment made by envsolve", cause, (_ANOTHER,))


@contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Lock the directory, which is created if needed; if it is empty afterwards and was created here, it is removed.

    Raises OutsideError ``prefix-busy`` if another command works on it, and UsageError as :func:`place_of`.
    """
    made: list[Path] = []
    try:
        made = _made(path)
        with locked(path, _busy(path)):
            yield
    except OSError as error:
        raise _failed(path, error) from error
    finally:
        for folder in reversed(made):
            with suppress(OSError):  # it is in use by now
                folder.rmdir()


def _busy(path: Path) -> OutsideError:
    hint = Hint("wait for it to finish, or choose another PREFIX")
    return OutsideError("prefix-busy", f"another command is creating {path}", hints=(hint,))


def _made(path: Path) -> list[Path]:
    """Create the directory and its parents; returns those that were missing, the highest first."""
    missing = [it for it in (path, *path.parents) if not it.exists()][::-1]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError:
        for folder in reversed(missing):
            with suppress(OSError):
                folder.rmdir()
        raise
    return missing


def clear_remains(path: Path) -> None:
    """Remove what a killed command left in the directory, if anything.

    Raises UsageError ``prefix-not-ours`` if someone has put a file there since; then nothing is removed.
    """
    if any(it.name not in (*_OURS, OLD) for it in list(os.scandir(path))):
        require_claim(path)
        younger = next(claims.younger_files(path, _BESIDE), None)
        if younger is not None:
            message = f"{path} is an unfinished environment, and {path / younger} was added later"
            raise UsageError("prefix-not-ours", message, hints=(Hint(f"move {path / younger} away, and run it again"),))
    clear(path)


def clear(path: Path) -> None:
    """Remove the content of the directory, the record last: it says whose it is. Raises OSError."""
    last = (RECORD, LOCK, OLD)
    for entry in list(os.scandir(path)):
        if entry.name not in last:
            _remove(Path(entry.path))
    (path / RECORD).unlink(missing_ok=True)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _failed(path: Path, error: OSError) -> EnvsolveError:
    reason = error.strerror or str(error)
    if error.errno in _FAILS:
        hint = Hint("free disk space and run the same command again; completed downloads are reused")
        return OutsideError("disk-failed", f"{path} cannot be written: {reason}", hints=(hint,))
    if error.errno == errno.ENAMETOOLONG:
        return UsageError("prefix-too-long", f"{path} is too long for this system", hints=(Hint("shorten it"),))
    return UsageError("prefix-not-usable", f"{path} cannot be made or written: {reason}", hints=(_ANOTHER,))
