"""The same question has the same answer without the work, as long as nothing changed; else the work is done again.

The console script itself is run: an earlier answer is given before anything else is loaded.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.index.packages import wheel
from tests.index.server import IndexServer

PROGRAM = """
import atexit, sys

@atexit.register
def tell():
    print("worked" if "envsolve.app.locking" in sys.modules else "gave", file=sys.stderr)

from envsolve.cli import main

main(sys.argv[1:])
"""
"""The console script, which says at its end whether it loaded what makes a lock."""


class Done(NamedTuple):
    """What one run did: whether it worked, or gave an earlier answer."""

    code: int
    out: str
    err: str
    worked: bool


class Locking:
    """Runs the console script in a folder with requirements and a cache of its own."""

    def __init__(self, folder: Path, server: IndexServer) -> None:
        self.folder, self.server = folder, server
        self.variables: dict[str, str] = {}

    def __call__(self, *words: str, output: str | None = "lock.txt") -> Done:
        asked = ["-r", "requirements.in", "--format", "requirements", "--index-url", self.server.index_url]
        asked += ["--gpu", "8.6", "--python", "3.12.4", "--platform", "linux-64", "--cache-dir", "cache", *words]
        asked += [] if output is None else ["-o", output]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ENVSOLVE_", "PIP_", "UV_"))}
        environment = {**kept, "PIP_CONFIG_FILE": os.devnull, "HOME": str(self.folder), **self.variables}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *asked],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        *said, last = done.stderr.splitlines()
        return Done(done.returncode, done.stdout, "\n".join(said), last == "worked")

    @property
    def lock(self) -> str:
        return (self.folder / "lock.txt").read_text()


@pytest.fixture
def locking(tmp_path: Path) -> Iterator[Locking]:
    with IndexServer(recorded=False) as server:
        server.add("alpha", [wheel("alpha", "1.0"), wheel("alpha", "2.0")])
        (tmp_path / "requirements.in").write_text("alpha\n")
        yield Locking(tmp_path, server)


def test_the_same_words_get_the_same_answer_without_the_work(locking: Locking) -> None:
    first = locking()
    assert (first.code, first.worked) == (0, True), first.err
    made = locking.lock
    requests = len(locking.server.requests)
    again = locking()
    assert (again.code, again.worked, locking.lock) == (0, False, made)
    (locking.folder / "lock.txt").unlink()
    third = locking()
    assert (third.code, third.worked, locking.lock) == (0, False, made)
    assert len(locking.server.requests) == requests


def test_an_answer_on_standard_output_is_printed_again(locking: Locking) -> None:
    first, again = locking(output=None), locking(output=None)
    assert (first.worked, again.worked) == (True, False)
    assert first.out == again.out != ""


@pytest.mark.parametrize("words", [[], ["-q"]])
def test_notes_are_printed_again_as_they_were(words: list[str], locking: Locking) -> None:
    words += ["--extra-index-url", locking.server.index_url.replace("//", "//user:word@") + "more/"]
    first, again = locking(*words), locking(*words)
    assert (first.worked, again.worked) == (True, False)
    assert first.err == again.err
    assert ("note" in again.err) == ("-q" not in words)


@pytest.mark.parametrize(
    "words",
    [
        ["--refresh"],
        ["-U"],
        ["--offline"],
        *(pytest.param(it, marks=pytest.mark.thorough) for it in (["--no-cache"], ["-P", "alpha"])),
    ],
)
def test_who_asks_again_gets_an_answer_that_is_made_anew(words: list[str], locking: Locking) -> None:
    locking(*words) if "--offline" not in words else locking()
    assert locking(*words).worked


def test_colour_is_what_the_command_reads(locking: Locking) -> None:
    locking("--color", "always")
    assert locking("--color", "always").worked


def test_a_changed_requirement_is_seen(locking: Locking) -> None:
    locking()
    (locking.folder / "requirements.in").write_text("alpha<2\n")
    assert locking().worked
    assert "alpha==1.0" in locking.lock


def test_a_requirement_that_changes_while_the_lock_is_made_is_seen_the_next_time(locking: Locking) -> None:
    def edit(page: bytes) -> bytes:
        (locking.folder / "requirements.in").write_text("alpha<2\n")
        return page

    locking.server.fault("/simple/alpha/", times=1, alter=edit)
    locking()
    assert "alpha==2.0" in locking.lock
    (locking.folder / "lock.txt").unlink()
    assert locking().worked
    assert "alpha==1.0" in locking.lock


def test_a_changed_variable_is_seen(locking: Locking) -> None:
    locking()
    locking.variables["ENVSOLVE_CONSTRAINT"] = "limits.txt"
    (locking.folder / "limits.txt").write_text("alpha<2\n")
    (locking.folder / "lock.txt").unlink()
    assert locking().worked
    assert "alpha==1.0" in locking.lock


def test_a_lock_that_somebody_edited_is_read_again(locking: Locking) -> None:
    locking()
    lock = locking.folder / "lock.txt"
    lock.write_text(lock.read_text().replace("alpha==2.0", "alpha==1.0"))
    assert locking().worked
    assert "alpha==1.0" in locking.lock


def test_an_answer_that_kept_pins_is_none_to_who_has_no_lock(locking: Locking) -> None:
    (locking.folder / "lock.txt").write_text("alpha==1.0\n")
    assert locking().worked
    assert "alpha==1.0" in locking.lock
    assert not locking().worked
    (locking.folder / "lock.txt").unlink()
    assert locking().worked
    assert "alpha==2.0" in locking.lock


def test_a_page_that_is_out_of_date_is_asked_again(locking: Locking) -> None:
    locking.server.fault("/simple/alpha/", times=9, caching="max-age=1")
    locking()
    time.sleep(1.1)
    assert locking().worked


def test_a_requirement_that_a_variable_completes_is_never_answered_from_before(locking: Locking) -> None:
    (locking.folder / "requirements.in").write_text("alpha==${ALPHA}\n")
    locking.variables["ALPHA"] = "2.0"
    locking()
    locking.variables["ALPHA"] = "1.0"
    (locking.folder / "lock.txt").unlink()
    assert locking().worked
    assert "alpha==1.0" in locking.lock


def test_a_torn_answer_is_made_again(locking: Locking) -> None:
    locking()
    for kept in (locking.folder / "cache").rglob("answers/*"):
        kept.write_bytes(kept.read_bytes()[:-7])
    again = locking()
    assert (again.code, again.worked) == (0, True)


def test_a_folder_that_is_not_there_is_told_by_the_command(locking: Locking) -> None:
    locking(output="there.txt")
    done = locking(output="nowhere/lock.txt")
    assert (done.code, done.worked) == (2, True)
    assert done.err.startswith("error: output-not-writable")


def test_an_earlier_answer_takes_no_place_of_what_somebody_wrote_since(locking: Locking) -> None:
    assert locking().code == 0
    (locking.folder / "lock.txt").write_text("alpha>=1\n")
    done = locking()
    assert (done.code, locking.lock) == (2, "alpha>=1\n")
    assert done.err.startswith("error: not-a-lock\n")
    assert locking("--force").code == 0
    assert "alpha==2.0" in locking.lock
    (locking.folder / "lock.txt").write_text("alpha>=1\n")
    assert locking("--force").worked
