"""Run programs that may print anything: the Python of an environment, or a shell that runs its scripts.

``sitecustomize`` may print before our first line runs, and may never end. So the program writes its answer to a
separate file, whose path is its last argument. Its output is drained, and only the end is kept for messages.

The answer is a file and not a pipe because a file works the same on Windows, passes through a launcher of a venv or a
shell script in place of the interpreter, and has an end even if a leftover process still has it open. A hostile program
could fill the disk through it, but it could do that anyway: it runs as the user.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple, Self

from envsolve.boundary.files import FileError, json_value, read_bytes
from envsolve.boundary.programs import Output, end_session, start
from envsolve.errors import OutsideError

if TYPE_CHECKING:
    from subprocess import Popen
    from types import TracebackType

PATIENCE = 20.0
"""Seconds for a short query, such as a version or the list of installed packages."""
LONGEST_ANSWER = 16 * 1024 * 1024
LONGEST_OUTPUT = 64 * 1024 * 1024
"""Bytes that a program may print. A program that prints more is stopped."""
LONGEST_TAIL = 64 * 1024
"""Bytes of the output that are kept: the end, where a library says why it stops."""
_LONGEST_LINE = 300
_FIRST_EXCEPTION = 0xC0000000
"""The first exit code of a process that Windows ended because of an exception (NTSTATUS of severity error)."""
_ENDED_BY = {
    "SIGKILL": "Something killed it; mostly that is the system, short of memory.",
    "SIGILL": "The processor lacks an instruction that the build uses, mostly of AVX.",
}
_QUESTION = """
import json, os, platform, sys, sysconfig
with open(sys.argv[1], "w") as file:
    json.dump({}, file)
"""


class Ending(NamedTuple):
    """How a process ended: by itself, by a signal, stopped after ``timeout`` seconds, or for printing too much."""

    exit_code: int | None = None
    signal: int | None = None
    timeout: float | None = None
    flooded: bool = False

    @property
    def crash(self) -> str | None:
        """A sentence on what ended it from outside, or as an exception; None if it ended by itself or timed out."""
        if self.flooded:
            return f"It printed more than {LONGEST_OUTPUT >> 20} MiB and was stopped."
        if self.signal is not None:
            name = next((it.name for it in signal.Signals if it.value == self.signal), "unknown")
            return " ".join(filter(None, (f"It died with signal {self.signal} ({name}).", _ENDED_BY.get(name))))
        code = (self.exit_code or 0) & 0xFFFFFFFF
        return f"It died with exception 0x{code:08X}." if code >= _FIRST_EXCEPTION else None

    def __str__(self) -> str:
        return self.crash or f"Its exit code was {self.exit_code}."


class Answer(NamedTuple):
    """What a program wrote to its file, how it ended, and the end of its output.

    ``fault`` says why the file cannot be read; "" if it can, or if there is none.
    """

    content: bytes
    fault: str
    ending: Ending
    tail: str


class ProgramRunner:
    """Runs programs and collects their answers. Leaving the ``with`` block ends all of them."""

    def __init__(self) -> None:
        self._running: set[Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """End every running program; no program can be started afterwards."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        for process in running:
            end_session(process)

    def answer(self, command: Sequence[str], environ: Mapping[str, str], timeout: float) -> Answer:
        """Run ``command``, with the path of the answer file as last argument, for at most ``timeout`` seconds.

        It runs in an empty directory, so that the loader does not find a library in the current directory by chance.
        Raises OutsideError after :meth:`end` was called, and OSError if the program cannot be started.
        """
        with TemporaryDirectory(prefix="envsolve-answer-", ignore_cleanup_errors=True) as directory:
            file = Path(directory, "answer")
            empty = Path(directory, "empty")
            empty.mkdir()
            ending, tail = self._finished(self._started([*command, os.fspath(file)], environ, empty), timeout)
            try:
                return Answer(read_bytes(file, LONGEST_ANSWER, follow=False) or b"", "", ending, tail)
            except FileError as error:
                return Answer(b"", error.reason, ending, tail)

    def _started(self, command: Sequence[str], environ: Mapping[str, str], directory: Path) -> Popen[bytes]:
        import subprocess

        with self._lock:
            if self._closed:
                raise OutsideError("interrupted", "the program was not started, as the command was ended")
            process = start(command, environ, directory, errors=subprocess.STDOUT)
            self._running.add(process)
        return process

    def _finished(self, process: Popen[bytes], timeout: float) -> tuple[Ending, str]:
        import subprocess

        output = Output(process, LONGEST_OUTPUT, tail=LONGEST_TAIL)
        try:
            code = process.wait(timeout)
            ending = Ending(signal=-code) if code < 0 else Ending(exit_code=code)
        except subprocess.TimeoutExpired:
            ending = Ending(timeout=timeout)
        finally:
            end_session(process)
            with self._lock:
                self._running.discard(process)
        tail = output.content().decode("utf-8", "replace")
        return (Ending(flooded=True) if output.flooded else ending), tail


def query_python(
    python: str | Path,
    value: str,
    environ: Mapping[str, str],
    *,
    options: Sequence[str] = ("-I",),
    timeout: float = PATIENCE,
) -> object:
    """The value of the expression ``value`` in the interpreter; it must be representable in JSON.

    The expression may use json, os, platform, sys and sysconfig. Raises OutsideError ``python-not-usable`` if the
    interpreter cannot be started, does not answer within ``timeout`` seconds, or answers with something other than
    JSON.
    """
    command = [os.fspath(python), *options, "-c", _QUESTION.format(value)]
    try:
        with ProgramRunner() as runner:
            answer = runner.answer(command, environ, timeout)
    except OSError as error:
        raise not_usable(python, f"cannot be run: {error.strerror or error}") from None
    if answer.ending.exit_code != 0 or answer.fault:
        raise no_answer(python, answer)
    try:
        return json_value(answer.content)
    except FileError as error:
        raise not_usable(python, f"gave an answer that cannot be read: {error.reason}") from None


def no_answer(python: str | Path, answer: Answer) -> OutsideError:
    """The error for an interpreter that gave no answer, with the reason and the last line that it printed."""
    last = tuple(line.strip() for line in answer.tail.splitlines() if line.strip())[-1:]
    cause = tuple(line[:_LONGEST_LINE] for line in last)
    ending = answer.ending
    if answer.fault:
        return not_usable(python, f"gave an answer that cannot be read: {answer.fault}", cause)
    if ending.timeout is not None:
        return not_usable(python, f"did not answer within {ending.timeout:g} seconds", cause)
    if ending.flooded:
        return not_usable(python, f"printed more than {LONGEST_OUTPUT >> 20} MiB instead of an answer", cause)
    if ending.crash is not None:
        return not_usable(python, "does not run as a Python interpreter", (ending.crash, *cause))
    why = f"its exit code was {ending.exit_code}"
    return not_usable(python, "does not run as a Python interpreter", cause or (why,))


def not_usable(python: str | Path, why: str, cause: tuple[str, ...] = ()) -> OutsideError:
    """The error for an unusable interpreter; ``why`` continues the sentence after its name."""
    return OutsideError("python-not-usable", f"{python} {why}", cause)
