"""An environment that is being replaced (``--force``): it is set aside until the new one is finished.

It stays within the directory, so that it can be moved without a copy wherever the directory is, even if it is a mount
point. The state is known whenever the process dies: without a record at the top the old environment is being moved, out
or back; with an unfinished one all of it is aside; with a finished one it can be deleted.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from envsolve.boundary.busy import LOCK
from envsolve.create.prefix import OLD, clear_remains, lies_aside, require_claim, require_only_own_files
from envsolve.create.record import RECORD, State, read_record
from envsolve.errors import Hint, UsageError


def set_aside(prefix: Path) -> None:
    """Move the environment aside.

    Raises UsageError ``prefix-not-ours`` if envsolve did not make all of it, and OSError.
    """
    require_only_own_files(prefix)
    old = prefix / OLD
    old.mkdir()
    (prefix / RECORD).replace(old / RECORD)
    for name in _contents(prefix):
        (prefix / name).replace(old / name)


def settle(prefix: Path) -> None:
    """Finish a replacement: delete the old environment if the new one is finished, otherwise restore it.

    Raises UsageError ``prefix-not-usable`` rather than overwrite anything, ``prefix-not-ours`` if envsolve did not make
    it, and OSError.
    """
    old = prefix / OLD
    if not os.path.lexists(old):
        return
    require_claim(prefix)
    record = read_record(prefix)
    if record is not None and record.state is State.FINISHED:
        if old.is_dir() and not old.is_symlink():
            shutil.rmtree(old)
        return
    if not lies_aside(prefix):
        return
    if record is not None:
        clear_remains(prefix)
    _require_free(prefix, names := _contents(old))
    for name in names:
        (old / name).replace(prefix / name)
    (old / RECORD).replace(prefix / RECORD)
    old.rmdir()


def _require_free(prefix: Path, names: Iterable[str]) -> None:
    """Raise UsageError if something of someone else's is where the old environment has to go."""
    taken = next((name for name in names if os.path.lexists(prefix / name)), None)
    if taken is not None:
        message = f"an environment lies aside in {prefix / OLD}, and cannot come back: {prefix / taken} is in its way"
        raise UsageError("prefix-not-usable", message, hints=(Hint(f"move {taken} away, and run the command again"),))


def _contents(folder: Path) -> list[str]:
    """The content of ``folder``, without the record and what is no part of an environment."""
    return sorted(it.name for it in os.scandir(folder) if it.name not in (RECORD, LOCK, OLD))
