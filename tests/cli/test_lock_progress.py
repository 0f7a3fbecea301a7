"""Progress is shown on a terminal, in one line that is cleared at the end, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from envsolve.cli.progress import Progress
from tests.index.packages import wheel
from tests.index.server import IndexServer
from tests.validation.test_child import until

pytestmark = pytest.mark.thorough

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")


def on_terminal(folder: Path, *words: str) -> tuple[int, str]:
    """The exit code of a command whose messages go to a terminal, and the text of that terminal."""
    program = "import sys; from envsolve.cli import main; main(sys.argv[1:])"
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PIP_CONFIG_FILE": os.devnull, "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        check=False,
    )
    os.write(theirs, b"end")
    os.close(theirs)
    text = b""
    while not text.endswith(b"end"):
        text += os.read(ours, 4096)
    os.close(ours)
    return done.returncode, text.decode().removesuffix("end")


@contextmanager
def index() -> Iterator[IndexServer]:
    with IndexServer(recorded=False) as server:
        server.add("alpha", [wheel("alpha", "1.0", ["beta"])])
        server.add("beta", [wheel("beta", "1.0")])
        yield server


def terminal_text(folder: Path, *words: str) -> str:
    """The messages of a lock on a terminal."""
    with index() as server:
        arguments = ("alpha", "--format", "requirements", "--index-url", server.index_url, "--python", "3.12.4")
        code, text = on_terminal(folder, *arguments, "--no-cache", *words)
    assert code == 0
    return text


@pytest.mark.parametrize(
    ("words", "code", "doing"),
    [
        (("matrix", "check"), 0, "checking: the compatibility matrix"),
        (("export", "in.txt", "--format", "pylock", "--ask-index", "--no-cache"), 0, "exporting: package indexes"),
        (("-f", "pytorch==99", "--gpu", "8.6", "--offline"), 1, "resolving: releases of pytorch that the matrix lacks"),
    ],
)
def test_long_operations_report_progress(words: tuple[str, ...], code: int, doing: str, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("alpha==1.0\nbeta==1.0\n")
    with index() as server:
        more = ("--index-url", server.index_url) if words[0] == "export" else ()
        ended, text = on_terminal(tmp_path, *words, *more)
        assert (ended, doing in text) == (code, True), text
        assert doing not in on_terminal(tmp_path, *words, *more, "-q")[1]


def test_progress_on_a_terminal_is_cleared_at_the_end(tmp_path: Path) -> None:
    text = terminal_text(tmp_path)
    assert "resolving: 1 package, alpha" in text
    assert "resolving: 2 packages, beta" in text
    assert text.rpartition("resolving:")[2].rpartition("\r")[0].endswith(" ")


@pytest.mark.parametrize("words", [["--no-progress"], ["-q"]])
def test_no_progress_if_unwanted(words: list[str], tmp_path: Path) -> None:
    assert "resolving" not in terminal_text(tmp_path, *words)


def test_a_step_that_takes_long_counts_its_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    now = iter([0.0, 0.0, 0.0, *range(4, 1000)])
    monkeypatch.setattr("envsolve.cli.progress.monotonic", lambda: next(now))
    before = threading.active_count()
    progress = Progress(wanted=True, doing="creating")
    progress.show("Downloading torch (850 MiB)")
    until(lambda: ", 4 s" in capsys.readouterr().err)
    progress.clear()
    assert threading.active_count() == before
