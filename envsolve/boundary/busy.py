"""Lock a directory, so that one command at a time works on it.

The lock is on a file in the directory and ends with the command.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from envsolve.errors import OutsideError

LOCK = ".envsolve.busy"
_TRIES = 5
_WAIT = 0.05
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""A symbolic link of that name may lead anywhere, and opening a FIFO would block."""


@contextmanager
def locked(path: Path, busy: OutsideError, seconds: float = 0.0) -> Iterator[None]:
    """Lock the directory at ``path``.

    Programs that are started meanwhile share the lock, as one may outlive its command.

    Raises ``busy`` if another command still has the lock after ``seconds``. Raises OSError, also from the ``with``
    block.
    """
    file = path / LOCK
    until = time.monotonic() + seconds
    while (descriptor := _locked(file)) is None:
        if time.monotonic() >= until:
            raise busy
        time.sleep(_WAIT)
    try:
        yield
    finally:
        if sys.platform == "win32":
            os.close(descriptor)
        with suppress(OSError):
            file.unlink()
        if sys.platform != "win32":
            os.close(descriptor)


def _locked(file: Path) -> int | None:
    """A descriptor of the locked file; None if another command has the lock.

    A file that was removed before it could be locked does not count.
    """
    for _ in range(_TRIES):
        descriptor = os.open(file, _FLAGS, 0o666)
        _require_regular(descriptor)
        if not _try_lock(descriptor):
            os.close(descriptor)
            return None
        with suppress(OSError):
            if os.fstat(descriptor).st_ino == file.stat().st_ino:
                os.set_inheritable(descriptor, True)
                return descriptor
        os.close(descriptor)
    return None


def _require_regular(descriptor: int) -> None:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, f"its {LOCK} is not a regular file")


def _try_lock(descriptor: int) -> bool:
    """Whether the lock was free. On a file system without locks it always is."""
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True
    return True
