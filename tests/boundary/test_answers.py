"""A program answers in a separate file; what it prints, leaves running or does to that file does no harm."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from envsolve.boundary.answers import LONGEST_ANSWER, LONGEST_TAIL, Answer, Ending, ProgramRunner, query_python
from envsolve.errors import OutsideError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs of these tests are for Linux and macOS")
ANSWERS = "import os, sys; open(sys.argv[1], 'w').write('the answer'); "


def ask(program: str, *, timeout: float = 20.0) -> Answer:
    with ProgramRunner() as runner:
        return runner.answer([sys.executable, "-I", "-c", program], os.environ, timeout)


def python(directory: Path, text: str) -> Path:
    """A program that replaces an interpreter; its answer belongs into the file $4."""
    path = directory / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def refusal(program: Path, *, timeout: float = 20.0) -> OutsideError:
    with pytest.raises(OutsideError) as raised:
        query_python(program, "True", os.environ, timeout=timeout)
    assert raised.value.code == "python-not-usable"
    assert raised.value.message.startswith(f"{program} ")
    return raised.value


def test_printed_text_is_not_part_of_the_answer() -> None:
    answer = ask(f"{ANSWERS} print('x' * 200_000); print('the last words', file=sys.stderr)")
    assert (answer.content, answer.fault, answer.ending) == (b"the answer", "", Ending(exit_code=0))
    assert answer.tail.rstrip().endswith("the last words")
    assert len(answer.tail) <= LONGEST_TAIL


def test_a_program_that_prints_without_end_is_ended() -> None:
    answer = ask(f"{ANSWERS}\nwhile True: os.write(1, bytes(1 << 20))")
    assert answer.ending == Ending(flooded=True)
    assert answer.ending.crash == "It printed more than 64 MiB and was stopped."
    assert len(answer.tail) <= LONGEST_TAIL


@pytest.mark.thorough
def test_a_program_that_ignores_sigterm_is_ended() -> None:
    started = time.monotonic()
    program = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    assert ask(program, timeout=1.0).ending == Ending(timeout=1.0)
    assert time.monotonic() - started < 10


@pytest.mark.thorough
@pytest.mark.parametrize("leaves_the_session", [False, True])
def test_a_background_process_with_open_output_is_not_waited_for(leaves_the_session: bool) -> None:
    leaves = "os.setsid(); " if leaves_the_session else ""
    started = time.monotonic()
    assert ask(f"{ANSWERS}\nif os.fork() == 0: {leaves}import time; time.sleep(20)").content == b"the answer"
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    ("does", "fault"),
    [
        ("os.mkfifo(sys.argv[1])", "it is a pipe or a device, not a regular file"),
        ("os.mkdir(sys.argv[1])", "it is a directory"),
        ("os.symlink('/dev/zero', sys.argv[1])", "it is a link"),
        (f"open(sys.argv[1], 'w').truncate({LONGEST_ANSWER + 1})", "it is longer than 16384 KiB"),
    ],
)
def test_a_replaced_answer_file_is_not_read(does: str, fault: str) -> None:
    answer = ask(f"import os, sys; {does}")
    assert (answer.content, answer.fault) == (b"", fault)


def test_an_interpreter_gives_a_value() -> None:
    assert query_python(sys.executable, "[os.name, list(sys.version_info[:2])]", {}) == [
        os.name,
        list(sys.version_info[:2]),
    ]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("does", "message"),
    [
        ("sleep 60", "did not answer within 0.5 seconds"),
        ("exec cat /dev/zero", "printed more than 64 MiB instead of an answer"),
        ("exit 3", "does not run as a Python interpreter"),
        ("kill -9 $$", "does not run as a Python interpreter"),
        ("exit 0", "gave an answer that cannot be read: it is not JSON: Expecting value"),
        ('head -c 100000 /dev/zero | tr "\\0" "[" > "$4"', "gave an answer that cannot be read: it is nested too deep"),
        ('printf \'"\\377"\' > "$4"', "gave an answer that cannot be read: it is not UTF-8"),
        ('mkfifo "$4"', "gave an answer that cannot be read: it is a pipe"),
    ],
)
def test_an_interpreter_that_gives_none_is_one_error_that_names_it(tmp_path: Path, does: str, message: str) -> None:
    timeout = 0.5 if does.startswith("sleep") else 20.0
    assert message in refusal(python(tmp_path, does), timeout=timeout).message


def test_the_last_printed_line_is_the_cause_and_is_short(tmp_path: Path) -> None:
    assert refusal(python(tmp_path, "echo 'not today' >&2; exit 3")).cause == ("not today",)
    (cause,) = refusal(python(tmp_path, "head -c 60000 /dev/zero; exit 3")).cause
    assert cause == "\0" * 300


def test_a_program_that_cannot_be_started_is_one_error(tmp_path: Path) -> None:
    assert "cannot be run: No such file" in refusal(tmp_path / "python").message
