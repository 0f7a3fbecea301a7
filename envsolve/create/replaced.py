"""An environment that another one replaces (``--force``): it lies aside until the new one is finished.

It lies within the directory, so that it can be moved without a copy wherever the directory is, a mount point as well.
The order tells how far it came, whenever the process dies: without a record at the top the old environment is on its
way, out or back; with an unfinished one all of it is aside; with a finished one it is to be dropped.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from envsolve.create.busy import LOCK
from envsolve.create.prefix import OLD, clear
from envsolve.create.record import RECORD, State, read_record


def set_aside(prefix: Path) -> None:
    """Move the environment aside. OSError passes."""
    old = prefix / OLD
    old.mkdir()
    (prefix / RECORD).replace(old / RECORD)
    for name in _contents(prefix):
        (prefix / name).replace(old / name)


def settle(prefix: Path) -> None:
    """Leave nothing aside: drop the old environment where the new one is finished, else bring it back.

    OSError passes.
    """
    old = prefix / OLD
    if not old.is_dir():
        return
    record = read_record(prefix)
    if record is not None and record.state is State.FINISHED:
        shutil.rmtree(old)
        return
    if record is not None:
        clear(prefix)
    for name in _contents(old):
        (old / name).replace(prefix / name)
    (old / RECORD).replace(prefix / RECORD)
    old.rmdir()


def _contents(folder: Path) -> list[str]:
    """What is in ``folder``, but for the record and what is no part of an environment."""
    return sorted(it.name for it in os.scandir(folder) if it.name not in (RECORD, LOCK, OLD))
