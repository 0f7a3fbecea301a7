"""Run a probe as a process of the environment's own interpreter, which may hang, crash or print anything.

The probe writes its results line by line to its answer file (inside/channel.py, boundary/answers.py), so that nothing
is lost if it dies.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from envsolve.boundary.answers import Answer, Ending, ProgramRunner, not_usable
from envsolve.boundary.files import FileError, json_value
from envsolve.errors import Hint

__all__ = ["Children", "Ending", "Outcome"]
PROGRAM = Path(__file__).parent / "inside" / "run.py"


class Outcome(NamedTuple):
    """The outcome of one probe.

    ``result`` is what it found; None if it did not finish: ``error`` is then the unexpected exception (type, text,
    trace), or None. ``stage`` is the last step it began, ``notes`` are its notes up to then. ``tail`` is the end of its
    output.
    """

    result: Mapping[str, object] | None
    error: Mapping[str, object] | None
    stage: str | None
    notes: tuple[Mapping[str, object], ...]
    seconds: float
    ending: Ending
    tail: str

    def noted(self, key: str) -> Any:
        """The last note of that name; None if there is none."""
        return next((note[key] for note in reversed(self.notes) if key in note), None)

    def all_noted(self, key: str) -> list[Any]:
        """Every note of that name, in order: JSON data in the form that the probe's module documents."""
        return [note[key] for note in self.notes if key in note]


class Children(ProgramRunner):
    """The running probes. Leaving the ``with`` block ends all of them."""

    def run(
        self, python: Path, probe: str, job: Mapping[str, object], environ: Mapping[str, str], timeout: float
    ) -> Outcome:
        """Run the module ``probe`` of :mod:`envsolve.validation.inside` with ``job``; ``timeout`` is in seconds.

        Raises OutsideError if the interpreter cannot be started.
        """
        started = time.perf_counter()
        try:
            answer = self.answer([os.fspath(python), os.fspath(PROGRAM), probe, json.dumps(job)], environ, timeout)
        except OSError as error:
            raised = not_usable(python, f"cannot be run: {error.strerror or error}")
            raised.hints = (Hint("name the interpreter of the environment with --python"),)
            raise raised from error
        return _outcome(answer, round(time.perf_counter() - started, 4))


def _outcome(answer: Answer, seconds: float) -> Outcome:
    lines, fault = _lines(answer)
    stages = [str(line["stage"]) for line in lines if "stage" in line]
    notes = tuple(line["note"] for line in lines if isinstance(line.get("note"), dict))
    error = {"type": "malformed answer", "text": fault, "trace": []} if fault else _error(lines)
    return Outcome(
        result=None if fault else _last(lines, "result"),
        error=error,
        stage=stages[-1] if stages else None,
        notes=notes,  # type: ignore[arg-type]  # looked at above
        seconds=seconds,
        ending=answer.ending,
        tail=answer.tail,
    )


def _lines(answer: Answer) -> tuple[list[dict[str, object]], str]:
    """The lines that the probe wrote, and what is wrong with them; an incomplete last line is ignored."""
    *whole, _ = answer.content.split(b"\n")
    lines: list[dict[str, object]] = []
    for line in whole:
        try:
            found = json_value(line)
        except FileError as error:
            return lines, error.reason
        if not isinstance(found, dict):
            return lines, "a line of it is no object"
        lines.append(found)
    return lines, answer.fault


def _error(lines: list[dict[str, object]]) -> dict[str, object] | None:
    found = _last(lines, "error")
    if found is None:
        return None
    trace = found.get("trace")
    texts = [str(it) for it in trace] if isinstance(trace, list) else []
    return {"type": str(found.get("type")), "text": str(found.get("text")), "trace": texts}


def _last(lines: list[dict[str, object]], key: str) -> dict[str, object] | None:
    found = next((line[key] for line in reversed(lines) if key in line), None)
    return found if isinstance(found, dict) else None
