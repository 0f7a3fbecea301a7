"""Find and run programs that may hang, crash or print without end.

With a broken driver, nvidia-smi can block forever, and an environment's Python runs code that no one checked. So every
run has a time limit, its output has a size limit, and everything that the program started ends with it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from subprocess import Popen

LONGEST_OUTPUT = 1 << 20
"""Default limit in bytes of the output that is read from a program."""
GRACE = 1.0
"""Seconds to wait for a killed program. One that sleeps inside the kernel does not die; it is left behind."""
_CHUNK = 1 << 16


class Finished(NamedTuple):
    """How a program ended, and what it wrote to standard output.

    ``exit_code`` is negative for a signal. It is None if envsolve stopped the program because it ``hung`` or
    ``flooded`` (printed more than the limit); the output is then what was printed before.
    """

    exit_code: int | None
    output: str
    flooded: bool = False

    @property
    def hung(self) -> bool:
        """Whether it was stopped for taking too long."""
        return self.exit_code is None and not self.flooded

    @property
    def last_line(self) -> str:
        """The last line of the output that is not empty; "" if there is none."""
        return next((line.strip() for line in reversed(self.output.splitlines()) if line.strip()), "")


def command_to_install(*packages: str) -> str:
    """The command that installs ``packages`` beside envsolve: with pip if the environment has it, otherwise with uv."""
    python = sys.executable
    pip = [python, "-m", "pip", "install"] if find_spec("pip") else ["uv", "pip", "install", "--python", python]
    return shlex.join([*pip, *packages])


def find_program(name: str, environ: Mapping[str, str]) -> str | None:
    """The first program called ``name`` in the absolute entries of PATH; None if there is none.

    The current directory is never searched, since it may be someone else's checkout: Windows and ``shutil.which`` there
    search it first. On other systems an empty or relative entry of PATH has the same effect.
    """
    for directory in absolute_entries(environ.get("PATH", os.defpath)):
        for suffix in _suffixes(environ):
            path = Path(directory, f"{name}{suffix}")
            if is_program(path):
                return str(path)
    return None


def named_program(name: str, environ: Mapping[str, str]) -> str | None:
    """The program for a path or, as in :func:`find_program`, for a name; None if there is none."""
    if not os.path.dirname(name):  # noqa: PTH120 - a text: Path drops the "./" that tells one from the other
        return find_program(name, environ)
    return next((it for suffix in _suffixes(environ) if is_program(Path(it := f"{name}{suffix}"))), None)


def absolute_entries(path: str) -> Iterator[str]:
    """The absolute directories in the value of a variable like PATH."""
    return (entry for entry in path.split(os.pathsep) if os.path.isabs(entry))  # noqa: PTH117 - a text


def is_system_text(text: str) -> bool:
    """Whether the system accepts ``text`` as a path, an argument or the value of a variable."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:  # a lone surrogate, which JSON can contain
        return False


def is_variable(name: object, value: object) -> bool:
    """Whether the system accepts ``value`` for an environment variable called ``name``."""
    texts = isinstance(name, str) and isinstance(value, str) and is_system_text(name) and is_system_text(value)
    return texts and name != "" and "=" not in str(name)


def is_program(path: Path) -> bool:
    """Whether ``path`` is a file that this user may run."""
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113 - it never raises


def run_program(
    command: Sequence[str],
    environ: Mapping[str, str],
    timeout: float,
    *,
    limit: int = LONGEST_OUTPUT,
    directory: str | Path = os.sep,
    errors: int | None = None,
) -> Finished:
    """Run ``command`` for at most ``timeout`` seconds and read at most ``limit`` bytes of its standard output.

    It runs in a session of its own and, by default, in the root directory, so that it finds nothing in the current one.
    It has no standard input. Its standard error goes to ``errors``, a descriptor or a constant of subprocess, and is
    discarded by default. Raises OSError if it cannot be started.
    """
    import subprocess

    process = start(command, environ, directory, errors=subprocess.DEVNULL if errors is None else errors)
    output = Output(process, limit)
    try:
        code: int | None = process.wait(timeout)
    except subprocess.TimeoutExpired:
        code = None
    finally:
        end_session(process)
    content = output.content()
    return Finished(None if output.flooded else code, content.decode("utf-8", "replace"), output.flooded)


def start(command: Sequence[str], environ: Mapping[str, str], directory: str | Path, *, errors: int) -> Popen[bytes]:
    """Start ``command`` in a session of its own, without standard input. Raises OSError if it cannot be started."""
    import subprocess

    return subprocess.Popen(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=dict(environ),
        cwd=directory,
        start_new_session=True,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )


class Output:
    """The output of a program, read as it arrives. A program that prints more than ``limit`` bytes is ended.

    At least the last ``tail`` bytes of the output are stored; all of it by default.
    """

    def __init__(self, process: Popen[bytes], limit: int, *, tail: int | None = None) -> None:
        self.flooded = False
        self._process = process
        self._limit = limit
        self._tail = limit if tail is None else tail
        self._length = 0
        self._content = bytearray()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def content(self) -> bytes:
        """The output so far. This does not wait for a process that outlived the program and has its output open."""
        self._reader.join(GRACE)
        return bytes(self._content[: self._limit] if self._tail == self._limit else self._content[-self._tail :])

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        with contextlib.suppress(OSError, ValueError), stream:
            while piece := os.read(stream.fileno(), _CHUNK):
                self._content += piece
                self._length += len(piece)
                if self._length > self._limit:
                    self.flooded = True
                    end_session(self._process)
                    return
                if len(self._content) > 2 * self._tail:
                    del self._content[: -self._tail]


def end_session(process: Popen[bytes]) -> None:
    """Kill a program that was started in a session of its own, and everything it started, and reap it if it dies."""
    import subprocess

    with contextlib.suppress(OSError, subprocess.SubprocessError):
        if sys.platform == "win32":
            _kill_tree(process.pid)
        else:
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)


def _kill_tree(number: int) -> None:
    """Kill a Windows process and those that it started, with the system's taskkill."""
    import subprocess

    taskkill = Path(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32", "taskkill.exe")
    subprocess.run([str(taskkill), "/F", "/T", "/PID", str(number)], capture_output=True, check=False, timeout=GRACE)


def _suffixes(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The possible suffixes of a program's name: on Windows the extensions of programs."""
    if sys.platform == "win32":
        return ("", *environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(os.pathsep))
    return ("",)
