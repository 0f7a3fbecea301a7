"""Probes as processes: their output is preserved, and nothing they do affects others."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from envsolve.boundary.programs import GRACE
from envsolve.errors import OutsideError
from envsolve.validation.child import Children, Ending, Outcome
from tests.validation.compiled import CUDART, ON_LOAD, compiled

HERE = Path(sys.executable)


@pytest.fixture
def children() -> Iterator[Children]:
    with Children() as running:
        yield running


def load(children: Children, library: Path, timeout: float = 30.0) -> Outcome:
    """The result of a probe that loads a library."""
    return children.run(HERE, "libraries", {"libraries": [str(library)]}, os.environ, timeout)


def test_a_complete_probe_returns_its_result(children: Children, tmp_path: Path) -> None:
    outcome = load(children, compiled(tmp_path / "libcudart.so.12", CUDART.format(number=12080)))
    assert outcome.result is not None
    assert outcome.ending == Ending(exit_code=0)
    assert outcome.all_noted("library")[0]["version"] == "12.8"


def test_output_of_a_library_is_separate_from_the_result(children: Children, tmp_path: Path) -> None:
    noisy = ON_LOAD.format(body=r'puts("{\"result\": {\"libraries\": []}}"); fputs("warning: no\n", stderr);')
    outcome = load(children, compiled(tmp_path / "libcudart.so.12", noisy))
    assert "warning: no" in outcome.tail
    assert outcome.all_noted("library")[0]["path"].endswith("libcudart.so.12")


@pytest.mark.thorough
def test_the_end_of_a_long_output_is_preserved(children: Children, tmp_path: Path) -> None:
    body = r'for (int i = 0; i < 200000; i++) puts("chatter of a library"); puts("the last words"); fflush(stdout);'
    outcome = load(children, compiled(tmp_path / "libcudart.so.12", ON_LOAD.format(body=body)))
    assert outcome.tail.rstrip().endswith("the last words")
    assert len(outcome.tail) <= 64 * 1024


def test_a_crash_reports_its_signal_and_location(children: Children, tmp_path: Path) -> None:
    outcome = load(children, compiled(tmp_path / "libcudart.so.12", ON_LOAD.format(body="abort();")))
    assert outcome.result is None
    assert outcome.ending.signal == signal.SIGABRT
    assert outcome.stage == "libcudart.so.12"


def test_a_library_that_ends_the_process_gives_no_result(children: Children, tmp_path: Path) -> None:
    outcome = load(children, compiled(tmp_path / "libcudart.so.12", ON_LOAD.format(body="_exit(0);")))
    assert (outcome.result, outcome.error) == (None, None)
    assert outcome.ending.exit_code == 0


@pytest.mark.thorough
def test_a_hang_is_ended_with_its_children(children: Children, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    body = (
        f'FILE *file = fopen("{pid_file}", "w"); int child = fork(); if (!child) for (;;) pause();'
        'fprintf(file, "%d", child); fclose(file); for (;;) pause();'
    )
    library = compiled(tmp_path / "libcudart.so.12", ON_LOAD.format(body=body))
    for timeout in (1.0, 4.0, 16.0):  # a busy machine needs longer to get as far as the hang
        outcome = load(children, library, timeout)
        if pid_file.is_file() and pid_file.read_text() != "":
            break
    assert outcome.ending.timeout == timeout
    assert outcome.stage == "libcudart.so.12"
    assert is_gone(int(pid_file.read_text()))


def test_leaving_ends_running_processes(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    body = f'FILE *file = fopen("{pid_file}", "w"); fprintf(file, "%d", getpid()); fclose(file); for (;;) pause();'
    library = compiled(tmp_path / "libcudart.so.12", ON_LOAD.format(body=body))
    with Children() as running:
        thread = threading.Thread(target=load, args=(running, library))
        thread.start()
        until(lambda: pid_file.is_file() and pid_file.read_text() != "")
    thread.join(10 * GRACE)
    assert is_gone(int(pid_file.read_text()))
    with pytest.raises(OutsideError):
        load(running, library)


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ("[" * 100_000 + "\n", "it is nested too deep"),
        ('{"result": {}}\n{"result"\n', "it is not JSON: Expecting"),
        ("3\n", "a line of it is no object"),
        ('{"error": {"type": [], "trace": [3]}}\n', "None"),
    ],
)
def test_a_malformed_answer_is_an_error_of_the_probe(
    children: Children, tmp_path: Path, answer: str, fault: str
) -> None:
    (tmp_path / "answer").write_text(answer)
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\ncat {tmp_path}/answer > "$4"\n')
    program.chmod(0o755)
    outcome = children.run(program, "libraries", {}, os.environ, 20.0)
    assert (outcome.result, outcome.notes) == (None, ())
    assert outcome.error is not None
    assert str(outcome.error["text"]).startswith(fault)


def test_a_truncated_last_line_is_left_out(children: Children, tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text('#!/bin/sh\nprintf \'%s\\n%s\' \'{"result": {"a": 1}}\' \'{"result\' > "$4"\n')
    program.chmod(0o755)
    assert children.run(program, "libraries", {}, os.environ, 20.0).result == {"a": 1}


def test_a_missing_program_is_one_error(children: Children, tmp_path: Path) -> None:
    with pytest.raises(OutsideError, match="python-not-usable"):
        children.run(tmp_path / "python", "inventory", {}, os.environ, 5.0)


def until(happened: object) -> None:
    """Wait until a condition holds, or fail."""
    assert callable(happened)
    for _ in range(1000):
        if happened():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen within ten seconds")


def is_gone(pid: int) -> bool:
    """Whether a process has ended; a zombie has."""
    for _ in range(500):
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False
