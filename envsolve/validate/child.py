"""One probe as a process of the environment's own interpreter, which may hang, crash or print what it likes.

The probe writes what it sees line by line into a file that only it knows (inside/channel.py), so that nothing it saw
is lost with it. It runs in a session of its own, so that everything it starts can be ended with it, and in an empty
directory, where a library that the loader finds in the current directory is not found by chance.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, NamedTuple, Self

from envsolve.boundary.programs import GRACE, end_session
from envsolve.errors import Hint, OutsideError

PROGRAM = Path(__file__).parent / "inside" / "run.py"
LONGEST_TAIL = 64 * 1024
"""Bytes of what a probe printed that are kept: the end, where a library says why it stops."""
_FIRST_EXCEPTION = 0xC0000000
"""The exit codes of a process that Windows ended for an exception begin here (NTSTATUS of severity error)."""
_ENDED_BY = {
    "SIGKILL": "Something killed it; mostly that is the system, short of memory.",
    "SIGILL": "The processor lacks an instruction that the build uses, mostly of AVX.",
}


class Ending(NamedTuple):
    """How a process ended: by itself, by a signal, or stopped after ``timeout`` seconds."""

    exit_code: int | None = None
    signal: int | None = None
    timeout: float | None = None

    @property
    def crash(self) -> str | None:
        """In words what ended it from outside or as an exception; None for one that ended by itself or was stopped."""
        if self.signal is not None:
            name = next((it.name for it in signal.Signals if it.value == self.signal), "unknown")
            return " ".join(filter(None, (f"It died with signal {self.signal} ({name}).", _ENDED_BY.get(name))))
        code = (self.exit_code or 0) & 0xFFFFFFFF
        return f"It died with exception 0x{code:08X}." if code >= _FIRST_EXCEPTION else None


class Outcome(NamedTuple):
    """What came of one probe.

    ``result`` is what it found; None where it did not come to its end, and ``error`` then is the exception it did not
    expect (type, text, trace), or None. ``stage`` is the last thing it began, ``notes`` what it had seen by then.
    ``tail`` is the end of what it printed.
    """

    result: Mapping[str, object] | None
    error: Mapping[str, object] | None
    stage: str | None
    notes: tuple[Mapping[str, object], ...]
    seconds: float
    ending: Ending
    tail: str

    def noted(self, key: str) -> Any:
        """The last note of that name; None where there is none."""
        return next((note[key] for note in reversed(self.notes) if key in note), None)

    def all_noted(self, key: str) -> list[Any]:
        """Every note of that name, in order: data of JSON, whose shape the probe's module tells."""
        return [note[key] for note in self.notes if key in note]


class Children:
    """The probes that run now. Leaving the ``with`` block, for whatever reason, ends them."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """End every probe that runs; none can be started after it."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        for process in running:
            end_session(process)

    def run(
        self, python: Path, probe: str, job: Mapping[str, object], environ: Mapping[str, str], timeout: float
    ) -> Outcome:
        """Run the module ``probe`` of :mod:`envsolve.validate.inside` with ``job``; ``timeout`` is in seconds.

        Raises OutsideError where the interpreter cannot be started.
        """
        with TemporaryDirectory(prefix="envsolve-probe-", ignore_cleanup_errors=True) as directory:
            file = Path(directory, "result.jsonl")
            empty = Path(directory, "empty")
            empty.mkdir()
            command = [os.fspath(python), os.fspath(PROGRAM), probe, os.fspath(file), json.dumps(job)]
            started = time.perf_counter()
            ending, tail = self._finished(self._started(command, environ, empty), timeout)
            return _outcome(_lines(file), round(time.perf_counter() - started, 4), ending, tail)

    def _started(self, command: list[str], environ: Mapping[str, str], directory: Path) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise OutsideError("interrupted", "the validation was ended")
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    env=dict(environ),
                    cwd=directory,
                    start_new_session=True,
                    creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
                )
            except OSError as error:
                message = f"{command[0]} cannot be run: {error.strerror or error}"
                hint = Hint("name the interpreter of the environment with --python")
                raise OutsideError("python-not-usable", message, hints=(hint,)) from error
            self._running.add(process)
        return process

    def _finished(self, process: subprocess.Popen[bytes], timeout: float) -> tuple[Ending, str]:
        tail = _Tail(process)
        try:
            code = process.wait(timeout)
            ending = Ending(signal=-code) if code < 0 else Ending(exit_code=code)
        except subprocess.TimeoutExpired:
            ending = Ending(timeout=timeout)
        finally:
            end_session(process)
            with self._lock:
                self._running.discard(process)
        return ending, tail.text()


class _Tail:
    """The end of what a process prints, read as it comes so that the process is never kept waiting."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self._stream = process.stdout
        self._pieces: deque[bytes] = deque()
        self._length = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def text(self) -> str:
        """What was kept. A stray process that holds the pipe open is not waited for."""
        self._reader.join(GRACE)
        return b"".join(self._pieces)[-LONGEST_TAIL:].decode("utf-8", "replace")

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError), self._stream as stream:
            while piece := os.read(stream.fileno(), 1 << 16):
                self._pieces.append(piece)
                self._length += len(piece)
                while self._length - len(self._pieces[0]) >= LONGEST_TAIL:
                    self._length -= len(self._pieces.popleft())


def _lines(file: Path) -> list[dict[str, object]]:
    """What the probe wrote; a last line that was cut off is left out."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    lines = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            lines.append(json.loads(line))
    return [line for line in lines if isinstance(line, dict)]


def _outcome(lines: list[dict[str, object]], seconds: float, ending: Ending, tail: str) -> Outcome:
    stages = [str(line["stage"]) for line in lines if "stage" in line]
    notes = tuple(line["note"] for line in lines if isinstance(line.get("note"), dict))
    return Outcome(
        result=_last(lines, "result"),
        error=_last(lines, "error"),
        stage=stages[-1] if stages else None,
        notes=notes,  # type: ignore[arg-type]  # looked at above
        seconds=seconds,
        ending=ending,
        tail=tail,
    )


def _last(lines: list[dict[str, object]], key: str) -> dict[str, object] | None:
    found = next((line[key] for line in reversed(lines) if key in line), None)
    return found if isinstance(found, dict) else None
