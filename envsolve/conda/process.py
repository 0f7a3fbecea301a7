"""The processes that run py-rattler: one that solves, one that installs."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ENGINE = Path(__file__).with_name("engine.py")
_ABOVE = Path(__file__).parents[2]
"""The directory that envsolve is imported from."""


def is_installed() -> bool:
    """Whether py-rattler is installed."""
    return find_spec("rattler") is not None


def started(engine: Path, *, listening: bool = False) -> subprocess.Popen[bytes]:
    """A new process of the program ``engine``; its standard error is captured if ``listening``."""
    return _started([str(engine)], listening=listening)


def installing() -> subprocess.Popen[bytes]:
    """A new process of the program that installs packages, with its standard error captured.

    It inherits the descriptors that are meant for it: with that of the environment's lock, the place counts as busy
    until the process has ended, whatever happens to this one.
    """
    program = f"import sys; sys.path.append({str(_ABOVE)!r}); from envsolve.conda.installer import main; main()"
    return _started(["-c", program], listening=True, closed=False)


def _started(program: list[str], *, listening: bool, closed: bool = True) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-X", "utf8", *program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if listening else subprocess.DEVNULL,
        env={**os.environ, "RUST_BACKTRACE": "0", "PYTHONFAULTHANDLER": ""},  # no unrequested output
        close_fds=closed,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )
