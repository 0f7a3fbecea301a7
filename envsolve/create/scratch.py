"""Files of a command that may hold logins lie within the environment: after a kill the next command clears them away.

In the system's directory for such files they would stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from envsolve.create.record import LOCKS


@contextmanager
def scratch_in(prefix: Path) -> Iterator[Path]:
    """A directory below ``prefix`` that this user alone may read, gone when this is left. OSError passes."""
    folder = prefix / LOCKS
    folder.mkdir(exist_ok=True)
    with TemporaryDirectory(prefix="scratch-", dir=folder) as scratch:  # made with mode 0700
        yield Path(scratch)
