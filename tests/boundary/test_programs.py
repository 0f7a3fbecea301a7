"""A program has a time limit and an output limit, and its child processes end with it."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from envsolve.boundary.programs import LONGEST_OUTPUT, absolute_entries, run_program


def run(program: str, *arguments: str, timeout: float = 20.0, limit: int = LONGEST_OUTPUT):  # type: ignore[no-untyped-def]
    return run_program([sys.executable, "-I", "-c", program, *arguments], os.environ, timeout, limit=limit)


def test_the_output_and_the_exit_code_are_returned() -> None:
    finished = run("import sys; print('answer'); sys.exit(3)")
    assert (finished.exit_code, finished.output.strip(), finished.hung, finished.flooded) == (3, "answer", False, False)


def test_errors_are_dropped_and_there_is_no_input() -> None:
    assert run("import sys; sys.stderr.write('x'); print(repr(sys.stdin.read()))").output.strip() == "''"


@pytest.mark.thorough
def test_a_program_that_takes_too_long_is_ended() -> None:
    for timeout in (1.0, 4.0, 16.0):  # a busy machine needs longer to start Python
        started = time.monotonic()
        finished = run("import time; print('begun', flush=True); time.sleep(60)", timeout=timeout)
        if finished.output:
            break
    assert finished.hung
    assert finished.output.strip() == "begun"
    assert time.monotonic() - started < timeout + 10


def test_a_program_that_never_stops_printing_is_ended_at_the_limit() -> None:
    started = time.monotonic()
    finished = run("while True: print('a' * 1000)", limit=100_000)
    assert (finished.exit_code, finished.flooded, finished.hung) == (None, True, False)
    assert len(finished.output) == 100_000
    assert time.monotonic() - started < 10


def test_an_output_of_exactly_the_limit_is_complete() -> None:
    finished = run("print('a' * 999)", limit=1000)
    assert (finished.exit_code, len(finished.output)) == (0, 1000)


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("leaves_the_session", [False, True])
def test_a_child_with_open_output_is_not_waited_for(leaves_the_session: bool, tmp_path: Path) -> None:
    program = """
import os, sys, time
if os.fork() == 0:
    if sys.argv[1] == "True": os.setsid()
    open(sys.argv[2], "w").write(str(os.getpid()))
    time.sleep(20)
    os._exit(0)
while not os.path.exists(sys.argv[2]): time.sleep(0.01)
print("answer", flush=True)
"""
    started = time.monotonic()
    finished = run(program, str(leaves_the_session), str(tmp_path / "pid"))
    assert (finished.exit_code, finished.output.strip()) == (0, "answer")
    assert time.monotonic() - started < 10
    if leaves_the_session:
        os.kill(int((tmp_path / "pid").read_text()), 9)


def test_only_absolute_directories_of_a_path_count() -> None:
    here = str(Path.cwd())
    assert list(absolute_entries(os.pathsep.join(["", ".", "bin", here]))) == [here]
