"""``envsolve init`` asks questions only on a terminal, and each has an option."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import tomli

pytestmark = pytest.mark.thorough

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")

PROMPTS = ("Frameworks (", "GPUs (auto: ", "Python (", "Lock files (")
ENTER = ""


class Terminal:
    """``envsolve init --no-lock`` with its input and its messages on a terminal."""

    def __init__(self, directory: Path, *words: str, **environ: str) -> None:
        self.directory, self.shown, self._seen = directory, "", 0
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("ENVSOLVE_") and key != "CI"}
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "envsolve", "init", "--no-lock", *words],
            cwd=directory,
            env={**inherited, "TERM": "xterm", "NO_COLOR": "1", "CUDA_VISIBLE_DEVICES": "", **environ},
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)

    def until(self, text: str) -> None:
        """Wait for ``text`` after what was waited for before."""
        end = time.monotonic() + 60
        while text not in self.shown[self._seen :]:
            assert time.monotonic() < end, self.shown
            if select.select([self._ours], [], [], 0.1)[0]:
                try:
                    self.shown += os.read(self._ours, 4096).decode()
                except OSError:  # the program ended
                    break
        assert text in self.shown[self._seen :], self.shown
        self._seen = self.shown.index(text, self._seen) + len(text)

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def answer(self, prompt: str, text: str) -> None:
        self.until(prompt)
        self.until("]: ")
        self.type(f"{text}\n")

    def ended(self, *, interrupting: bool = False) -> int:
        """The exit code, with the whole terminal text.

        ``interrupting`` presses Ctrl-C until the command ends, as a person would: Python's readline sets its terminal
        up without looking at signals, and only notices one that came meanwhile at the next key or signal.
        """
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if not select.select([self._ours], [], [], 1 if interrupting else 0.1)[0]:
                if interrupting:
                    self.process.send_signal(signal.SIGINT)
                continue
            try:
                piece = os.read(self._ours, 4096)
            except OSError:
                break
            if not piece:
                break
            self.shown += piece.decode()
        else:
            self.process.kill()
            raise AssertionError(f"it still waits: {self.shown}")
        return self.process.wait(timeout=60)

    @property
    def out(self) -> bytes:
        assert self.process.stdout is not None
        return self.process.stdout.read()

    @property
    def table(self) -> object:
        return tomli.loads((self.directory / "pyproject.toml").read_text())["tool"]["envsolve"]

    def close(self) -> None:
        os.close(self._ours)
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


Start = Callable[..., Terminal]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a command in an empty directory."""
    started: list[Terminal] = []

    def begin(*words: str, **environ: str) -> Terminal:
        started.append(Terminal(tmp_path, *words, **environ))
        return started[-1]

    yield begin
    for it in started:
        it.close()


def test_the_defaults_create_a_project(start: Start) -> None:
    terminal = start()
    for prompt in PROMPTS:
        terminal.answer(prompt, ENTER)
    assert terminal.ended() == 0, terminal.shown
    assert terminal.table == {"frameworks": ["pytorch"], "gpus": ["auto"], "outputs": ["pylock.toml"]}
    assert "note: the same without questions\r\n  envsolve init --no-lock -f pytorch --gpu auto -o pylock.toml" in (
        terminal.shown
    )
    assert terminal.out == b""


def test_answers_are_parsed_like_options(start: Start) -> None:
    terminal = start()
    terminal.answer(PROMPTS[0], "pytorch>=2.5,<3, jax")
    terminal.answer(PROMPTS[1], "RTX 3090, 8.6")
    terminal.answer(PROMPTS[2], ">=3.11,<3.13")
    terminal.answer(PROMPTS[3], "requirements.txt, locks/pylock.toml")
    assert terminal.ended() == 0, terminal.shown
    assert terminal.table == {
        "frameworks": ["pytorch>=2.5,<3", "jax"],
        "gpus": ["RTX 3090", "8.6"],
        "python": ">=3.11,<3.13",
        "outputs": ["requirements.txt", "locks/pylock.toml"],
    }


def test_invalid_answers_are_repeated(start: Start) -> None:
    terminal = start()
    terminal.answer(PROMPTS[0], "pytroch")
    terminal.until("Error: 'pytroch' is not a framework that envsolve knows; did you mean pytorch?")
    terminal.answer(PROMPTS[0], "pytorch")
    terminal.answer(PROMPTS[1], "Voodoo 2")
    terminal.until("Error: ")
    terminal.answer(PROMPTS[1], "none")
    terminal.answer(PROMPTS[2], "snake")
    terminal.until("Error: ")
    terminal.answer(PROMPTS[2], ENTER)
    terminal.answer(PROMPTS[3], "lock.xyz")
    terminal.until("Error: envsolve knows no lock of the name lock.xyz")
    terminal.answer(PROMPTS[3], ENTER)
    assert terminal.ended() == 0, terminal.shown
    assert terminal.table == {"frameworks": ["pytorch"], "gpus": ["none"], "outputs": ["pylock.toml"]}


def test_questions_answered_by_options_are_skipped(start: Start) -> None:
    terminal = start("--gpu", "8.6", "--python", "3.12", "-o", "requirements.txt")
    terminal.answer(PROMPTS[0], "jax")
    assert terminal.ended() == 0, terminal.shown
    assert not any(it in terminal.shown for it in PROMPTS[1:])


@pytest.mark.parametrize("way_out", ["end of input", "interrupt"])
def test_cancelling_writes_nothing(way_out: str, start: Start, tmp_path: Path) -> None:
    terminal = start()
    terminal.answer(PROMPTS[0], ENTER)
    terminal.until(PROMPTS[1])
    if way_out == "end of input":
        terminal.type("\x04")
    assert terminal.ended(interrupting=way_out == "interrupt") == 130, terminal.shown
    assert terminal.shown.rstrip().endswith("interrupted")
    assert "Traceback" not in terminal.shown
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "environ", "code"),
    [
        (("-f", "jax", "--gpu", "none"), {}, 0),
        (("numpy", "--gpu", "none"), {}, 0),
        ((), {"CI": "true"}, 2),
        (("-q",), {}, 2),
        ((), {"ENVSOLVE_FRAMEWORK": "jax"}, 0),
    ],
)
def test_no_questions_with_options_or_without_a_terminal(
    words: tuple[str, ...], environ: dict[str, str], code: int, start: Start
) -> None:
    terminal = start(*words, **environ)
    assert terminal.ended() == code, terminal.shown
    assert not any(it in terminal.shown for it in PROMPTS)


def test_questions_answered_by_the_directory_are_skipped(start: Start, tmp_path: Path) -> None:
    (tmp_path / "requirements.in").write_text("torch\n")
    terminal = start()
    assert terminal.ended() == 0, terminal.shown
    assert "imported from requirements.in" in terminal.shown


def test_an_existing_project_is_refused_before_any_question(start: Start, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.envsolve]\noutputs = ['pylock.toml']\n")
    terminal = start()
    assert terminal.ended() == 2
    assert "error: project-exists" in terminal.shown
    assert not any(it in terminal.shown for it in PROMPTS)


def test_a_pipe_gets_the_error(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "envsolve", "init"]
    done = subprocess.run(command, cwd=tmp_path, input="pytorch\n", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: no-framework\n")
