"""Other programs are heard to their end, and never outlive what they were started for."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envsolve.create.child import run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs of these tests are for a shell")


def test_what_is_reported_goes_on_line_by_line_without_colour_and_logins() -> None:
    said: list[str] = []
    program = r"printf '\033[31mone\033[0m\n\nhttps://me:pw@host/t/tk-1/c\n' >&2; echo two; exit 3"
    ran = run(["/bin/sh", "-c", program], {}, said.append)
    assert (ran.code, set(ran.lines)) == (3, {"one", "https://host/c", "two"})
    assert tuple(said) == ran.lines


def test_what_it_is_about_is_reported_with_what_it_has_written() -> None:
    said: list[str] = []
    ran = run(["/bin/sh", "-c", "echo Resolved; sleep 1.5"], {"PATH": "/usr/bin:/bin"}, said.append, doing="2 packages")
    assert ran.lines == ("Resolved",)
    assert [it for it in said if it != "Resolved"] == ["2 packages", said[-1]]
    assert re.fullmatch(r"2 packages(, \d+ bytes written, \d+ bytes/s)?, 1 s", said[-1])


def test_a_line_without_an_end_is_reported_in_pieces() -> None:
    ran = run(["/bin/sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x"], {"PATH": "/usr/bin:/bin"})
    assert ran.code == 0
    assert max(map(len, ran.lines)) < 100_000


def test_an_interrupt_ends_it_with_all_that_it_started(tmp_path: Path) -> None:
    def interrupt(line: str) -> None:
        raise KeyboardInterrupt

    program = f"sleep 600 & echo $! > {tmp_path}/pid; echo started; wait"
    with pytest.raises(KeyboardInterrupt):
        run(["/bin/sh", "-c", program], {"PATH": "/usr/bin:/bin"}, interrupt)
    pid = int((tmp_path / "pid").read_text())
    end = time.monotonic() + 30
    while is_alive(pid):
        assert time.monotonic() < end, "it outlived the interrupt"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether the process is there, and is more than an entry that nobody has taken note of."""
    ran = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return ran.stdout.strip()[:1] not in ("", "Z")


def test_words_are_heard_however_much_is_reported_after_them() -> None:
    program = "echo 'a Hash mismatch here'; i=0; while [ $i -lt 200 ]; do echo line $i; i=$((i+1)); done; exit 1"
    ran = run(["/bin/sh", "-c", program], {}, words=("Hash mismatch", "No space left"))
    assert ran.marked == ("a Hash mismatch here",)
    assert "a Hash mismatch here" not in ran.lines
