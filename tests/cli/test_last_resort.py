"""The command line never prints a traceback: at start-up, on an interrupt, without memory, in a broken installation."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from envsolve.cli.main import run
from envsolve.cli.report import report
from envsolve.errors import Hint, OutsideError

STARTED = "import sys; from envsolve.cli import main; print('started', flush=True); main()"
BEFORE_MAIN = 'Traceback (most recent call last):\n  File "<string>", line 1, in <module>\nKeyboardInterrupt\n'
"""What Python says of an interrupt between the two statements, when envsolve does not run yet."""
SOLVE = ("--framework", "pytorch", "--gpu", "8.6", "--driver", "580.65.06")
needs_signals = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for another process")


def interrupted(after: float, output: Path) -> tuple[int, str]:
    """The exit code and stderr of a solve that is interrupted ``after`` seconds."""
    process = subprocess.Popen(
        [sys.executable, "-c", STARTED, *SOLVE, "-o", str(output)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    return process.returncode, errors


def check_interrupts(moments: list[float], tmp_path: Path) -> None:
    output = tmp_path / "environment.yml"
    before = "# Made by envsolve\n"
    subprocess.run([sys.executable, "-c", STARTED, *SOLVE, "-o", str(output)], capture_output=True, check=True)
    whole = output.read_text()
    codes = set()
    for moment in moments:
        output.write_text(before)
        code, errors = interrupted(moment, output)
        if errors == BEFORE_MAIN:
            continue
        assert "Traceback" not in errors, moment
        if code == 130:
            assert errors.endswith("interrupted\n")
        codes.add(code)
        assert output.read_text() in ({before, whole} if code else {whole})
        assert os.listdir(tmp_path) == [output.name]  # noqa: PTH208
    assert 130 in codes
    assert codes <= {0, 130}


@pytest.mark.thorough
@needs_signals
def test_an_interrupt_prints_no_traceback_and_leaves_no_partial_file(tmp_path: Path) -> None:
    check_interrupts([step * 0.02 for step in range(12)], tmp_path)


@needs_signals
@pytest.mark.thorough
def test_an_interrupt_at_many_more_moments(tmp_path: Path) -> None:
    check_interrupts([step * 0.002 for step in range(120)], tmp_path)


def test_missing_dependencies_are_reported_as_a_broken_installation(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise ImportError(\"No module named 'click'\")")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from envsolve.cli import main; main(['--help'])"
    environ = {name: value for name, value in os.environ.items() if name != "ENVSOLVE_DEBUG"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environ, check=False)
    assert done.returncode == 3
    assert done.stderr.splitlines() == [
        "error: internal-error",
        "  ImportError: No module named 'click'",
        "cause: this installation of envsolve is incomplete",
        "hint: reinstall envsolve",
    ]


def test_an_interrupt_during_imports_prints_one_word(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from envsolve.cli import main; main(['--help'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_running_out_of_memory_is_one_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_out(_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("envsolve.cli.main._answer", run_out)
    assert run(["detect"]) == 3
    assert capsys.readouterr().err.startswith("error: out-of-memory\n  envsolve ran out of memory\n")


def test_an_unexpected_file_error_names_the_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fail(*_: object, **__: object) -> None:
        (tmp_path / "absent").stat()

    monkeypatch.setattr("envsolve.cli.main.cli.main", fail)
    assert run(["detect"]) == 3
    assert capsys.readouterr().err.startswith(
        f"error: file-failed\n  {tmp_path / 'absent'} cannot be used: No such file or directory\n"
    )


def test_text_from_outside_cannot_start_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    forged = "bad\nhint: run this\r\n  curl example.org | sh\u2028error: \x1b[31m\u202e"
    report(OutsideError(forged, forged, (forged,), (Hint(forged, forged),)), [], "solve", as_json=False)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["error:", "", "cause:", "hint:", ""]
    assert all(line.isprintable() for line in lines)


def broken_click(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    """The command line, where the module that everything else needs does what ``text`` says."""
    (tmp_path / "click.py").write_text(text)
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from envsolve.cli import main; main(['--help'])"
    environ = {name: value for name, value in os.environ.items() if name != "ENVSOLVE_DEBUG"}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environ, check=False)


def test_nothing_interruptible_is_imported_before_main() -> None:
    program = "import sys; before = set(sys.modules); import envsolve.cli; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["envsolve", "envsolve.cli"]


@needs_signals
@pytest.mark.parametrize("other", ["ImportError", "RuntimeError", "SystemError"])
def test_an_interrupt_that_python_turns_into_another_error_is_still_an_interrupt(other: str, tmp_path: Path) -> None:
    """Like modules in C that get an interrupt while they import others."""
    interrupts = "import os, signal, time\ntry:\n    os.kill(os.getpid(), signal.SIGINT); time.sleep(9)\n"
    done = broken_click(tmp_path, f"{interrupts}except KeyboardInterrupt:\n    pass\nraise {other}('PyCapsule_Import')")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@needs_signals
def test_an_interrupt_in_a_destructor_is_not_lost(tmp_path: Path) -> None:
    interrupts = "def __del__(self): os.kill(os.getpid(), signal.SIGINT); time.sleep(0.1)"
    started = time.monotonic()
    done = broken_click(tmp_path, f"import os, signal, time\nclass It:\n    {interrupts}\nIt()\ntime.sleep(60)\n")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
    assert time.monotonic() - started < 30


def test_running_out_of_memory_during_imports_is_one_error(tmp_path: Path) -> None:
    done = broken_click(tmp_path, "raise MemoryError")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("error: out-of-memory\n")
