"""Asking programs that print what they like: the Python of an environment, or a shell that runs its scripts.

``sitecustomize`` may print before the first line of ours runs, and may never end. So the answer has a file of its own,
whose path is the last argument of the program; what is printed is drained, and only its end is kept for messages.

A file and not a pipe: it works alike on Windows, passes through whatever stands in the interpreter's place (the
launcher of a venv, a shell script), and has an end though a process that was left behind still has it open. A hostile
program could fill the disk through it, but that takes no file of ours: it runs as the user.
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
"""Seconds for a mere question, such as a version or a list of what is installed."""
LONGEST_ANSWER = 16 * 1024 * 1024
LONGEST_OUTPUT = 64 * 1024 * 1024
"""Bytes that a program may print. One that prints more is ended."""
LONGEST_TAIL = 64 * 1024
"""Bytes of what it printed that are kept: the end, where a library says why it stops."""
_LONGEST_LINE = 300
_FIRST_EXCEPTION = 0xC0000000
"""The exit codes of a process that Windows ended for an exception begin here (NTSTATUS of severity error)."""
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
        """In words what ended it from outside or as an exception; None for one that ended by itself or timed out."""
        if self.flooded:
            return f"It printed more than {LONGEST_OUTPUT >> 20} MiB and was stopped."
        if self.signal is not None:
            name = next((it.name for it in signal.Signals if it.value == self.signal), "unknown")
            return " ".join(filter(None, (f"It died with signal {self.signal} ({name}).", _ENDED_BY.get(name))))
        code = (self.exit_code or 0) & 0xFFFFFFFF
        return f"It died with exception 0x{code:08X}." if code >= _FIRST_EXCEPTION else None


class Answer(NamedTuple):
    """What a program wrote to its file, how it ended, and the end of what it printed.

    ``fault`` says why the file cannot be read, "" if it can or where there is none.
    """

    content: bytes
    fault: str
    ending: Ending
    tail: str


class ProgramRunner:
    """The programs that are asked now. Leaving the ``with`` block, for whatever reason, ends them."""

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
        """End every program that runs; none can be started after it."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        for process in running:
            end_session(process)

    def answer(self, command: Sequence[str], environ: Mapping[str, str], timeout: float) -> Answer:
        """Run ``command``, with the path of its answer as a last argument, for at most ``timeout`` seconds.

        It runs in an empty directory, where a library that the loader finds in the current one is not found by chance.
        Raises OutsideError once :meth:`end` was called. OSError passes where it cannot be started.
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

        output = Output(process, LONGEST_OUTPUT, kept=LONGEST_TAIL)
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
    """What the interpreter makes of the expression ``value``, which JSON can hold.

    The expression may use json, os, platform, sys and sysconfig. Raises OutsideError ``python-not-usable`` if the
    interpreter cannot be started, does not answer in ``timeout`` seconds, or answers with something else than JSON.
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
    """The error that an interpreter gave no answer, with why and the last line that it printed."""
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
    """The error that an interpreter is of no use; ``why`` goes on from its name."""
    return OutsideError("python-not-usable", f"{python} {why}", cause)
