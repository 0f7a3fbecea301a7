"""Run other programs: their output becomes progress, its end is kept, and none outlives the command.

Output is shown without logins. For queries of an interpreter see envsolve.boundary.answers.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import NamedTuple

from envsolve.boundary.meter import metered
from envsolve.lockfile.text_file import clean

_LAST_LINES = 30
"""Lines; a tool says at the end why it failed."""
_LONGEST_LINE = 1 << 16
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Ran(NamedTuple):
    """How a program ended, and the last lines of its output, without logins.

    ``marked`` are the first lines with the requested words, however much was printed afterwards.
    """

    code: int
    lines: tuple[str, ...]
    marked: tuple[str, ...] = ()


def run(
    command: Sequence[str],
    environ: Mapping[str, str],
    progress: Callable[[str], None] = lambda _: None,
    *,
    words: Collection[str] = (),
    doing: str = "",
) -> Ran:
    """Run a program to its end; ``progress`` gets each line of its output, and lines with one of ``words`` are kept.

    With ``doing``, a description, ``progress`` also gets every second how much the program has written. Raises OSError
    if it cannot be started. In any case the program has ended afterwards.
    """
    last: deque[str] = deque(maxlen=_LAST_LINES)
    marked: dict[str, str] = {}
    with ExitStack() as stack:
        process = stack.enter_context(_running(command, environ))
        assert process.stdout is not None
        if doing:
            stack.enter_context(metered(process.pid, doing, progress))
        for line in iter(partial(process.stdout.readline, _LONGEST_LINE), ""):
            text = clean(_COLOUR.sub("", line)).strip()
            if text:
                last.append(text)
                for word in words:
                    if word in text:
                        marked.setdefault(word, text)
                progress(text)
        return Ran(process.wait(), tuple(last), tuple(dict.fromkeys(marked.values())))


@contextmanager
def _running(command: Sequence[str], environ: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A running program, which is ended when the block is left.

    It is the leader of a new session, so only this process gets the terminal's interrupt and decides what to do.
    """
    process = subprocess.Popen(
        list(command),
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
        close_fds=False,  # it locks the environment for as long as it works on it (envsolve.boundary.busy)
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )
    try:
        yield process
    finally:
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """Kill the program and everything it started, if anything still runs."""
    if process.poll() is None:
        with suppress(OSError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
