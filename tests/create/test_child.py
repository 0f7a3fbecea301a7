"""Output of other programs is read to its end, and they never outlive their purpose."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envsolve.create.child import run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs of these tests are for a shell")


def test_output_is_reported_line_by_line_without_colour_and_credentials() -> None:
    reports: list[str] = []
    program = r"printf '\033[31mone\033[0m\n\nhttps://me:pw@host/t/tk-1/c\n' >&2; echo two; exit 3"
    ran = run(["/bin/sh", "-c", program], {}, reports.append)
    assert (ran.code, set(ran.lines)) == (3, {"one", "https://host/c", "two"})
    assert tuple(reports) == ran.lines


@pytest.mark.thorough
def test_progress_is_reported_with_the_bytes_written() -> None:
    reports: list[str] = []
    ran = run(
        ["/bin/sh", "-c", "echo Resolved; sleep 1.5"], {"PATH": "/usr/bin:/bin"}, reports.append, doing="2 packages"
    )
    assert ran.lines == ("Resolved",)
    assert [it for it in reports if it != "Resolved"] == ["2 packages", reports[-1]]
    assert re.fullmatch(r"2 packages(, \d+ bytes written, \d+ bytes/s)?, 1 s", reports[-1])


def test_a_line_without_an_end_is_reported_in_pieces() -> None:
    ran = run(["/bin/sh", "-c", "head -c 3000000 /dev/zero | tr '\\0' x"], {"PATH": "/usr/bin:/bin"})
    assert ran.code == 0
    assert max(map(len, ran.lines)) < 100_000


def test_an_interrupt_ends_it_with_its_children(tmp_path: Path) -> None:
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
    """Whether the process is running and not a zombie."""
    ran = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return ran.stdout.strip()[:1] not in ("", "Z")


def test_marked_lines_are_found_whatever_output_follows() -> None:
    program = "echo 'a Hash mismatch here'; i=0; while [ $i -lt 200 ]; do echo line $i; i=$((i+1)); done; exit 1"
    ran = run(["/bin/sh", "-c", program], {}, words=("Hash mismatch", "No space left"))
    assert ran.marked == ("a Hash mismatch here",)
    assert "a Hash mismatch here" not in ran.lines
