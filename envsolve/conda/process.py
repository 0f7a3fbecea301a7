"""The processes that run py-rattler: one that solves, one that installs."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ENGINE = Path(__file__).with_name("engine.py")
_ABOVE = Path(__file__).parents[2]
"""Where envsolve is imported from, wherever this process found it."""


def is_installed() -> bool:
    """Whether py-rattler is there at all."""
    return find_spec("rattler") is not None


def started(engine: Path, *, listening: bool = False) -> subprocess.Popen[bytes]:
    """A new process of the program ``engine``; its errors are kept where someone is ``listening``."""
    return _started([str(engine)], listening=listening)


def installing() -> subprocess.Popen[bytes]:
    """A new process of the program that installs packages, whose errors are kept.

    It gets the descriptors that are meant to be passed on: the one of the lock on the environment, so that the place
    counts as busy until it has ended, whatever becomes of this process.
    """
    program = f"import sys; sys.path.append({str(_ABOVE)!r}); from envsolve.conda.installer import main; main()"
    return _started(["-c", program], listening=True, closed=False)


def _started(program: list[str], *, listening: bool, closed: bool = True) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-X", "utf8", *program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if listening else subprocess.DEVNULL,
        env={**os.environ, "RUST_BACKTRACE": "0", "PYTHONFAULTHANDLER": ""},  # it says no more than it is asked
        close_fds=closed,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )
