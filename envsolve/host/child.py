"""Running one short program that may hang: a driver in trouble can block a process for ever."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from subprocess import Popen

GRACE = 1.0
"""Seconds to wait for a killed child. One that sleeps inside the kernel does not die; it is left behind."""


class Finished(NamedTuple):
    """How a child ended: its exit code (negative for a signal, None when it was stopped for taking too long)."""

    exit_code: int | None
    output: str

    @property
    def hung(self) -> bool:
        """Whether it was stopped for taking too long."""
        return self.exit_code is None


def run_child(command: Sequence[str], environ: Mapping[str, str], timeout: float) -> Finished:
    """Run ``command`` in its own session and from the root directory, so that nothing is found in the current one."""
    import subprocess

    process = subprocess.Popen(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=dict(environ),
        cwd=os.sep,
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        _stop(process)
        return Finished(None, "")
    except BaseException:
        _stop(process)
        raise
    return Finished(process.returncode, output.decode("utf-8", "replace"))


def _stop(process: Popen[bytes]) -> None:
    """Kill the child and everything it started, and collect it if it dies."""
    import subprocess

    with contextlib.suppress(OSError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    try:
        process.communicate(timeout=GRACE)
    except subprocess.TimeoutExpired:
        if process.stdout is not None:
            process.stdout.close()
