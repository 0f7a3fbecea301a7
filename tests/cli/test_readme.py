"""The README shows the current output of envsolve: every transcript is run again, and every count is checked.

With ENVSOLVE_UPDATE_SNAPSHOTS set the README is brought up to date instead.
"""

from __future__ import annotations

import itertools
import os
import platform
import re
import shlex
import sys
from pathlib import Path

import pytest

from envsolve.matrix import Matrix
from envsolve.project.reading import project_of
from tests.cli.transcripts import INDENT, PROMPT, indented_again
from tests.conftest import Envsolve

README = Path(__file__).parents[2] / "README.md"
BUILDS = re.compile(r"\d[\d,]* builds with")


class Shell:
    """Runs the commands of a transcript: envsolve, its redirection into a file, and ``tail`` of that file."""

    def __init__(self, envsolve: Envsolve) -> None:
        self._envsolve = envsolve
        self._files: dict[str, str] = {}

    def answer(self, command: str) -> list[str]:
        """The lines that a reader sees: those on stdout, or those on stderr if the output is a file or an error."""
        program, *arguments = shlex.split(command)
        if program == "tail":
            count, name = arguments
            return self._files[name].splitlines()[int(count) :]
        assert program == "envsolve"
        if ">" not in arguments:
            result = self._envsolve(*arguments)
            return (result.out or result.err).splitlines()
        *arguments, _, name = arguments
        result = self._envsolve(*arguments)
        self._files[name] = result.out
        return result.err.splitlines()


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="the README shows answers for linux-64"
)
def test_every_transcript_and_count_is_up_to_date(envsolve: Envsolve, matrix: Matrix) -> None:
    text = README.read_text(encoding="utf-8")
    count = sum(len(matrix.framework(name, None).releases) for name in matrix.framework_names)
    assert BUILDS.search(text)
    today = indented_again(BUILDS.sub(f"{count:,} builds with", text), Shell(envsolve).answer)
    if os.environ.get("ENVSOLVE_UPDATE_SNAPSHOTS"):
        README.write_text(today, encoding="utf-8")
    assert today == README.read_text(encoding="utf-8")


def test_the_readme_shows_an_answer_and_a_refusal() -> None:
    prompt = INDENT + PROMPT
    commands = [line.removeprefix(prompt) for line in README.read_text("utf-8").splitlines() if line.startswith(prompt)]
    assert any("> environment.yml" in command for command in commands)
    assert any("--driver 550.163.01" in command for command in commands)


def test_the_example_project_is_valid() -> None:
    lines = README.read_text(encoding="utf-8").partition("## A project\n\n")[2].splitlines()
    block = itertools.takewhile(lambda line: not line or line.startswith(INDENT), lines)
    project = project_of(Path("pyproject.toml"), "\n".join(line.removeprefix(INDENT) for line in block))
    assert [[output.file for output in part.outputs] for part in project.parts] == [
        ["pylock.toml"],
        ["cluster/requirements.txt", "cluster/Dockerfile"],
    ]
