"""Other programs at work: what they say goes on as progress, its end is kept, and none outlives the command.

What is shown has no logins in it. A question to an interpreter is asked by envsolve.boundary.answers.
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

_KEPT = 30
"""Lines; a tool says at the end why it failed."""
_LONGEST_LINE = 1 << 16
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Ran(NamedTuple):
    """How a program ended, and the last lines of what it said, without logins.

    ``marked`` are the first lines that held the words that were listened for, however much was said after them.
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
    """Run a program to its end; ``progress`` gets each line that it prints, and those with one of ``words`` are kept.

    With ``doing``, what it is about, ``progress`` also gets every second how much it has written.
    OSError passes where it cannot be started. However this is left, it has ended.
    """
    kept: deque[str] = deque(maxlen=_KEPT)
    marked: dict[str, str] = {}
    with ExitStack() as stack:
        process = stack.enter_context(_running(command, environ))
        assert process.stdout is not None
        if doing:
            stack.enter_context(metered(process.pid, doing, progress))
        for line in iter(partial(process.stdout.readline, _LONGEST_LINE), ""):
            said = clean(_COLOUR.sub("", line)).strip()
            if said:
                kept.append(said)
                for word in words:
                    if word in said:
                        marked.setdefault(word, said)
                progress(said)
        return Ran(process.wait(), tuple(kept), tuple(dict.fromkeys(marked.values())))


@contextmanager
def _running(command: Sequence[str], environ: Mapping[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A program that has ended when this is left.

    It is the first of a session of its own, so that the terminal's interrupt comes to us alone and we decide what
    becomes of it.
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
        close_fds=False,  # it holds the environment as long as it works on it (envsolve.boundary.busy)
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )
    try:
        yield process
    finally:
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """Kill what is left of the program and of all that it started."""
    if process.poll() is None:
        with suppress(OSError):
            if sys.platform == "win32":
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
